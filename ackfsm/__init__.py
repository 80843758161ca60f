"""Executable, formally specified reference of message acknowledgement.

* ``ackfsm.engine`` embeds a broker: ``Broker``, and ``ackfsm.engine.journal`` the journals.
* ``ackfsm.verify`` judges a recorded history, which ``ackfsm.recorder`` or ``ackfsm.history.importing`` writes.
* ``ackfsm.checking.explore`` checks a configuration, ``ackfsm.checking.unbounded`` for any number of messages.
* ``ackfsm.surveys`` has claims, the matrix and advice; ``ackfsm.rates`` tells messages a second.
* ``ackfsm.driving`` drives brokers and consumers of others; ``ackfsm.spark`` does it all on Spark.
* ``ackfsm.showing.draw`` draws the machines, which ``ackfsm.tables.load`` reads.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
