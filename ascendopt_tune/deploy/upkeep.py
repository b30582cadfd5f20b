"""The upkeep of cache folders: check them, merge them, compare them, and remove what nobody needs."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import CacheError
from ..files import MALFORMED, TEXT_BYTES, parse_json, read_plain
from ..store import archive, claim, trust
from ..store.bundle import is_bundle, open_bundle
from ..store.cache import Cache, CacheWarning, EntrySummary
from ..store.entry import Entry, folder_reader

_DAY_S = 86400.0


@dataclass(frozen=True)
class CacheFinding:
    """One thing that is wrong with a folder, and where."""

    where: Path
    problem: str


def verify(cache: Cache) -> Iterator[CacheFinding]:
    """Reads every file of the writable root and of every layer; what is damaged in the root is quarantined."""
    for root in (cache.root, *cache.layers):
        try:
            trust.check_owner(root)
            if is_bundle(root):
                archive.check(open_bundle(root))
                continue
            folders = sorted((root / "entries").glob("*/*"))
        except CacheError as error:
            yield CacheFinding(root, str(error))
            continue
        except OSError as error:
            yield CacheFinding(root, f"{error.filename or root} can't be read: {error.strerror or error}.")
            continue
        for folder in folders:
            problem = _problem(folder)
            # An entry that is replaced or removed while it is read is not damaged: in the root, the lock tells.
            if problem is not None and (cache.quarantine(folder) if root == cache.root else os.path.exists(folder)):
                yield CacheFinding(folder, problem)


def _problem(folder: Path) -> str | None:
    try:
        found = Entry.from_files(folder_reader(folder))
        own = found.key.hash
    except CacheError as error:
        return str(error)
    except MALFORMED as error:
        return f"entry.json does not have the expected fields ({error!r})."
    return None if own == folder.name else "the folder's name is not its key's hash."


def merge(source: Path, cache: Cache) -> tuple[int, int]:
    """Takes over the results of another cache folder of this user; (taken, already there or slower).

    Raises:
        CacheError: others could have written to the folder, it is a bundle (import it), or the cache can't be written.
    """
    if not (source / "entries").is_dir():
        raise CacheError(f"{source} is no cache folder: it has no entries/.", "Give the folder of ASCENDOPT_CACHE_DIR.")
    if is_bundle(source):
        raise CacheError(f"{source} is a bundle.", f"ascendopt-tune cache import {source}")
    trust.check_owner(source)
    taken = left = 0
    other = Cache(source, ())
    for summary in other.items():
        entry = other.get(summary.key)  # checks every file; a damaged one warns and counts as a miss
        if entry is not None and cache.put(entry):
            taken += 1
        else:
            left += 1
    return taken, left


@dataclass(frozen=True)
class UpkeepChange:
    """One key on which two stores differ: ``only`` names the side that has it, or is None where both do."""

    one: EntrySummary | None
    other: EntrySummary | None

    @property
    def operator(self) -> str:
        found = self.one or self.other
        assert found is not None
        return found.key.operator


def diff(one: Path, other: Path) -> list[UpkeepChange]:
    """Keys that only one of two folders (cache folders or bundles) has, or for which they have different times."""
    sides = []
    for root in (one, other):
        if not (root / "entries").is_dir():
            raise CacheError(f"{root} is neither a cache folder nor a bundle: it has no entries/.")
        sides.append({s.key.hash: s for s in Cache(root, ()).items()})
    first, second = sides
    changes = [UpkeepChange(first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])]
    return [c for c in changes if c.one is None or c.other is None or c.one.best_us != c.other.best_us]


@dataclass(frozen=True)
class Garbage:
    """Something that may go: its size in bytes, and why nobody needs it."""

    path: Path
    bytes: int
    reason: str


def garbage(cache: Cache, *, toolkits: Sequence[str], older_than_days: float | None = None) -> Iterator[Garbage]:
    """What a collection would remove from the writable root; nothing of the layers.

    Args:
        toolkits: versions that are in use; results of others can't be hit any more.
        older_than_days: also results that were made longer ago than that, and journals of runs that were left.
    """
    now = time.time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        summaries = list(Cache(cache.root, ()).items())
        known = {s.key.hash for s in cache.items()}
    for summary in summaries:
        age = _age_s(summary.folder / "entry.json", now) / _DAY_S
        if summary.key.toolkit not in toolkits:
            yield Garbage(summary.folder, _size(summary.folder), f"made for toolkit {summary.key.toolkit}")
        elif older_than_days is not None and age > older_than_days:
            yield Garbage(summary.folder, _size(summary.folder), f"{age:.0f} days old")
    for name, reason in (("quarantine", "damaged"), ("tmp", "left by a writer that died")):
        for path in sorted((cache.root / name).glob("*")):
            if name == "quarantine" or abs(_age_s(path, now)) > _DAY_S:  # or the clock was set back since
                yield Garbage(path, _size(path), reason)
    days = older_than_days if older_than_days is not None else 30.0
    for pattern, reason in (
        ("build/kernel/*", "compiled candidates"),
        ("build/host/*/*", "compiled tiling programs"),
        ("journals/*", "a run"),
        (f"{claim.FOLDER}/*", "a lock of a process that was killed"),
    ):
        for path in sorted(cache.root.glob(pattern)):
            if _age_s(path, now) > days * _DAY_S:
                yield Garbage(path, _size(path), f"{reason}, not touched for {days:.0f} days")
    for path in sorted((cache.root / "remarks").glob("*")):
        if _age_s(path, now) > days * _DAY_S and _subject(path) not in known:
            yield Garbage(path, _size(path), "a remark about a result that is gone")
    for path in sorted((cache.root / "toolkit").glob("*")):
        if _age_s(path, now) > days * _DAY_S and not any(path.name.partition("-")[0] in t for t in toolkits):
            what = "a library that serves hits" if path.name.startswith("fast-path-") else "a virtual toolkit"
            yield Garbage(path, _size(path), f"{what} that is not in use, {days:.0f} days old")


def remove(cache: Cache, found: Garbage) -> None:
    """Removes one thing that :func:`garbage` found. Raises CacheError if it can't."""
    try:
        if found.path.is_relative_to(cache.root / "entries"):
            cache.remove(found.path)
        elif found.path.parent == cache.root / claim.FOLDER:
            claim.remove_unclaimed(found.path)
        elif found.path.is_dir():
            shutil.rmtree(found.path)
        else:
            found.path.unlink(missing_ok=True)
    except FileNotFoundError:
        pass  # somebody else has removed it
    except OSError as error:
        raise CacheError(f"{found.path} can't be removed: {error.strerror or error}.") from error


def _subject(remark: Path) -> str | None:
    """The hash of the key whose result a remark (torch_ops/serving/guard.py) is about; None for what can't be read."""
    try:
        return str(parse_json(read_plain(remark, TEXT_BYTES))["entry"])
    except (OSError, *MALFORMED):
        return None


def _age_s(path: Path, now: float) -> float:
    """Seconds since it was written; 0 for what is gone."""
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; what somebody else removes meanwhile doesn't count."""
    files = [path, *(Path(folder, name) for folder, _, names in os.walk(path) for name in names)]
    size = 0
    for file in files:
        with suppress(OSError):
            size += file.stat().st_size if file.is_file() else 0
    return size
