"""Make the broker of a test from its marker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ackfsm.engine import Broker
from ackfsm.terms import InputError

_MADE = ("pace", "journal")
_SHARED = frozenset({"like", "specification"})


def broker_of(like: Broker, arguments: tuple[object, ...], settings: dict[str, Any]) -> Broker:
    """A fresh broker with the settings of the marker ``ackfsm``.

    Raises :class:`InputError` for settings that the system does not have, and for a pace or a journal that was
    made when the marker was read: each run needs its own.
    """
    if len(arguments) > 1:
        raise InputError("the marker ackfsm has one name, of the profile; give the settings by name")
    if arguments:
        settings = {"profile": arguments[0], **settings}
    for key in _SHARED & set(settings):
        raise InputError(f"{key}=... is not for a marker; all brokers of the tests have the tables of the project")
    for key in _MADE:
        if key in settings:
            settings[key] = _made(key, settings[key])
    return Broker(like=like, **{"history": True, **settings})


def _made(key: str, maker: Callable[[], object] | object) -> object:
    if not callable(maker):
        raise InputError(f"{key} is used by every run of the test; give what makes one, {key}=lambda: ...")
    return maker()
