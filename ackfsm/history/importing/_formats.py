"""The formats that can be imported, each with the module that reads it, which is loaded when it is asked for."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ackfsm.history.importing.interface import Importer, Options
from ackfsm.terms import InputError
from ackfsm.text import meant, quoted


@dataclasses.dataclass(frozen=True, slots=True)
class Format:
    """A format that can be imported.

    Attributes:
        name: as it is typed.
        description: what it is, in one line.
        module, function: a module, and its function of the options that returns an :class:`Importer`.
        mapped: whether it needs a mapping file (``--mapping``).
    """

    name: str
    description: str
    module: str
    function: str = "importer"
    mapped: bool = False

    def importer(self, options: Options) -> Importer:
        """What reads it.

        Raises :class:`InputError` for options that it cannot have, and for a mapping file that is wrong.
        """
        if self.mapped and options.mapping is None:
            raise InputError(
                f"{self.name} needs a mapping, which says what each column means; name its file with --mapping, or have"
                " one proposed: ackfsm import --guess FILE"
            )
        if not self.mapped and options.mapping is not None:
            raise InputError(f"{self.name} needs no mapping; leave --mapping out, or say {_MAPPED}")
        make: Callable[[Options], Importer] = getattr(importlib.import_module(self.module), self.function)
        return make(options)


_MAPPED: Final = "table"

_ALL: Final = (
    Format(
        _MAPPED,
        "anybody's CSV, JSON lines or Parquet, by a mapping file",
        "ackfsm.history.importing.table",
        mapped=True,
    ),
    Format("otlp", "messaging spans of OpenTelemetry, as OTLP JSON", "ackfsm.history.importing.otlp"),
    Format("jepsen", "histories of Jepsen's queue workloads, in EDN", "ackfsm.history.importing.jepsen"),
    Format("rabbitmq-firehose", "messages of RabbitMQ's firehose, as JSON lines", "ackfsm.history.importing.rabbitmq"),
    Format(
        "rabbitmq-tracing",
        "the log of RabbitMQ's plugin rabbitmq_tracing",
        "ackfsm.history.importing.rabbitmq",
        function="tracing",
    ),
    Format("artemis", "logs of ActiveMQ Artemis (logging plugin, audit)", "ackfsm.history.importing.artemis"),
    Format("activemq", "logs of ActiveMQ Classic (loggingBrokerPlugin)", "ackfsm.history.importing.activemq"),
)

FORMATS: Mapping[str, Format] = MappingProxyType({each.name: each for each in _ALL})
"""All of them, by name."""


def format_named(name: str) -> Format:
    """The format of this name; raises :class:`InputError` with the nearest if there is none."""
    if name in FORMATS:
        return FORMATS[name]
    if name.endswith((".yaml", ".yml")):
        raise InputError(
            f"{quoted(name)} is no format but a mapping: name the format {_MAPPED}, and --mapping {quoted(name)}"
        )
    raise InputError(f"there is no format {quoted(name)}{meant(name, FORMATS)}; it is one of {', '.join(FORMATS)}")
