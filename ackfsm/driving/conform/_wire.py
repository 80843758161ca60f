"""The line protocol: the forms of a request and its answer, and the defect of an answer in another form."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from ackfsm.driving.conform._adapter import Delivery, Depth
from ackfsm.driving.conform._claims import Claims, Operation
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault, InputError
from ackfsm.text import in_words, meant, quoted, shown

PROTOCOL: Final = 1
"""The version of the line protocol."""

LONGEST: Final = 65_536
"""Bytes of a line."""

Answer = Mapping[str, Any]

_Word = TypeVar("_Word", bound=StrEnum)


def encoded(value: Mapping[str, object]) -> bytes:
    """One line of the protocol."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def parsed(line: bytes) -> Answer:
    """The object that a line holds.  Raises :class:`InputError` if it holds none."""
    try:
        value = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise InputError(f"it wrote {_text(line)}, which is not JSON") from None
    if not isinstance(value, dict):
        raise InputError(f"it wrote {_text(line)}, which is not a JSON object")
    return value


def _no_number(name: str) -> object:
    raise ValueError(name)


def _text(line: bytes) -> str:
    return quoted(line.decode(errors="replace").rstrip("\n"))


def fields_of(answer: Answer, needed: Collection[str], optional: Collection[str] = ()) -> Answer:
    """``answer`` without its id.  Raises :class:`InputError` for a field that is missing, or that there is not."""
    given = {name: value for name, value in answer.items() if name != "id"}
    for name in needed:
        if name not in given:
            raise InputError(f"its answer lacks {quoted(name)}")
    allowed = [*needed, *optional]
    for name in given:
        if name not in allowed:
            known = f"it may have {in_words(allowed) if allowed else 'none'}"
            raise InputError(f"its answer has a field {quoted(name)}{meant(name, allowed)}; {known}")
    return given


def outcome_of(kind: type[_Word], answer: Answer) -> _Word:
    """The ``outcome`` of an answer.  Raises :class:`InputError` for a word that there is not."""
    return _word(kind, "outcome", fields_of(answer, ["outcome"])["outcome"])


def _word(kind: type[_Word], name: str, value: object) -> _Word:
    if isinstance(value, str) and value in set(kind):
        return kind(value)
    legal = in_words([each.value for each in kind], "or")
    hint = meant(value, [each.value for each in kind])
    raise InputError(f"its answer says {name} {_json(value)}{hint}, which is not {legal}")


def delivery_of(answer: Answer) -> Delivery | None:
    """Return the message of the answer to ``receive``.  Raises :class:`InputError` for another form."""
    given = fields_of(answer, ["message"], ["redelivered", "delivery_count"])
    message, redelivered, count = given["message"], given.get("redelivered", False), given.get("delivery_count")
    if message is None:
        return None
    if not isinstance(message, str) or not message:
        raise InputError(f"its answer says message {_json(message)}, which is not the id of a message, or null")
    if not isinstance(redelivered, bool):
        raise InputError(f"its answer says redelivered {_json(redelivered)}, which is not true or false")
    if count is not None:
        _number("delivery_count", count)
    return Delivery(message, redelivered=redelivered, delivery_count=count)


def depth_of(answer: Answer) -> Depth:
    """Return the answer to ``depth``.  Raises :class:`InputError` for values of other kinds."""
    given = fields_of(answer, ["ready", "unacknowledged"], ["dead_letters"])
    dead = given.get("dead_letters")
    if dead is not None and not (isinstance(dead, list) and all(isinstance(each, str) and each for each in dead)):
        raise InputError(f"its answer says dead_letters {_json(dead)}, which is not a list of ids of messages")
    return Depth(
        _number("ready", given["ready"]),
        _number("unacknowledged", given["unacknowledged"]),
        None if dead is None else tuple(dead),
    )


_MOST: Final = 2**63


def _number(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        raise InputError(f"its answer says {name} {_json(value)}, which is not a whole number from 0")
    return value


def _json(value: object) -> str:
    return shown(json.dumps(value))


# What an implementation claims

_CLAIMS: Final = ("protocol", "name", "profile", "ack_modes")
_MORE: Final = ("settings", "delivery_modes", "consumptions", "faults", "operations")


def claims_json(claims: Claims) -> dict[str, object]:
    """The answer to ``hello``."""
    return {
        "protocol": PROTOCOL,
        "name": claims.name,
        "profile": claims.profile,
        "settings": dict(claims.settings),
        "ack_modes": [each.value for each in claims.ack_modes],
        "delivery_modes": [each.value for each in claims.delivery_modes],
        "consumptions": [each.value for each in claims.consumptions],
        "faults": sorted(each.value for each in claims.faults),
        "operations": sorted(each.value for each in claims.operations),
    }


def claims_of(answer: Answer) -> Claims:
    """Return the claims in the answer to ``hello``.  Raises :class:`InputError` for impossible ones."""
    if "protocol" in answer and answer["protocol"] != PROTOCOL:
        raise InputError(f"it speaks protocol {_json(answer['protocol'])}; this ackfsm speaks {PROTOCOL}")
    given = fields_of(answer, _CLAIMS, _MORE)
    for name in ("name", "profile"):
        if not isinstance(given[name], str) or not given[name].strip():
            raise InputError(f"its answer says {name} {_json(given[name])}, which is not a text")
    settings = given.get("settings", {})
    if not isinstance(settings, dict):
        raise InputError(f"its answer says settings {_json(settings)}, which is not an object")
    return Claims(
        name=given["name"],
        profile=given["profile"],
        settings=settings,
        ack_modes=_words(AckMode, "ack_modes", given["ack_modes"]),
        delivery_modes=_words(DeliveryMode, "delivery_modes", given.get("delivery_modes", ["PERSISTENT"])),
        consumptions=_words(Consumption, "consumptions", given.get("consumptions", ["receive"])),
        faults=frozenset(_words(Fault, "faults", given.get("faults", []))),
        operations=frozenset(_words(Operation, "operations", given.get("operations", []))),
    )


def _words(kind: type[_Word], name: str, values: object) -> tuple[_Word, ...]:
    if not isinstance(values, list):
        raise InputError(f"its answer says {name} {_json(values)}, which is not a list")
    return tuple(_word(kind, name, value) for value in values)
