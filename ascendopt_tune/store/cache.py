"""The store of tuned results: one writable folder, then read-only layers.

``<root>/entries/<operator>/<key hash>/`` holds one result (entry.py) and is the truth; ``<root>/index`` is a diskcache
of JSON summaries that spares reading them all and can be rebuilt at any time.

1. ``put`` writes a temporary folder in the same filesystem, flushes it, renames it into place, then tells the index:
   whatever is announced is on disk, and a process that dies leaves nothing that looks like a result.
2. ``get`` and ``find`` check every file's sha256 before they return it. A damaged entry is moved to ``quarantine/``
   with a warning that names the file, and counts as a miss. Looking up never raises.
3. Any number of processes may share a root: writers hold a file lock, readers need none. A reader that meets a damaged
   entry looks again under the lock, so an entry that is being replaced is not taken for a damaged one.
4. A layer that others could write to, or a bundle (store/bundle.py) that ``ASCENDOPT_TRUST`` doesn't vouch for, is
   left out with a warning that says what to do.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sqlite3
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import diskcache

from .. import paths
from ..errors import CacheError
from ..files import MALFORMED, locked, parse_json
from ..nouns.case import Case
from ..nouns.clocks import Interval, speedup_text
from ..nouns.operator import Signature
from ..settings import settings
from . import trust
from .bundle import Bundle, is_bundle, open_bundle
from .entry import (
    ENTRY_FILE,
    Entry,
    Key,
    Provenance,
    canonical,
    folder_reader,
    read_document,
    restore,
    signature_from_json,
)
from .explanation import Difference, Explanation, differences

__all__ = ["Cache", "CacheWarning", "Difference", "Entry", "EntrySummary", "Explanation", "Key", "Provenance"]

_ROW_FIELDS = frozenset({"key", "call", "baseline_us", "best_us", "created", "signature", "stamp"})
_INDEX_WAIT_S = 10.0  # writers come one by one, under the lock; only a reader of a moment can be in the way
_STALE_S = 3600.0  # a temporary folder older than this belongs to no living writer
_CLOCK_TICK_NS = 50_000_000  # coarser than any file system's time stamps on Linux
_INDEX_TROUBLE = (OSError, sqlite3.Error, diskcache.Timeout, CacheError, *MALFORMED)


class CacheWarning(UserWarning):
    """A damaged entry was found, or the index can't be used; results are still right."""


class JsonDisk(diskcache.Disk):  # type: ignore[misc]
    """Keys are text, values JSON text in the row; rows of any other kind are refused, so nothing is ever unpickled."""

    def put(self, key: object) -> tuple[str, bool]:
        if not isinstance(key, str):
            raise CacheError(f"an index key must be text, not {type(key).__name__}.")
        return key, True

    def get(self, key: object, raw: bool) -> str:
        if not raw or not isinstance(key, str):
            raise CacheError("the index holds a key that is not text.")
        return key

    def store(self, value: object, read: bool, key: object = None) -> tuple[int, int, None, str]:
        return 0, diskcache.core.MODE_RAW, None, canonical(value)

    def fetch(self, mode: int, filename: object, value: object, read: bool) -> Any:
        if mode != diskcache.core.MODE_RAW or not isinstance(value, str):
            raise CacheError("the index holds a value that is not JSON text.")
        return restore(parse_json(value))


def _holds_against(current: Entry, entry: Entry) -> bool:
    alike = current.provenance.answers(entry.provenance.specification)
    return alike and current.best.task_duration_us <= entry.best.task_duration_us


@dataclass(frozen=True)
class EntrySummary:
    """What a listing shows of an entry; its files are not checked."""

    key: Key
    folder: Path
    baseline_us: float
    best_us: float
    created: str
    signature: Signature | None = None
    interval: Interval | None = None

    @property
    def case(self) -> Case:
        return Case.from_json(self.key.to_json()["case"])

    @property
    def speedup(self) -> float:
        return self.baseline_us / self.best_us

    @property
    def speedup_text(self) -> str:
        """The speedup as people read it, with its interval over plausible clocks where it has one."""
        return speedup_text(self.speedup, self.interval)


@dataclass
class Counters:
    """What this object's lookups came to."""

    hits: int = 0
    misses: int = 0
    quarantined: int = 0


@dataclass
class Cache:
    """A writable root and read-only layers, asked in that order; by default those of paths.py.

    Creating the object touches no file. Safe to share between threads, and across a fork.
    """

    root: Path = field(default_factory=paths.cache_dir)
    layers: Sequence[Path] = field(default_factory=paths.cache_layers)
    counters: Counters = field(default_factory=Counters)
    _index_handle: Any = field(default=None, repr=False)
    _calls_seen: dict[Path, tuple[tuple[int, ...], dict[str, list[str]]]] = field(default_factory=dict, repr=False)
    _layers_seen: dict[Path, Bundle | bool] = field(default_factory=dict, repr=False)  # the bundle, or: to be used?

    # -- lookups ------------------------------------------------------------------------------------------------------

    def get(self, key: Key) -> Entry | None:
        """The entry of exactly this key, every file verified, or None."""
        return self._count(self._first(key, [key.hash]))

    def find(self, key: Key) -> Entry | None:
        """As :meth:`get` for a key whose case lacks the outputs: a caller knows inputs and attributes only.

        None as well when a layer holds several entries that differ in their outputs alone: then nobody can tell.
        """
        call = key.call
        for root in self._roots():
            hashes = self._calls(root, key.operator).get(call, [])
            if hashes:
                return self._count(self._first(key, hashes) if len(hashes) == 1 else None)
        return self._count(None)

    def items(self, operator: str | None = None) -> Iterator[EntrySummary]:
        """Every entry of every layer (of one operator, if named); an entry that an earlier layer has is left out."""
        seen: set[str] = set()
        for root in self._roots():
            for folder, row in self._rows(root, operator):
                if folder.name not in seen:
                    seen.add(folder.name)
                    yield _summary(folder, row)

    def explain(self, key: Key) -> Explanation:
        """Why a lookup of ``key`` hits or misses: field by field against the entry with the fewest differences."""
        if self._first(key, [key.hash]) is not None:
            return Explanation(True, key)
        best: tuple[Difference, ...] | None = None
        closest: EntrySummary | None = None
        for summary in self.items(key.operator):
            found = differences(key, summary.key)
            if best is None or len(found) < len(best):
                best, closest = found, summary
        return Explanation(False, key, closest.folder if closest else None, best or ())

    # -- writing ------------------------------------------------------------------------------------------------------

    def put(self, entry: Entry) -> bool:
        """Stores ``entry``, unless the root has one for the key that is at least as fast and was judged by the same
        specification; says whether it did.

        Raises:
            CacheError: the folder can't be written (full, read-only, ...). Nothing half-written is left behind.
        """
        files = entry.to_files()
        folder = self._folder(self.root, entry.key)
        try:
            with self._lock():
                current = self._read(self.root, folder)
                if current is not None and _holds_against(current, entry):
                    return False
                self._sweep()
                self._write(folder, files)
                self._announce(folder)
        except OSError as error:
            raise _cannot_write(self.root, error) from error
        return True

    def rebuild(self) -> int:
        """Makes the index anew from the entries folder; returns how many entries it found.

        Raises CacheError if the index can't be written.
        """
        try:
            with self._lock():
                found = {f.name: row for f in _entry_folders(self.root, None) if (row := _read_row(f)) is not None}
                try:
                    self._fill_index(found)  # in place: others have it open
                except _INDEX_TROUBLE:
                    self._drop_index(damaged=True)
                    self._fill_index(found)
        except OSError as error:
            raise _cannot_write(self.root, error) from error
        except _INDEX_TROUBLE as error:
            raise CacheError(f"the index of {self.root} can't be rebuilt: {error}.", "Is its disk full?") from error
        return len(found)

    def quarantine(self, folder: Path) -> bool:
        """Moves the root's entry in ``folder`` aside if it is damaged; says whether it was.

        Raises CacheError if it can't be moved.
        """
        try:
            with self._lock():
                return folder.exists() and self._read(self.root, folder) is None
        except OSError as error:
            raise _cannot_write(self.root, error) from error

    def remove(self, folder: Path) -> None:
        """Removes the root's entry in ``folder``, for readers in one step; nothing if it is gone already.

        Raises CacheError if it can't be removed.
        """
        try:
            with self._lock(), self._work_folder() as work:
                if folder.exists():
                    os.rename(folder, work / "removed")
        except OSError as error:
            raise _cannot_write(self.root, error) from error

    def close(self) -> None:
        """Closes the index; the object may be used on."""
        if self._index_handle is not None:
            self._index_handle.close()

    # -- one root -----------------------------------------------------------------------------------------------------

    def _roots(self) -> Iterator[Path]:
        yield self.root
        for layer in self.layers:
            if layer not in self._layers_seen:
                self._layers_seen[layer] = self._open_layer(layer)
            if self._layers_seen[layer] is not False:
                yield layer

    def _open_layer(self, layer: Path) -> Bundle | bool:
        """The layer's bundle; True for a plain folder of results, False for one that must not, or can't, be used."""
        try:
            trust.check_owner(layer)
            if not is_bundle(layer):
                return True
            bundle = open_bundle(layer)  # its bytes: they are read as a manifest when they are trusted
            reason = trust.why_untrusted(bundle, settings().trust)
            if reason is not None:
                raise CacheError(
                    f"it is not trusted: {reason}.",
                    f"Set ASCENDOPT_TRUST=sha256:{bundle.digest} if it is yours, or rebuild and check what it holds: "
                    f"ascendopt-tune cache import {layer}.",
                )
            bundle.rows  # noqa: B018  # now, so that a damaged one is told here
            return bundle
        except (CacheError, OSError) as error:
            warnings.warn(f"cache layer {layer} is ignored: {error}", CacheWarning, stacklevel=5)
            return False

    def _folder(self, root: Path, key: Key) -> Path:
        return root / "entries" / _folder_name(key.operator) / key.hash

    def _first(self, key: Key, hashes: Sequence[str]) -> Entry | None:
        for root in self._roots():
            for name in hashes:
                folder = root / "entries" / _folder_name(key.operator) / name
                if os.path.isdir(folder) and (entry := self._read_checked(root, folder)) is not None:
                    return entry
        return None

    def _count(self, entry: Entry | None) -> Entry | None:
        if entry is None:
            self.counters.misses += 1
        else:
            self.counters.hits += 1
        return entry

    def _read_checked(self, root: Path, folder: Path) -> Entry | None:
        """Reads without the lock; what looks damaged is looked at again with it."""
        bundle = self._layers_seen.get(root)
        try:
            return self._load(folder, bundle.reader(folder) if isinstance(bundle, Bundle) else None)
        except CacheError as error:
            if isinstance(bundle, Bundle) and bundle.was_replaced():
                self._layers_seen.pop(root, None)  # the next lookup opens the new one
            if root != self.root:
                self._warn(f"{error.message} The entry is ignored.", folder)
                return None
        try:
            with self._lock():
                return self._read(root, folder)
        except OSError as error:
            self._warn(f"it can't be read: {error}.", folder)
            return None

    def _read(self, root: Path, folder: Path) -> Entry | None:
        """Reads with the lock held; a damaged entry is quarantined."""
        if not folder.exists():
            return None
        try:
            return self._load(folder)
        except CacheError as error:
            place = root / "quarantine" / f"{folder.name}-{uuid.uuid4().hex[:8]}"
            place.parent.mkdir(parents=True, exist_ok=True)
            os.rename(folder, place)
            self.counters.quarantined += 1
            self._warn(f"{error.message} It was moved to {place} and counts as a miss.", folder)
            return None

    def _load(self, folder: Path, read: Callable[[str], bytes] | None = None) -> Entry:
        try:
            entry = Entry.from_files(read or folder_reader(folder))
            own = entry.key.hash
        except MALFORMED as error:
            raise CacheError(f"{ENTRY_FILE} does not have the expected fields ({error}).") from error
        if own != folder.name:
            raise CacheError(f"{ENTRY_FILE} belongs to another key, {entry.key.hash[:12]}.")
        return entry

    def _warn(self, text: str, folder: Path) -> None:
        warnings.warn(f"cache entry {folder}: {text}", CacheWarning, stacklevel=4)

    # -- files of the writable root -----------------------------------------------------------------------------------

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """The writers' lock; released by the system when a holder dies."""
        self.root.mkdir(parents=True, exist_ok=True)
        with locked(self.root / "lock"):
            yield

    @contextmanager
    def _work_folder(self) -> Iterator[Path]:
        temporary_root = self.root / "tmp"
        temporary_root.mkdir(exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=temporary_root))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _write(self, folder: Path, files: dict[str, bytes]) -> None:
        with self._work_folder() as work:
            for name, data in files.items():
                target = work / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "xb") as file:
                    file.write(data)
            written = [work / name for name in files] + [Path(directory) for directory, _, _ in os.walk(work)]
            with ThreadPoolExecutor(len(written)) as pool:  # together they take the disk half as long
                list(pool.map(_sync, written))
            os.chmod(work, 0o755)  # mkdtemp's 0700 would hide the entry from other users of a shared root
            folder.parent.mkdir(parents=True, exist_ok=True)
            if not folder.exists():
                os.rename(work, folder)
            elif not _exchange(work, folder):
                os.rename(folder, work / "replaced")
                os.rename(work, folder)
            for place in (folder.parent, folder.parent.parent, self.root):  # a folder's name is in the one above
                _sync(place)
            with suppress(OSError):
                _sync(self.root.parent)
        shutil.rmtree(folder / "replaced", ignore_errors=True)

    def _sweep(self) -> None:
        """Removes what writers that died left in ``tmp``."""
        for leftover in (self.root / "tmp").glob("*"):
            try:
                if abs(time.time() - leftover.stat().st_mtime) > _STALE_S:  # or the clock was set back since
                    shutil.rmtree(leftover, ignore_errors=True)
            except FileNotFoundError:
                continue

    # -- the index ----------------------------------------------------------------------------------------------------

    def _index(self) -> Any:
        if self._index_handle is None:
            options = {"timeout": _INDEX_WAIT_S, "eviction_policy": "none", "cull_limit": 0, "disk": JsonDisk}
            folder = self.root / "index"
            try:
                self._index_handle = diskcache.Cache(str(folder), **options)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise  # busy, full or read-only, not damaged
                shutil.rmtree(folder, ignore_errors=True)
                self._index_handle = diskcache.Cache(str(folder), **options)
        return self._index_handle

    def _announce(self, folder: Path) -> None:
        """Tells the index of a stored entry. Trouble is a warning only: the folder is there, and lookups find it."""
        row = _read_row(folder)
        try:
            try:
                self._index().set(folder.name, row)
            except (OSError, sqlite3.Error) as error:  # it may have been removed, or damaged, since it was opened
                self._drop_index(damaged=not isinstance(error, OSError | sqlite3.OperationalError))
                self._index().set(folder.name, row)
        except _INDEX_TROUBLE as error:
            self._warn(f"it is stored, but the index can't be written ({error}).", folder)

    def _drop_index(self, damaged: bool) -> None:
        """Closes the index so that it is opened anew, made anew if it is damaged."""
        with suppress(*_INDEX_TROUBLE):
            self.close()
        self._index_handle = None
        if damaged:
            shutil.rmtree(self.root / "index", ignore_errors=True)

    def _fill_index(self, rows: dict[str, dict[str, Any]]) -> None:
        index = self._index()
        with index.transact():
            index.clear()
            for name, row in rows.items():
                index.set(name, row)

    def _rows(self, root: Path, operator: str | None) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Summaries: from the index where it has one, else from ``entry.json``. Damaged entries are left out; a lookup
        of such an entry will quarantine it."""
        indexed = root == self.root
        for folder in _entry_folders(root, operator):
            row = None
            if indexed:
                try:
                    row = self._index().get(folder.name)
                except _INDEX_TROUBLE:
                    indexed = False
            if not isinstance(row, dict) or not row.keys() >= _ROW_FIELDS:
                row = _read_row(folder)
            elif row["stamp"] != _stamp(folder):  # a writer that died has left the row of the entry before
                row = _read_row(folder) or row  # the row of a damaged one leads to it: then it is quarantined
            if row is not None:
                yield folder, row

    def _calls(self, root: Path, operator: str) -> dict[str, list[str]]:
        """``Key.call`` -> key hashes of an operator's entries in ``root``; read anew when the folder has changed."""
        if isinstance(bundle := self._layers_seen.get(root), Bundle):
            return bundle.calls(_folder_name(operator))
        folder = root / "entries" / _folder_name(operator)
        try:
            found = folder.stat()
        except OSError:
            return {}
        changed = found.st_mtime_ns, found.st_ino, found.st_nlink  # time alone may come twice: clocks are set back
        known = self._calls_seen.get(folder)
        if known is not None and known[0] == changed:
            return known[1]
        calls: dict[str, list[str]] = {}
        for entry, row in self._rows(root, operator):
            calls.setdefault(row["call"], []).append(entry.name)
        if (
            time.time_ns() - found.st_mtime_ns > _CLOCK_TICK_NS
        ):  # else an entry may still arrive under the same time stamp
            self._calls_seen[folder] = (changed, calls)
        return calls


def _entry_folders(root: Path, operator: str | None) -> list[Path]:
    entries = root / "entries"
    operators = _inside(entries) if operator is None else [entries / _folder_name(operator)]
    return sorted(p for place in operators for p in _inside(place) if len(p.name) == 64)


def _inside(folder: Path) -> list[Path]:
    """Nothing of a folder that is gone, or that can't be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _folder_name(operator: str) -> str:
    """The operator's name as a folder; names that fall together are told apart by the key's hash."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", operator).lstrip(".") or "_"


def _read_row(folder: Path) -> dict[str, Any] | None:
    """An entry's summary as the index holds it; None if ``entry.json`` is damaged."""
    try:
        stamp = _stamp(folder)  # before it is read: a newer one does no harm
        document = read_document(folder_reader(folder))
        return {
            "stamp": stamp,
            "key": document["key"],
            "call": Key.from_json(document["key"]).call,
            "baseline_us": document["baseline"]["task_duration_us"],
            "best_us": document["best"]["task_duration_us"],
            "created": document["provenance"]["created"],
            "signature": document["signature"],
            **(found.to_json() if (found := Interval.from_json(document)) is not None else {}),
        }
    except (*MALFORMED, CacheError):
        return None


def _stamp(folder: Path) -> list[int] | None:
    """Tells one ``entry.json`` from another that replaced it; None if there is none."""
    try:
        found = (folder / ENTRY_FILE).stat()
    except OSError:
        return None
    return [found.st_ino, found.st_mtime_ns, found.st_size]


def _summary(folder: Path, row: dict[str, Any]) -> EntrySummary:
    signature = signature_from_json(row["signature"])
    times = row["baseline_us"], row["best_us"]
    return EntrySummary(Key.from_json(row["key"]), folder, *times, row["created"], signature, Interval.from_json(row))


def _exchange(one: Path, other: Path) -> bool:
    """Swaps two folders in one step; False where the system or the file system can't (NFS)."""
    function = getattr(ctypes.CDLL(None), "renameat2", None)
    at_cwd, rename_exchange = -100, 2  # linux/fcntl.h, linux/fs.h
    return function is not None and function(at_cwd, bytes(one), at_cwd, bytes(other), rename_exchange) == 0


def _sync(path: Path) -> None:
    """Flushes a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot_write(root: Path, error: OSError) -> CacheError:
    return CacheError(
        f"the cache folder {root} can't be written: {error.strerror or error}.",
        "Free some space or make it writable, or point ASCENDOPT_CACHE_DIR at another folder.",
    )
