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

import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import CacheError
from ..files import MALFORMED
from ..nouns.case import Case
from ..nouns.clocks import Interval, speedup_text
from ..nouns.operator import Signature
from ..settings import settings
from . import trust
from .bundle import Bundle, is_bundle, open_bundle
from .entry import ENTRY_FILE, Entry, Key, Provenance, folder_reader, signature_from_json
from .explanation import Difference, Explanation, differences
from .index import INDEX_TROUBLE, SummaryIndex, current_row, read_row
from .root import WritableRoot, entry_folders, folder_name

__all__ = ["Cache", "CacheWarning", "Difference", "Entry", "EntrySummary", "Explanation", "Key", "Provenance"]

_CLOCK_TICK_NS = 50_000_000  # coarser than any file system's time stamps on Linux


class CacheWarning(UserWarning):
    """A damaged entry was found, or the index can't be used; results are still right."""


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
    _own: WritableRoot = field(init=False, repr=False)
    _index: SummaryIndex = field(init=False, repr=False)
    _calls_seen: dict[Path, tuple[tuple[int, ...], dict[str, list[str]]]] = field(default_factory=dict, repr=False)
    _layers_seen: dict[Path, Bundle | bool] = field(default_factory=dict, repr=False)  # the bundle, or: to be used?

    def __post_init__(self) -> None:
        self._own = WritableRoot(self.root)
        self._index = SummaryIndex(self.root / "index")

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
            with self._own.lock():
                self._own.sweep()
                current = self._read(self.root, folder)
                if current is not None and _holds_against(current, entry):
                    return False
                self._own.write(folder, files)
                self._announce(folder)
        except OSError as error:
            raise _cannot_write(self.root, error) from error
        return True

    def rebuild(self) -> int:
        """Makes the index anew from the entries folder; returns how many entries it found.

        Raises CacheError if the index can't be written.
        """
        try:
            with self._own.lock():
                found = {f.name: row for f in entry_folders(self.root, None) if (row := read_row(f)) is not None}
                self._index.fill(found)
        except OSError as error:
            raise _cannot_write(self.root, error) from error
        except INDEX_TROUBLE as error:
            raise CacheError(f"the index of {self.root} can't be rebuilt: {error}.", "Is its disk full?") from error
        return len(found)

    def quarantine(self, folder: Path) -> bool:
        """Moves the root's entry in ``folder`` aside if it is damaged; says whether it was.

        Raises CacheError if it can't be moved.
        """
        try:
            with self._own.lock():
                return folder.exists() and self._read(self.root, folder) is None
        except OSError as error:
            raise _cannot_write(self.root, error) from error

    def remove(self, folder: Path) -> None:
        """Removes the root's entry in ``folder``, for readers in one step; nothing if it is gone already.

        Raises CacheError if it can't be removed.
        """
        try:
            with self._own.lock():
                self._own.remove(folder)
        except OSError as error:
            raise _cannot_write(self.root, error) from error

    def close(self) -> None:
        """Closes the index; the object may be used on."""
        self._index.close()

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
            if not layer.is_dir():  # it may come yet: a file system that is mounted later
                warnings.warn(f"there is no cache layer {layer}.", CacheWarning, stacklevel=5)
                return True
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
        return root / "entries" / folder_name(key.operator) / key.hash

    def _first(self, key: Key, hashes: Sequence[str]) -> Entry | None:
        for root in self._roots():
            for name in hashes:
                folder = root / "entries" / folder_name(key.operator) / name
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
            with self._own.lock():
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

    def _announce(self, folder: Path) -> None:
        """Tells the index of a stored entry. Trouble is a warning only: the folder is there, and lookups find it."""
        try:
            self._index.add(folder.name, read_row(folder))
        except INDEX_TROUBLE as error:
            self._warn(f"it is stored, but the index can't be written ({error}).", folder)

    def _rows(self, root: Path, operator: str | None) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Summaries: from the index where it has one, else from ``entry.json``. Damaged entries are left out; a lookup
        of such an entry will quarantine it."""
        indexed = root == self.root
        for folder in entry_folders(root, operator):
            said = None
            if indexed:
                try:
                    said = self._index.get(folder.name)
                except INDEX_TROUBLE:
                    indexed = False
            row = current_row(folder, said)
            if row is not None:
                yield folder, row

    def _calls(self, root: Path, operator: str) -> dict[str, list[str]]:
        """``Key.call`` -> key hashes of an operator's entries in ``root``; read anew when the folder has changed."""
        if isinstance(bundle := self._layers_seen.get(root), Bundle):
            return bundle.calls(folder_name(operator))
        folder = root / "entries" / folder_name(operator)
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


def _summary(folder: Path, row: dict[str, Any]) -> EntrySummary:
    signature = signature_from_json(row["signature"])
    times = row["baseline_us"], row["best_us"]
    return EntrySummary(Key.from_json(row["key"]), folder, *times, row["created"], signature, Interval.from_json(row))


def _cannot_write(root: Path, error: OSError) -> CacheError:
    return CacheError(
        f"the cache folder {root} can't be written: {error.strerror or error}.",
        "Free some space or make it writable, or point ASCENDOPT_CACHE_DIR at another folder.",
    )
