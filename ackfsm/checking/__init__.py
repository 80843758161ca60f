"""The model checker: the network that the tables make, its search, proofs for any number of messages, and exports.

``network`` composes the machines of a configuration to a system, and ``machines`` gives one machine as an object of
``transitions``.  ``explore`` searches a network and answers questions about it.  ``unbounded`` proves for any number
of messages, and ``certificates`` checks such proofs again.  ``export`` writes a network for other checkers.
"""
