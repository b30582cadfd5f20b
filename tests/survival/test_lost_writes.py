"""The machine fails while results are stored: what was not flushed to the disk is lost, or half there.

A model of a disk stands beside the folder. It knows of every file the bytes, and of every folder the names, that were
flushed last. A failure leaves any mixture of those and of what came after: bytes that are missing, cut off or zero,
names that are old or new, a rename of which one half is there. Before every step of the cache some of these mixtures
are made, and a new cache looks at them: a result whose ``put`` had returned is there, and none is served altered.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
import cache_examples as examples

from ascendopt_tune.store import root as root_module
from ascendopt_tune.store.cache import Cache, CacheWarning
from ascendopt_tune.store.entry import Entry

Inode = int
_VOLATILE = ("index", "lock")  # made anew when they are lost


@dataclass
class Disk:
    """What is flushed of the folder ``root``. Inodes are held open, so that no number comes twice."""

    root: Path
    data: dict[Inode, bytes] = field(default_factory=dict)
    names: dict[Inode, dict[str, Inode]] = field(default_factory=dict)
    _held: dict[Inode, int] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    def close(self) -> None:
        for fd in self._held.values():
            os.close(fd)

    def flush(self, path: Path) -> None:
        inode = os.stat(path).st_ino
        self.hold(path)
        if path.is_dir():
            self.names[inode] = self.current_names(path)
        else:
            self.data[inode] = path.read_bytes()

    def hold(self, path: Path) -> Inode:
        inode = os.lstat(path).st_ino
        if inode not in self._held:
            self._held[inode] = os.open(path, os.O_RDONLY)
        return inode

    def current_names(self, folder: Path) -> dict[str, Inode]:
        return {p.name: self.hold(p) for p in sorted(folder.iterdir()) if p.name not in _VOLATILE}

    def after_failure(self, target: Path, chance: random.Random) -> None:
        """Makes ``target`` what the disk may hold when the machine comes up again."""
        now: dict[Inode, Path] = {}
        for folder, _, files in os.walk(self.root):
            if Path(folder).name in _VOLATILE:
                continue
            for path in (Path(folder), *(Path(folder) / f for f in files if f not in _VOLATILE)):
                now[self.hold(path)] = path
        self._restore(os.stat(self.root).st_ino, target, now, chance, depth=0)

    def _restore(self, inode: Inode, target: Path, now: dict[Inode, Path], chance: random.Random, depth: int) -> None:
        if os.fstat(self._held[inode]).st_mode & 0o170000 == 0o040000:
            target.mkdir(exist_ok=True)
            flushed = self.names.get(inode, {})
            current = self.current_names(now[inode]) if inode in now else {}
            for name in sorted({*flushed, *current}):
                sides = [side.get(name) for side in (flushed, current)]
                child = sides[0] if sides[0] == sides[1] else chance.choice(sides)
                if child is not None and depth < 8:
                    self._restore(child, target / name, now, chance, depth + 1)
            return
        flushed_bytes = self.data.get(inode, b"")
        current_bytes = now[inode].read_bytes() if inode in now else flushed_bytes
        if flushed_bytes == current_bytes:
            target.write_bytes(current_bytes)
            return
        half = current_bytes[: chance.randrange(len(current_bytes) + 1)]
        target.write_bytes(chance.choice([flushed_bytes, current_bytes, half, bytes(len(current_bytes))]))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "root").mkdir()
    made = Disk(tmp_path / "root")
    made.hold(made.root)
    made.flush(made.root)
    yield made
    made.close()


def _before_every_step(disk: Disk, monkeypatch: pytest.MonkeyPatch, look: Callable[[], None]) -> None:
    """Calls ``look`` before whatever changes names or flushes, below the disk's root."""

    def step(function: Callable[..., Any], after: Callable[[tuple[Any, ...]], None] | None = None) -> Any:
        def stepped(*args: Any, **kwargs: Any) -> Any:
            if not _concerns(disk, args):
                return function(*args, **kwargs)
            with disk._lock:
                look()
                result = function(*args, **kwargs)
                if after is not None:
                    after(args)
                return result

        return stepped

    flushed = step(os.fsync, lambda args: disk.flush(Path(os.readlink(f"/proc/self/fd/{args[0]}"))))
    monkeypatch.setattr(root_module.os, "fsync", flushed)
    monkeypatch.setattr(root_module.os, "rename", step(os.rename))
    monkeypatch.setattr(root_module.os, "mkdir", step(os.mkdir))
    monkeypatch.setattr(root_module, "_exchange", step(root_module._exchange))


def _concerns(disk: Disk, args: tuple[Any, ...]) -> bool:
    first = os.readlink(f"/proc/self/fd/{args[0]}") if isinstance(args[0], int) else str(args[0])
    return Path(first).is_relative_to(disk.root) and not {*Path(first).parts} & {"index"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.battery) for n in range(1, 40))])
def test_no_finished_result_is_lost_and_none_is_served_altered(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    finished: dict[str, Entry] = {}
    begun: dict[str, list[Entry]] = {}
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        image = tmp_path / f"image-{looks}"
        disk.after_failure(image, chance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)
            cache = Cache(image, layers=())
            for name, candidates in begun.items():
                found = cache.get(candidates[0].key)
                assert found is None or found in candidates, f"{name} is served altered"
                if name in finished:
                    assert found is not None, f"{name} was stored, and is lost"
                    assert found.best.task_duration_us <= finished[name].best.task_duration_us
            for candidates in begun.values():
                assert cache.put(candidates[-1]) or cache.get(candidates[-1].key) is not None
            cache.close()
        shutil.rmtree(image)

    cache = Cache(disk.root, layers=())
    _before_every_step(disk, monkeypatch, look)
    for rows, best_us in ((8, 5.0), (16, 4.0), (8, 3.0), (8, 9.0), (32, 2.0)):  # the third replaces, the fourth doesn't
        entry = examples.entry(examples.key(rows), best_us)
        begun.setdefault(entry.key.hash, []).append(entry)
        if cache.put(entry):
            finished[entry.key.hash] = entry
        look()
    assert looks > 40
    cache.close()
