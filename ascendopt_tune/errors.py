"""Every exception the project raises on purpose.

An error tells what is wrong, where, the value, the limit where there is one, and the next step. The command line
prints ``str(error)`` as one paragraph and exits with code 2; a traceback is shown only with ``--debug``.
All of them survive pickling, because they cross the border of the worker process.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.util import find_spec


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with the known name that is nearest to a mistyped one; nothing where none is near."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""


class AscendOptError(Exception):
    """Base of every error a user can cause or must know of.

    Args:
        message: what went wrong, where, and the value that was refused.
        hint: the next step, a full sentence; appended to the text.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    @property
    def place(self) -> str:
        """Where it went wrong, in front of the message; nothing where the message tells."""
        return ""

    def __str__(self) -> str:
        return f"{self.place}{self.message} {self.hint}".strip()


class OperatorError(AscendOptError):
    """An operator can't be found or its files don't have the expected layout."""


class CaseError(AscendOptError):
    """A case doesn't fit the operator: input, dtype, shape, attribute or value."""


class ToolchainError(AscendOptError):
    """No compiler, no toolkit, or the toolkit can't be built."""


class HostProgramError(AscendOptError):
    """The tiling program doesn't compile, lacks a tiling function, or refuses the case."""


class HostProgramStuck(HostProgramError):
    """A function of the tiling program did not end within its limit of time."""


class KernelCompileError(AscendOptError):
    """The kernel doesn't compile; ``log`` holds the compiler's text with the user's files and lines."""

    def __init__(self, message: str, hint: str = "", log: str = "") -> None:
        super().__init__(message, hint)
        self.args = (message, hint, log)
        self.log = log


class DeviceError(AscendOptError):
    """A call into the toolkit's C ABI failed; ``code`` is the aclError."""

    def __init__(self, message: str, hint: str = "", code: int = 0) -> None:
        super().__init__(message, hint)
        self.args = (message, hint, code)
        self.code = code


class Lost(AscendOptError):
    """A process was killed from outside, with it an answer; asking again may help."""


class CacheError(AscendOptError):
    """The cache can't be read or written (full disk, read-only folder, wrong version)."""


class BankError(AscendOptError):
    """An experience bank can't be read, written or asked: a damaged record, another schema, an unknown id."""


class ProfileError(AscendOptError):
    """The files of a profiler can't be read: none there, a column is missing, a value is no number."""


class NoWorkingCandidate(AscendOptError):
    """Nothing passed the gate, not even the baseline pair; the text counts the outcomes."""


class OutOfTime(AscendOptError):
    """The time a run was given is over, and it has nothing yet; its trials are in the journal."""


class SettingsError(AscendOptError):
    """An environment variable or option has an unknown name or a bad value."""


class LlmError(AscendOptError):
    """A language model gave no usable answer (endpoint, key, limit, reply); a run goes on without it."""


def need(
    package: str, extra: str, what: str, *, or_else: str = "", kind: type[AscendOptError] = AscendOptError
) -> None:
    """Raises ``kind``, with the command that installs it, where an optional package is missing; imports nothing.

    Args:
        extra: of ``pyproject.toml``, that has ``package``.
        what: needs it, as the beginning of a sentence.
        or_else: what does without it, as its end.
    """
    if find_spec(package) is None:
        install = f"pip install 'ascendopt_tune[{extra}]'"
        raise kind(f"{what} needs the package {package}, which is not installed.", f"{install}{or_else}.")
