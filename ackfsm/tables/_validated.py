"""A cache of valid tables, and of the shipped ones as they were read: reading takes longer than a look-up."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import pickle
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import platformdirs

from ackfsm import terms, text
from ackfsm.support.files import write_file
from ackfsm.tables._conditions import ALWAYS

if TYPE_CHECKING:
    from ackfsm.tables._specification import Specification

_DIGEST = hashlib.sha256().digest_size


def validation_stamp(directory: Path) -> Path:
    """The file in the user's cache folder that marks exactly these tables as valid for exactly this version.

    Its name is a hash over what reads tables, the schema and all tables in ``directory``.  A file that cannot
    be read is left out of it: reading that table raises the error, so the tables are not marked.
    """
    digest = hashlib.sha256()
    for file in sorted([*Path(__file__).parent.glob("*.py"), Path(terms.__file__), Path(text.__file__)]):
        digest.update(file.read_bytes())
    for file in sorted([directory / "schema.json", *directory.rglob("*.yaml")]):
        digest.update(f"{file.relative_to(directory)}\0".encode())
        with contextlib.suppress(OSError):  # reading the table raises it, and then nothing is marked
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return _folder() / digest.hexdigest()


def is_validated(stamp: Path) -> bool:
    """Whether the tables were found valid before; ``False`` where the folder cannot be read."""
    try:
        return stamp.is_file()
    except OSError:
        return False


def mark_validated(stamp: Path) -> None:
    """Remember that the tables are valid; where nothing can be written they are validated again next time."""
    with contextlib.suppress(OSError):
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()


def kept(stamp: Path) -> Specification | None:
    """What :func:`keep` wrote for the tables of ``stamp``; ``None`` where that is damaged, of others, or not there.

    The file has a digest of its own, so that a damaged one is not believed.
    """
    try:
        data = _file().read_bytes()
        if data[:_DIGEST] != _seal(stamp, data[_DIGEST:]):
            return None
        with _uncollected():
            found: Specification = pickle.loads(data[_DIGEST:])  # noqa: S301 - written here, in a folder of the user
    except (OSError, pickle.UnpicklingError):
        return None
    return found


def keep(stamp: Path, specification: Specification) -> None:
    """Keep the specification read from the tables of ``stamp``, in place of an earlier version of this installation."""
    out = io.BytesIO()
    _Pickler(out, pickle.HIGHEST_PROTOCOL).dump(specification)
    with contextlib.suppress(terms.AckfsmError, OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        write_file(_file(), _seal(stamp, out.getvalue()) + out.getvalue())


def _folder() -> Path:
    return Path(platformdirs.user_cache_dir("ackfsm")) / "tables"


def _file() -> Path:
    which = f"{sys.version_info}\0{__file__}"
    return _folder() / f"{hashlib.sha256(which.encode()).hexdigest()}.pickle"


def _seal(stamp: Path, data: bytes) -> bytes:
    return hashlib.sha256(stamp.name.encode() + data).digest()


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """The collector of cycles rests, which else searches thousands of new objects for garbage, in vain."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Pickler(pickle.Pickler):
    """Knows the two kinds of values in the tables that Python does not pickle as what they are."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, MappingProxyType):
            return _read_only, (dict(value),)
        return "ALWAYS" if value is ALWAYS else NotImplemented


def _read_only(mapping: Mapping[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(dict(mapping))
