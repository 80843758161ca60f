"""What ends an application: the death of its process, and that it would not end by itself."""

__all__ = ["Endless", "ListenerFault", "ProcessCrashed"]


class ProcessCrashed(BaseException):
    """The application's process is dead: nothing of it runs on, and nothing that it held is there.

    It derives from :class:`BaseException` so that ``except Exception`` does not catch what no process survives.
    ``ackfsm.run`` catches it and starts the application again.
    """


class Endless(BaseException):
    """The run does not come to an end; an application does not catch this, as it would go on for ever."""


class ListenerFault(Exception):  # noqa: N818 - as above
    """The exception that the fault ``listener_exception`` lets the application's listener throw."""
