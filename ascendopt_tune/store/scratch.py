"""Temporary folders that don't stay: what a killed process leaves is removed by the next one that makes one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType

from ..files import hold

_GRACE_S = 60.0  # between the making of a folder and its lock; also for a file system whose clock is another


class Scratch:
    """A new folder in ``parent`` (default: the system's place for temporary files), there until :meth:`close`.

    Its owner holds a lock on it, which the system releases when the owner dies: a folder with the same prefix, of the
    same user, that nobody holds belongs to no living process and is removed.

    Raises:
        OSError: the folder can't be made.
    """

    def __init__(self, *, prefix: str, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        _sweep(parent, prefix)
        self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._descriptor: int | None = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # a file system without locks: then nobody else gets one either
            hold(self._descriptor, wait=False)

    def close(self) -> None:
        """Removes the folder. Harmless when repeated."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _sweep(parent: Path, prefix: str) -> None:
    named = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}")  # as tempfile names them; nobody's own folder
    for folder in (p for p in parent.iterdir() if named.fullmatch(p.name)):
        try:
            found = folder.lstat()
            if found.st_uid != os.geteuid() or abs(time.time() - found.st_mtime) < _GRACE_S:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            hold(descriptor, wait=False)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its owner lives
        finally:
            os.close(descriptor)
