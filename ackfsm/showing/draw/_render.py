"""Render DOT source to pictures with a Graphviz program.

The program in the ``graphviz-pure`` wheel comes first, a ``dot`` on the path second: the wheel has
its own fonts' widths built in and is the same wherever it is installed, so its pictures are the
same, byte for byte, and can be held in a repository and compared.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from ackfsm.terms import InputError

_WHEEL: Final = "graphviz-pure"
_COMMENT: Final = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_REMEDY: Final = "pip install 'ackfsm[draw]'"
_DPI: Final = "120"


def svg(source: str) -> str:
    """``source`` as SVG, without the comments in which Graphviz names itself and its version.

    Raises :class:`InputError` if there is no Graphviz, or it fails.
    """
    return _COMMENT.sub("", _run(source, "-Tsvg").decode())


def png(source: str) -> bytes:
    """``source`` as PNG.  Raises :class:`InputError` as :func:`svg` does."""
    return _run(source, "-Tpng", f"-Gdpi={_DPI}")


def _run(source: str, *options: str) -> bytes:
    program = _program()
    try:
        # The program is the wheel's own or the user's, and its only input is what this package has made.
        done = subprocess.run([program, *options], input=source.encode(), capture_output=True, check=False)  # noqa: S603
    except OSError as error:
        raise InputError(f"{program} cannot be started ({error.strerror}); {_REMEDY}") from None
    if done.returncode != 0 or not done.stdout:
        reason = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise InputError(f"{program} cannot draw ({reason or f'exit code {done.returncode}'}); {_REMEDY}")
    return done.stdout


def _program() -> str:
    found = _of_the_wheel() or shutil.which(_WHEEL) or shutil.which("dot")
    if found is None:
        raise InputError(f"svg and png need Graphviz: {_REMEDY}")
    return found


def _of_the_wheel() -> str | None:
    try:
        files = importlib.metadata.files(_WHEEL) or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    programs = (Path(str(file.locate())) for file in files if file.stem == _WHEEL)
    return next((str(program.resolve()) for program in programs if program.is_file()), None)
