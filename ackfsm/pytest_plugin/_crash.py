"""What ends an application whose process a fault has killed."""

__all__ = ["ListenerFault", "ProcessCrashed"]


class ProcessCrashed(BaseException):
    """The application's process is dead: nothing of it runs on, and nothing that it held is there.

    It derives from :class:`BaseException` so that ``except Exception`` does not catch what no process survives.
    ``ackfsm.run`` catches it and starts the application again.
    """


class ListenerFault(Exception):  # noqa: N818 - as above
    """The exception that the fault ``listener_exception`` lets the application's listener throw."""
