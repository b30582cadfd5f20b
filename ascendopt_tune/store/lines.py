"""Files that lines are added to, one after the other: journals, answers, experience, measurements.

A line is on the disk when the call that adds it returns. What a process that died has left behind the last line break
is no line: readers leave it out, the next writer removes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from ..files import TEXT_BYTES, hold, read_plain


def read_lines(path: Path) -> list[bytes]:
    """The lines of a file; none if there is no file. Raises OSError."""
    try:
        return _whole(read_plain(path, TEXT_BYTES)).splitlines()
    except FileNotFoundError:
        return []


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

    def append(self, *lines: str | bytes) -> None:
        """Adds lines, given without line breaks. Raises OSError; what was written of them then is no line."""
        data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        while data:
            data = data[self._file.write(data) :]
        os.fsync(self._file.fileno())

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
