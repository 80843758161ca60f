"""Export one network in one format, as the files to write."""

from __future__ import annotations

import re
from enum import StrEnum

from ackfsm.checking.export._json import network_json
from ackfsm.checking.export._promela import promela
from ackfsm.checking.export._scxml import scxml
from ackfsm.checking.export._tla import tla, tla_configuration
from ackfsm.checking.network import Network
from ackfsm.terms import InputError


class Format(StrEnum):
    """The form of an exported system."""

    PROMELA = "promela"
    TLA = "tla"
    JSON = "json"
    SCXML = "scxml"


def files(network: Network, form: Format, name: str) -> dict[str, str]:
    """The text of each file, by the ending of its name; the model itself comes first.

    ``name`` is that of the files without an ending.  Raises :class:`ackfsm.terms.InputError` if it
    cannot be the name of a TLA+ module, which must be called as its file.
    """
    match form:
        case Format.PROMELA:
            return {".pml": promela(network)}
        case Format.JSON:
            return {".json": network_json(network)}
        case Format.SCXML:
            return {".scxml": scxml(network)}
        case Format.TLA:
            if not re.fullmatch(r"(?=.*[A-Za-z])\w+", name, re.ASCII):
                sentence = f"{name}.tla cannot be a TLA+ module; name the file with letters, digits and underscores"
                raise InputError(sentence)
            return {".tla": tla(network, name), ".cfg": tla_configuration(network)}
    raise AssertionError(form)
