"""Files that lines are added to, one after the other: journals, answers, experience, measurements.

A line is on the disk when the call that adds it returns. What a process that died has left behind the last line break
is no line: readers leave it out, the next writer removes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ..errors import CacheError
from ..files import MALFORMED, TEXT_BYTES, hold, parse_json, read_plain

T = TypeVar("T")


def read_lines(path: Path) -> list[bytes]:
    """The lines of a file; none if there is no file. Raises OSError."""
    try:
        return _whole(read_plain(path, TEXT_BYTES)).splitlines()
    except FileNotFoundError:
        return []


def read_documents(path: Path, make: Callable[[Any], T]) -> list[T]:
    """What ``make`` makes of every line, which is JSON.

    Raises:
        CacheError: the file can't be read, or a line isn't what is expected; the text names it.
    """
    try:
        lines = read_lines(path)
    except OSError as error:
        raise CacheError(f"{path} can't be read: {error.strerror}.", "Name another folder.") from error
    return documents(path, lines, make)


def documents(path: Path, lines: Iterable[bytes], make: Callable[[Any], T]) -> list[T]:
    """As :func:`read_documents`, of lines that have been read from ``path``."""
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(make(parse_json(line)))
        except MALFORMED as error:
            raise CacheError(f"{path}, line {number} can't be read: {error!r:.200}.", "Remove that line.") from error
    return found


def append_lines(path: Path, lines: Iterable[str | bytes]) -> None:
    """Adds lines to a file that other processes may add to at the same time. Raises OSError."""
    with LineLog(path, wait=True) as log:
        log.append(*lines)


class LineLog:
    """A file of lines and the right to add to it, which no other process has until :meth:`close`, or this one's end.

    ``lines``: what was in it when it was opened.

    Args:
        wait: for another process that has it.

    Raises:
        BlockingIOError: another process has it, and ``wait`` is False.
        OSError: it can't be written.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not blocking: a pipe in its place is refused. Unbuffered: what fails to be written isn't written later.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        self._file = os.fdopen(descriptor, "ab", buffering=0)
        try:
            hold(descriptor, wait)
            whole = _whole(read_plain(path, TEXT_BYTES))
            self._file.truncate(len(whole))
        except BaseException:
            self._file.close()
            raise
        self.lines = whole.splitlines()
        self._size = len(whole)  # bytes of all lines that were added

    def append(self, *lines: str | bytes) -> None:
        """Adds lines, given without line breaks. Raises OSError; nothing of them is in the file then, or it is no line
        and goes with the next call."""
        data = left = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        if os.fstat(self._file.fileno()).st_size != self._size:
            self._file.truncate(self._size)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except BaseException:  # also Ctrl-C: what wasn't told mustn't be there, nor be the beginning of the next line
            with suppress(OSError):
                self._file.truncate(self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> LineLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _whole(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]
