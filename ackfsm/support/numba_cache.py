"""Functions compiled by Numba, kept between runs; where they cannot be kept, they are compiled again with a warning.

Numba refuses to compile with a cache when it finds no folder for it, and fails in the midst of a search when its files
are damaged or the disk is full.  It caches machine code, and runs what it reads: so a file is believed only if its
digest is right.  Numba compiles what a function calls into it, and looks at the file of the function alone: here kept
code is of all the files that are compiled together, as they are.
"""

from __future__ import annotations

import graphlib
import hashlib
import pickle
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

_MAKERS = frozenset({"copy", "empty", "full", "ones", "zeros"})
"""The names by which compiled functions make arrays."""


class CacheWarning(RuntimeWarning):
    """Compiled code cannot be cached, which costs nothing but time."""


def compiled(function: Any, known: dict[str, Any] | None = None, files: Sequence[Path] = ()) -> Any:
    """``function`` compiled; while it runs, other threads have the lock of the interpreter.

    What it calls by a name of ``known`` is the function there, compiled before; it is added to them by its own name.
    Once one of ``files`` has changed it is compiled again.
    """
    bound = function if known is None else FunctionType(function.__code__, function.__globals__ | known)
    # Without arrays of its own a function counts no references to those that it gets: each call would count them, by
    # turns with other threads, and in memory of which Numba does not see that there is none.
    counted: dict[str, Any] = {"_nrt": _makes_arrays(function, known or {})}
    made: Any = numba.njit(nogil=True, **counted)(bound)
    if hasattr(made, "_cache"):  # it is the function itself where NUMBA_DISABLE_JIT is set
        made._cache = cache_of(bound, files)  # noqa: SLF001 - njit(cache=True) takes no cache of ours
    if known is not None:
        known[function.__name__] = made
    return made


def _makes_arrays(function: Any, known: dict[str, Any]) -> bool:
    """Whether ``function`` makes arrays, or one that it calls; Numba refuses what makes some and is not found here."""
    names = function.__code__.co_names
    called = (getattr(known.get(name), "targetoptions", {}) for name in names)
    return not _MAKERS.isdisjoint(names) or any(options["_nrt"] for options in called if options)


def compiled_functions(*modules: ModuleType) -> SimpleNamespace:
    """Return all functions of ``modules`` compiled, each after those that it calls; compiling is put off to a call."""
    plain = {
        name: each
        for module in modules
        for name, each in vars(module).items()
        if isinstance(each, FunctionType) and each.__module__ == module.__name__
    }
    files = [Path(str(module.__file__)) for module in modules]
    known: dict[str, Any] = {}
    calls = {name: [called for called in each.__code__.co_names if called in plain] for name, each in plain.items()}
    for name in graphlib.TopologicalSorter(calls).static_order():
        compiled(plain[name], known, files)
    return SimpleNamespace(**known)


def cache_of(function: Any, files: Sequence[Path] = ()) -> Any:
    """The cache of a compiled ``function``: what :mod:`numba` takes for one, with an answer to every failure.

    It is empty once one of ``files`` has changed.
    """
    try:
        return _Cache(function, files)
    except (OSError, RuntimeError):
        _warn("neither the folder of this package nor that of the user's caches can be written")
        return NullCache()


def _warn(why: str) -> None:
    remedy = "set NUMBA_CACHE_DIR to a folder that can be written"
    warnings.warn(f"compiled code cannot be kept ({why}), so it takes longer; {remedy}", CacheWarning, stacklevel=2)


class _Cache(FunctionCache):
    def __init__(self, function: Any, files: Sequence[Path]) -> None:
        super().__init__(function)
        plain = self._cache_file
        stamps = (plain._source_stamp, *map(_stamp, files))  # noqa: SLF001 - nothing else tells
        self._cache_file = _Sealed(plain._cache_path, self._impl.filename_base, stamps)  # noqa: SLF001 - as before

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except MemoryError:
            raise
        except OSError as error:
            self._give_up(error)
        except Exception:  # noqa: BLE001 - reading what is damaged may raise anything
            self._forget()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._give_up(error)

    def _forget(self) -> None:
        """Remove a damaged entry, which is replaced when the function has been compiled."""
        try:
            self.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.disable()
        _warn(f"{self.cache_path}: {error.strerror}")


def _stamp(file: Path) -> tuple[float, int]:
    """What Numba takes for the sign that a file is as it was."""
    found = file.stat()
    return found.st_mtime, found.st_size


class _Sealed(IndexDataCacheFile):
    """Stores each entry with a digest of it and of its key."""

    def save(self, key: Any, data: Any) -> None:
        kept = self._dump(data)
        super().save(key, (_digest(key, kept), kept))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        if found is None:
            return None
        digest, kept = found
        if digest != _digest(key, kept):
            raise pickle.UnpicklingError("damaged")
        return pickle.loads(kept)  # noqa: S301 - Numba keeps nothing else, in a folder of the user alone


def _digest(key: Any, kept: bytes) -> bytes:
    return hashlib.sha256(repr(key).encode() + kept).digest()
