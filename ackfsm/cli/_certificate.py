"""``ackfsm certificate``: check again, without the search, what a certificate says, and write its network as data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ackfsm import tables
from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import Command, Option
from ackfsm.cli._output import emit, print_file, progress_bars
from ackfsm.tables import is_profile_file
from ackfsm.terms import InputError
from ackfsm.text import shown


def _certificate(arguments: argparse.Namespace) -> int:
    from ackfsm.checking import certificates
    from ackfsm.showing.views.certificate import certificate_screen

    if arguments.profile is not None and not is_profile_file(arguments.profile):
        raise InputError("a certificate names its profile; --profile is for the YAML file of one that does not ship")
    certificate = certificates.read_certificate(arguments.path)
    specification, _ = tables.load().of_profile(arguments.profile)
    try:
        if arguments.action == "network":
            print_file(certificates.network_of(certificate, specification))
            return 0
        with progress_bars(later=True) as bars:
            found = certificates.verify_certificate(certificate, specification, bars)
    except InputError as error:
        raise InputError(f"{shown(str(arguments.path))}: {error}") from None
    emit(
        arguments,
        {"file": str(arguments.path), **found.as_json()},
        lambda: certificate_screen(found, specification, str(arguments.path)),
    )
    return result_code(violated=bool(found.refuted), undetermined=not found.verified)


COMMAND: Final = Command(
    "certificate",
    _certificate,
    "check again, without the search, what `check --messages any --certificate FILE` has proved",
    "ackfsm certificate verify jms.certificate",
    "all",
    (
        Option(
            "ACTION",
            "verify: tell whether all that it says is so; network: print the network that it is about, as JSON",
            dest="action",
            choices=["verify", "network"],
        ),
        Option("FILE", "the certificate", Path, dest="path"),
        Option("--profile P", "the YAML file of the profile, if it was made with one that does not ship"),
    ),
)
