"""One process at a time per case: who tunes holds a lock in the cache folder, which ends with its holder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ..files import hold, let_go

FOLDER = "locks"


@contextlib.contextmanager
def claim(root: Path, name: str, wait: bool) -> Iterator[bool]:
    """Holds the lock of one case in the cache folder; False if another process has it and ``wait`` is False.

    The system releases it when its holder dies. Where the folder can't be written nobody can share, so that is a True.
    """
    path = root / FOLDER / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _locked(path, wait)
    except BlockingIOError:
        yield False
        return
    except OSError:
        yield True
        return
    try:
        yield True
    finally:
        _release(path, descriptor)


def remove_unclaimed(path: Path) -> None:
    """Removes a lock file that a process which was killed has left; nothing if somebody holds it. Raises OSError."""
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        _release(path, _locked(path, wait=False, create=False))


def _locked(path: Path, wait: bool, create: bool = True) -> int:
    """A descriptor that holds the lock. Raises BlockingIOError if another process does, or else why there is none."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o666)
        try:
            hold(descriptor, wait)
            if _same(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder has removed the file; whoever comes next takes another one


def _release(path: Path, descriptor: int) -> None:
    """Removes the file while its lock is held, and unlocks."""
    with contextlib.suppress(OSError):
        path.unlink()
    let_go(descriptor)


def _same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
