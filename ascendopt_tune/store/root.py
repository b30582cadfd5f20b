"""The writable folder of a cache: its lock, and folders that are there whole or not at all.

``<root>/entries/<operator>/<key hash>/`` holds results, in read-only layers as well, ``<root>/tmp`` what is being
written, ``<root>/lock`` is the writers' lock.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..files import locked

_ASIDE = "replaced-"
_AT_ONCE = 32  # files that are flushed to the disk
STALE_S = 3600.0  # a temporary folder older than this belongs to no living writer


@dataclass(frozen=True)
class WritableRoot:
    """``path`` need not exist. Every method raises OSError where the folder can't be written."""

    path: Path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The writers' lock; released by the system when a holder dies."""
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path / "lock"):
            yield

    def write(self, folder: Path, files: Mapping[str, bytes]) -> None:
        """Makes or replaces ``folder`` of the root, on disk before it returns; with the lock held."""
        with self._work_folder() as work:
            for name, data in files.items():
                target = work / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "xb") as file:
                    file.write(data)
            flush(work)
            os.chmod(work, 0o755)  # mkdtemp's 0700 would hide the entry from other users of a shared root
            folder.parent.mkdir(parents=True, exist_ok=True)
            if not folder.exists():
                os.rename(work, folder)
            elif not _exchange(work, folder):
                self._replace(folder, work)
            for place in (folder.parent, folder.parent.parent, self.path):  # a folder's name is in the one above
                sync(place)
            with suppress(OSError):
                sync(self.path.parent)

    def _replace(self, folder: Path, work: Path) -> None:
        """In two steps; a writer that dies between them leaves the old one where :meth:`sweep` finds it."""
        aside = self._aside(folder)
        os.rename(folder, aside)
        try:
            os.rename(work, folder)
        except BaseException:  # also Ctrl-C
            os.rename(aside, folder)
            raise
        shutil.rmtree(aside, ignore_errors=True)

    def remove(self, folder: Path) -> None:
        """Removes a folder of the root, for readers in one step; nothing if it is gone already. With the lock held."""
        with self._work_folder() as work:
            if folder.exists():
                os.rename(folder, work / "removed")
            shutil.rmtree(self._aside(folder), ignore_errors=True)

    def _aside(self, folder: Path) -> Path:
        return self.path / "tmp" / f"{_ASIDE}{folder.parent.name}-{folder.name}"

    def sweep(self) -> None:
        """Removes what writers that died left in ``tmp``, or gives it its name again; with the lock held."""
        for leftover in (self.path / "tmp").glob("*"):
            try:
                if leftover.name.startswith(_ASIDE):
                    operator, _, name = leftover.name.removeprefix(_ASIDE).rpartition("-")
                    place = self.path / "entries" / operator / name
                    shutil.rmtree(leftover) if place.exists() else os.rename(leftover, place)
                    continue
                if abs(time.time() - leftover.lstat().st_mtime) > STALE_S:  # or the clock was set back since
                    shutil.rmtree(leftover, ignore_errors=True)
            except OSError:  # gone, or not ours to look at
                continue

    @contextmanager
    def _work_folder(self) -> Iterator[Path]:
        temporary_root = self.path / "tmp"
        temporary_root.mkdir(exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=temporary_root))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def entry_folders(root: Path, operator: str | None) -> list[Path]:
    """The folders of a root's results, sorted; of one operator, if named."""
    entries = root / "entries"
    operators = _inside(entries) if operator is None else [entries / folder_name(operator)]
    return sorted(p for place in operators for p in _inside(place) if len(p.name) == 64)


def folder_name(operator: str) -> str:
    """The operator's name as a folder; names that fall together are told apart by the key's hash."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", operator).lstrip(".") or "_"


def _inside(folder: Path) -> list[Path]:
    """Nothing of a folder that is gone, or that can't be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _exchange(one: Path, other: Path) -> bool:
    """Swaps two folders in one step; False where the system or the file system can't (NFS)."""
    function = getattr(ctypes.CDLL(None), "renameat2", None)
    at_cwd, rename_exchange = -100, 2  # linux/fcntl.h, linux/fs.h
    return function is not None and function(at_cwd, bytes(one), at_cwd, bytes(other), rename_exchange) == 0


def flush(folder: Path) -> None:
    """Flushes everything below a folder, and itself, to the disk."""
    found = [Path(place, name) for place, _, names in os.walk(folder) for name in ("", *names)]
    with ThreadPoolExecutor(min(len(found), _AT_ONCE)) as pool:  # together they take the disk half as long
        list(pool.map(sync, found))


def sync(path: Path) -> None:
    """Flushes a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
