"""Serve an adapter in Python over standard input and output, for ``ackfsm conform -- COMMAND``."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final

from ackfsm.driving.conform._adapter import Adapter, BrokerDownError, ClientClosedError, Strike
from ackfsm.driving.conform._claims import Mode
from ackfsm.driving.conform._wire import claims_json, encoded, parsed
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault


def serve(adapter: Adapter, requests: BinaryIO | None = None, answers: BinaryIO | None = None) -> None:
    """Answer requests, a line each, until there are no more; by default from standard input, on standard output.

    Whatever else is printed must go to standard error.  Raises what the adapter raises beside
    :class:`ClientClosedError` and :class:`BrokerDownError`, and :class:`ackfsm.terms.InputError` for a line that is no
    request.
    """
    lines = sys.stdin.buffer if requests is None else requests
    out = sys.stdout.buffer if answers is None else answers
    try:
        for line in lines:
            request = parsed(line)
            out.write(encoded({"id": request["id"], **_answer(adapter, request)}))
            out.flush()
    finally:
        adapter.end()


def _answer(adapter: Adapter, request: Mapping[str, Any]) -> Mapping[str, object]:
    try:
        if request["op"] in _ASK:
            return _ASK[request["op"]](adapter, request)
        _TELL[request["op"]](adapter, request)
    except ClientClosedError:
        return {"error": "closed"}
    except BrokerDownError:
        return {"error": "down"}
    return {}


_Request = Mapping[str, Any]


def _during(request: _Request) -> Strike | None:
    given = request.get("during")
    return None if given is None else Strike(Fault(given["fault"]), given["after"])


def _begin(adapter: Adapter, request: _Request) -> None:
    mode = Mode(
        AckMode(request["ack_mode"]), DeliveryMode(request["delivery_mode"]), Consumption(request["consumption"])
    )
    adapter.begin(mode, request["queue"])


def _receive(adapter: Adapter, request: _Request) -> Mapping[str, object]:
    delivery = adapter.receive(request["client"], request["queue"], request["timeout"])
    return {"message": None} if delivery is None else dataclasses.asdict(delivery)


_ASK: Final[Mapping[str, Callable[[Adapter, _Request], Mapping[str, object]]]] = {
    "hello": lambda adapter, _: claims_json(adapter.claims()),
    "send": lambda adapter, request: {
        "outcome": adapter.send(request["client"], request["queue"], request["message"], _during(request)).value
    },
    "receive": _receive,
    "acknowledge": lambda adapter, request: {
        "outcome": adapter.acknowledge(request["client"], request["message"], _during(request)).value
    },
    "commit": lambda adapter, request: {"outcome": adapter.commit(request["client"], _during(request)).value},
    "depth": lambda adapter, request: dataclasses.asdict(adapter.depth(request["queue"])),
}
_TELL: Final[Mapping[str, Callable[[Adapter, _Request], None]]] = {
    "begin": _begin,
    "done": lambda adapter, request: adapter.done(request["client"], request["message"], failed=request["failed"]),
    "rollback": lambda adapter, request: adapter.rollback(request["client"]),
    "recover": lambda adapter, request: adapter.recover(request["client"]),
    "cancel": lambda adapter, request: adapter.cancel(request["client"]),
    "close": lambda adapter, request: adapter.close(request["client"]),
    "fault": lambda adapter, request: adapter.fault(Fault(request["fault"]), request.get("client")),
    "restart": lambda adapter, _: adapter.restart(),
}
"""What has no answer but that it is done."""
