"""The exceptions that end an application: a crash of its process, and non-termination."""


class ProcessCrashed(BaseException):
    """The application's process has crashed: none of its code continues, and its memory is lost.

    It derives from :class:`BaseException` so that ``except Exception`` does not catch it.
    ``ackfsm.run`` catches it and starts the application again.
    """


class Endless(BaseException):
    """The application does not terminate; it must not catch this."""


class ListenerFault(Exception):  # noqa: N818 - as above
    """The exception that the fault ``listener_exception`` lets the application's listener throw."""
