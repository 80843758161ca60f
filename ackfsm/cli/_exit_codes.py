"""The exit codes of all commands, and what decides them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ackfsm.terms import AckfsmError

AS_PROMISED: Final = 0
VIOLATION: Final = 1
"""A promise is broken, a claim refuted, a history invalid, a journal damaged, a need met by no configuration.

Nothing else ends with this code."""
USAGE: Final = 2
"""The input is at fault: an option, a setting, a file."""
UNDETERMINED: Final = 3
FAILED: Final = 70
"""The machine failed (a full disk, no memory, a worker that was killed), or this package did."""
INTERRUPTED: Final = 130


def result_code(*, violated: bool, undetermined: bool = False) -> int:
    """Return the exit code of a command with a result; a violation outweighs ``undetermined``."""
    if violated:
        return VIOLATION
    return UNDETERMINED if undetermined else AS_PROMISED


def error_code(error: AckfsmError) -> int:
    """The exit code of a command that this error has ended."""
    from ackfsm.terms import InputError, SpecError

    return USAGE if isinstance(error, InputError | SpecError) else FAILED
