"""OTLP JSON as typed objects: only what an import of messaging spans needs of it.

The field names are those of the protocol (opentelemetry-proto, ``trace.proto``, as JSON), and whole numbers of 64 bits
are text there, as in all JSON made of Protocol Buffers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

_Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]

_KINDS: Final[Mapping[str, int]] = {
    "SPAN_KIND_UNSPECIFIED": 0,
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}
"""The kinds of spans by their names, which some writers use in place of the numbers."""

_STATUS: Final[Mapping[str, int]] = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


class Value(msgspec.Struct, gc=False):
    """The value of an attribute, of the types that messaging attributes have."""

    stringValue: str | None = None  # noqa: N815 - the protocol's names
    intValue: int | None = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815


class Attribute(msgspec.Struct, gc=False):
    """A key and its value."""

    key: str
    value: Value


class Link(msgspec.Struct, gc=False):
    """A link to another span."""

    traceId: str  # noqa: N815
    spanId: str  # noqa: N815
    attributes: tuple[Attribute, ...] = ()


class Status(msgspec.Struct, gc=False):
    """How a span ended; ``code`` 2 is an error."""

    code: int = 0


class Span(msgspec.Struct, gc=False):
    """One span."""

    traceId: str  # noqa: N815
    spanId: str  # noqa: N815
    startTimeUnixNano: _Nanoseconds  # noqa: N815
    endTimeUnixNano: _Nanoseconds  # noqa: N815
    kind: int = 0
    parentSpanId: str = ""  # noqa: N815
    traceState: str = ""  # noqa: N815
    attributes: tuple[Attribute, ...] = ()
    links: tuple[Link, ...] = ()
    droppedLinksCount: _Count = 0  # noqa: N815
    status: Status | None = None


class _ScopeSpans(msgspec.Struct, gc=False):
    spans: list[Span] = []


class Resource(msgspec.Struct, gc=False):
    """What produced spans."""

    attributes: tuple[Attribute, ...] = ()


class _ResourceSpans(msgspec.Struct, gc=False):
    resource: Resource | None = None
    scopeSpans: list[_ScopeSpans] = []  # noqa: N815


class _Document(msgspec.Struct, gc=False):
    resourceSpans: list[_ResourceSpans] | None = None  # noqa: N815


class NotOtlpError(ValueError):
    """A document that is not OTLP JSON."""


_decode: Final = msgspec.json.Decoder(_Document, strict=False).decode

Spans = Iterator[tuple[Resource | None, Sequence[Span]]]


def spans_of(text: bytes, unread: Callable[[str], None]) -> Spans | None:
    """The spans of a document, with the resource that made them; ``None`` for one of logs or metrics.

    A span that cannot be read is told to ``unread``, and the others are read.  Raises :class:`NotOtlpError`.
    """
    try:
        with contextlib.suppress(msgspec.ValidationError):
            groups = _decode(text).resourceSpans
            if groups is not None:
                return ((of.resource, scope.spans) for of in groups for scope in of.scopeSpans if scope.spans)
        return _one_by_one(msgspec.json.decode(text), unread)
    except RecursionError:
        raise NotOtlpError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise NotOtlpError("it is not UTF-8") from None
    except msgspec.DecodeError:
        raise NotOtlpError("it is not JSON") from None


_OTHERS: Final = ("resourceLogs", "resourceMetrics", "resourceProfiles")


def _one_by_one(document: Any, unread: Callable[[str], None]) -> Spans | None:
    """The same of a document in which something is not as it should be."""
    if not isinstance(document, dict) or not isinstance(document.get("resourceSpans"), list):
        if isinstance(document, dict) and any(other in document for other in _OTHERS):
            return None
        raise NotOtlpError("it has no resourceSpans")
    return _tolerant(document["resourceSpans"], unread)


def _tolerant(groups: Sequence[Any], unread: Callable[[str], None]) -> Spans:
    for group in groups:
        try:
            resource = msgspec.convert(group["resource"], Resource, strict=False) if group.get("resource") else None
            scopes = [scope.get("spans", []) for scope in group.get("scopeSpans", [])]
        except (msgspec.ValidationError, AttributeError, TypeError, KeyError):
            unread("resource spans that are not as OTLP JSON has them")
            continue
        for scope in scopes:
            yield resource, list(_converted(scope, unread))


def _converted(spans: Any, unread: Callable[[str], None]) -> Iterator[Span]:
    for span in spans if isinstance(spans, list) else [spans]:
        try:
            yield msgspec.convert(_with_numbers(span), Span, strict=False)
        except msgspec.ValidationError as error:
            unread(f"a span that is not as OTLP JSON has it: {error}")


def _with_numbers(span: Any) -> Any:
    """With the numbers of kind and status where they are named."""
    if not isinstance(span, dict):
        return span
    status = span.get("status")
    if isinstance(status, dict) and status.get("code") in _STATUS:
        span = {**span, "status": {**status, "code": _STATUS[status["code"]]}}
    return {**span, "kind": _KINDS[span["kind"]]} if span.get("kind") in _KINDS else span


def value_of(attributes: Sequence[Attribute], *keys: str) -> str | None:
    """The text of the first of these attributes that is there."""
    for key in keys:
        for each in attributes:
            if each.key == key and (each.value.stringValue or each.value.intValue is not None):
                return each.value.stringValue or str(each.value.intValue)
    return None
