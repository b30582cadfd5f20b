"""How a command that can't do its job says so: a paragraph on stderr, with ``--json`` a document too, exit code 2."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..errors import AscendOptError
from ..nouns.outcome import CompileFailed, Deadlock, LaunchFailed
from ..report.lines import folded

EXIT_CODE = 2
INTERRUPTED = 130  # what shells give a program that Ctrl-C ended: 128 + SIGINT
NOBODY_READS = 141  # and one whose reader has gone: 128 + SIGPIPE
_STDOUT = "standard output"
_AGAIN = "Correct it there and run the command again."
_NOT_COVERED = "The virtual NPU can't run it at this stage; docs/api.md lists what it covers."


def tell(error: AscendOptError | OSError | MemoryError, *, json: bool, debug: bool) -> int:
    """Prints ``error``, with the traceback if ``debug``; returns the exit code."""
    if isinstance(error, AscendOptError):
        message, log = f"{error.place}{error.message}", str(getattr(error, "log", ""))
        next_step = error.hint or _next_step(error.message)
    elif isinstance(error, MemoryError):
        message = f"there isn't enough memory: {error or 'an allocation failed'}."
        next_step, log = "Give a smaller case; --debug shows where it was.", ""
    elif error.filename == _STDOUT:
        message = f"what it prints can't be written to {_STDOUT}: {error.strerror or error}."
        next_step, log = "Free some space there and run the command again; what was tuned is in the cache.", ""
        print_nothing_more()
    else:  # a full disk or a folder without permission, wherever it was met
        message = f"{error.filename or 'writing a file failed'}: {error.strerror or error}."
        next_step = "Free some space, or name another cache folder in ASCENDOPT_CACHE_DIR; --debug shows where it was."
        log = ""
    if debug:
        traceback.print_exception(error)
        print(log, file=sys.stderr)
    paragraph(message, next_step)
    if json and getattr(error, "filename", None) != _STDOUT:
        print_document(type(error).__name__, message, next_step, log)
    return EXIT_CODE


def name_value(error: Exception) -> None:
    """Has an option's refusal say what was given: the parser's own words (pydantic's) say only what it should be."""
    found = getattr(error.__cause__, "errors", None)
    if not (callable(found) and hasattr(error, "message")):
        return
    first: Mapping[str, object] = next(iter(found()), {})
    said = str(first.get("msg", "")).removeprefix("Value error, ")
    given = repr(first.get("input"))
    if said:
        error.message = said if given in said else f"{given} was given. {said}."


class _Output(io.TextIOWrapper):
    """Standard output, whose errors say that they are its own."""

    def write(self, text: str, /) -> int:
        with self._trouble():
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with self._trouble():
            super().flush()

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._meet(error)

    def _meet(self, error: OSError) -> None:
        error.filename = _STDOUT
        raise error


class _Progress(_Output):
    """Standard error: where it can't be written, a long run goes on without, unless its reader has gone."""

    def _meet(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            raise error


def prepare_output() -> None:
    """Has errors in printing tell where they are; a character that the terminal's encoding lacks is none, and a width
    of none (what some containers and editors say in ``COLUMNS``) is no width: nothing would be printed. Warnings are
    what they say, without the line of this package that they come from."""
    warnings.formatwarning = lambda message, *where: f"warning: {message}\n"
    if not os.environ.get("COLUMNS", "1").strip("0"):
        del os.environ["COLUMNS"]
    out, err = sys.stdout, sys.stderr
    if isinstance(out, io.TextIOWrapper):
        sys.stdout = _Output(out.buffer, out.encoding, "replace", line_buffering=out.line_buffering)
    if isinstance(err, io.TextIOWrapper):
        sys.stderr = _Progress(err.buffer, err.encoding, "replace", line_buffering=True)


def print_nothing_more() -> None:
    """Standard output leads nowhere from now on: what is left of it fails no more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def print_document(kind: str, message: str, next_step: str, log: str = "") -> None:
    """What ``--json`` prints where a command has no answer."""
    from ..report.text import json_text  # and with it half of the package

    print(json_text({"error": {"kind": kind, "message": message, "next_step": next_step, "log": log}}))


def tell_unbuilt(outcome: CompileFailed | Deadlock | LaunchFailed, *, debug: bool) -> int:
    """Prints why a pair could not be launched at all, or never ends; returns the exit code."""
    if isinstance(outcome, LaunchFailed):
        next_step = "Check the case (shapes, dtypes, formats, attributes) against what the operator is written for."
        paragraph(outcome.reason, next_step)
    elif isinstance(outcome, Deadlock):
        paragraph(outcome.reason, outcome.advice)
    else:
        if debug:
            print(outcome.log, file=sys.stderr)
        again = f"Correct the {outcome.part} source there; --debug shows the compiler's whole text."
        paragraph(outcome.reason, _next_step(outcome.reason, again))
    return EXIT_CODE


def _next_step(message: str, again: str = _AGAIN) -> str:
    """A source that is right, but beyond the virtual NPU, is not to be corrected."""
    return _NOT_COVERED if "not covered" in message else again


def paragraph(message: str, next_step: str) -> None:
    """One paragraph on stderr: what is wrong, and the next step."""
    text = " ".join(line.strip() for line in message.splitlines() if line.strip())
    if next_step and next_step not in text:
        text += ("" if text.endswith((".", "!", "?", ")")) else ".") + f" {next_step}"
    print(folded(f"error: {text}", sys.stderr), file=sys.stderr, flush=True)
