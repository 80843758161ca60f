"""The parameters of connection URLs."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator

from ackfsm.terms import InputError


def url_parameters(url: str) -> Iterator[tuple[str, str]]:
    """The parameters of a connection URL with their values, in their order.

    URLs inside another one (``failover:(tcp://a:61616?x=1,tcp://b:61616)?y=2``) have theirs too.  A value may stand in
    single quotes, as in the URLs of Qpid's client for AMQP 0-x.
    Raises :class:`InputError` for what is no URL; it does not repeat the text, which may hold a password.
    """
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|\(", url):
        raise InputError("--url is no URL; it begins with a scheme, as tcp://host:61616?blockOnDurableSend=false does")
    for part in re.split(r"[(),]", url) if "(" in url else [url]:
        try:
            query = urllib.parse.urlsplit(part).query
            pairs = urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
        except ValueError:
            raise InputError("--url cannot be read: its host, or parameters that are not name=value&...") from None
        for name, value in pairs:
            quotes = len(value) > 1 and value[0] == value[-1] == "'"
            yield name, value[1:-1] if quotes else value
