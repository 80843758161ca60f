"""Faults of networks, disks and power, for any program: a library that knows neither brokers nor tables.

* ``relay``: TCP connections that are delayed, throttled, cut, refused, or that carry nothing one way.
* ``power``: the folder of a program as a loss of power would leave it, at any moment of a recorded run.
* ``disk``: a disk that is full, and a file system that is shut down (root needed).
"""
