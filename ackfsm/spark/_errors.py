"""Translate errors of Spark to messages."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame  # noqa: TC002 - Spark is there wherever this module is

from ackfsm.terms import AckfsmError, HostError, InputError, SpecError

_OWN: Final = {error.__name__: error for error in (AckfsmError, HostError, InputError, SpecError)}


@contextlib.contextmanager
def spark_errors_translated(what: str) -> Iterator[None]:
    """An error of Spark during ``what`` as one sentence; one of ours in a worker as it was raised there."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        own = re.search(r"ackfsm\.terms\.(\w+): (.+)", str(error))
        if own and own[1] in _OWN:
            raise _OWN[own[1]](own[2]) from error
        reason = " ".join(str(error).partition("\tat ")[0].split())
        raise AckfsmError(f"Spark gave up on {what}: {reason}") from error


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of ``frame``, by Arrow: ``collect()`` ends early and says nothing where Java runs out of memory."""
    found: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return found
