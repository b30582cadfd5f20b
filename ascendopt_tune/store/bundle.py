"""A bundle: a read-only layer of results with a manifest, made to be shipped.

```
bundle.json            schema, what tuned it, and per operator: key hash, call hash, sha256 of entry.json, both times
bundle.sig             optional: the signature of bundle.json (trust.py)
entries/<operator>/<sha256 of the key>/   as in a cache folder (entry.py)
```

The manifest names every entry, ``entry.json`` the sha256 of every other file: who trusts ``bundle.json`` trusts the
whole. It is what makes a bundle quick to open: thousands of entries are one file to read. It holds no time and no
machine, so the same entries make the same bytes.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CacheError
from ..files import MALFORMED, parse_json, read_plain, write_whole
from .entry import ENTRY_FILE, FILE_BYTES, Entry, Key, canonical, folder_reader, read_document, sha256
from .root import flush, sync

MANIFEST, SIGNATURE = "bundle.json", "bundle.sig"
SCHEMA = 1
MANIFEST_BYTES = 512 << 20  # a million entries
_SIGNATURE_BYTES = 64 << 10
_AGAIN = "Copy it again from where it was made."


class BundleRow(NamedTuple):
    """One entry in the manifest. Times are us of the entry's target (modelled for ``virtual``)."""

    hash: str
    call: str
    entry_sha256: str
    baseline_us: float
    best_us: float


@dataclass(frozen=True)
class Bundle:
    """An opened bundle: the bytes of its manifest, which are parsed when :attr:`rows` are asked for first, so that who
    trusts only a digest or a signature has asked for it before. Entries are read, and checked, when they are asked for.
    """

    root: Path
    digest: str
    manifest_bytes: bytes = field(repr=False)
    signature: bytes | None = field(repr=False)
    _calls: dict[str, dict[str, list[str]]] = field(default_factory=dict, repr=False)
    _digests: dict[str, str] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def _document(self) -> tuple[Mapping[str, Any], Mapping[str, Sequence[BundleRow]]]:
        path = self.root / MANIFEST
        try:
            document = parse_json(self.manifest_bytes)
            if document["schema"] != SCHEMA:
                raise CacheError(
                    f"{path} has schema {document['schema']!r:.40}, this version reads {SCHEMA}.",
                    "Prebuild it with this version of ascendopt_tune.",
                )
            rows = {_plain(name): [_row(row) for row in found] for name, found in document["entries"].items()}
            about = {name: [str(v) for v in document["about"][name]] for name in ("chips", "targets", "toolkits")}
        except MALFORMED as error:
            raise CacheError(f"{path} is truncated or no manifest ({error}).", _AGAIN) from error
        return about, rows

    @property
    def about(self) -> Mapping[str, Any]:
        """Chips, targets and toolkits of its results. Raises CacheError for a damaged manifest."""
        return self._document[0]

    @property
    def rows(self) -> Mapping[str, Sequence[BundleRow]]:
        """By the operator's folder name. Raises CacheError for a damaged manifest, or one of another schema."""
        return self._document[1]

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.rows.values())

    def calls(self, operator_folder: str) -> dict[str, list[str]]:
        """Call hash -> key hashes of the operator's entries."""
        known = self._calls.get(operator_folder)
        if known is None:
            known = {}
            for row in self.rows.get(operator_folder, ()):
                known.setdefault(row.call, []).append(row.hash)
            self._calls[operator_folder] = known
        return known

    def check(self, folder: Path) -> None:
        """Raises CacheError unless ``folder`` is an entry of the manifest, and its ``entry.json`` the one meant."""
        try:
            self.reader(folder)(ENTRY_FILE)
        except OSError as error:
            raise CacheError(f"{ENTRY_FILE} can't be read: {error.strerror or error}.", _AGAIN) from error

    def reader(self, folder: Path) -> Callable[[str], bytes]:
        """Reads files of ``folder``, of ``entry.json`` only what :meth:`check` allows: what is checked is what is used.

        Raises CacheError if the manifest doesn't list the entry.
        """
        if not self._digests:
            self._digests.update((row.hash, row.entry_sha256) for rows in self.rows.values() for row in rows)
        wanted = self._digests.get(folder.name)
        if wanted is None:
            raise CacheError(f"{MANIFEST} doesn't list it.", _AGAIN)

        def read(name: str) -> bytes:
            data = read_plain(folder / name, FILE_BYTES)
            if name == ENTRY_FILE and sha256(data) != wanted:
                raise CacheError(f"{ENTRY_FILE} is altered: its sha256 is not the one in {MANIFEST}.", _AGAIN)
            return data

        return read

    def was_replaced(self) -> bool:
        """Whether there is another manifest now, or none."""
        try:
            return read_plain(self.root / MANIFEST, MANIFEST_BYTES) != self.manifest_bytes
        except OSError:
            return True


def is_bundle(root: Path) -> bool:
    return os.path.lexists(root / MANIFEST)


def open_bundle(root: Path) -> Bundle:
    """The bundle in folder ``root``; nothing but the manifest and its signature are read, and neither is parsed.

    Raises:
        CacheError: no manifest, or one that can't be read.
    """
    path = root / MANIFEST
    try:
        data = read_plain(path, MANIFEST_BYTES)
        signed = os.path.lexists(root / SIGNATURE)
        signature = read_plain(root / SIGNATURE, _SIGNATURE_BYTES) if signed else None
    except OSError as error:
        raise CacheError(f"{error.filename or path} can't be read: {error.strerror or error}.", _AGAIN) from error
    return Bundle(root, sha256(data), data, signature)


def _row(values: Sequence[Any]) -> BundleRow:
    row = BundleRow._make(values)
    if not all(isinstance(text, str) for text in row[:3]) or not all(type(t) in (int, float) for t in row[3:]):
        raise ValueError(f"{row!r:.80} is no row")
    if len(row.hash) != 64 or not row.hash.isalnum():
        raise ValueError(f"{row.hash!r:.80} is no key hash")
    return row


def _plain(name: str) -> str:
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is no operator's folder")
    return name


def write_bundle(target: Path, entries: Iterable[Path]) -> Bundle:
    """Makes ``target`` a bundle of these entry folders; entries it has already, unchanged, are not copied again.

    The manifest is replaced last, in one step: a bundle that is interrupted while it is written is the old one, or
    none. Entries that are no longer wanted are removed after that.

    Raises:
        CacheError: an entry is damaged, or the folder can't be written or is something else.
    """
    check_place(target)
    rows: dict[str, list[BundleRow]] = {}
    about: dict[str, set[str]] = {"chips": set(), "targets": set(), "toolkits": set()}
    wanted: set[Path] = set()
    try:
        (target / "entries").mkdir(parents=True, exist_ok=True)
        for folder in sorted(entries):
            place = target / "entries" / folder.parent.name / folder.name
            _copy(folder, place)
            wanted.add(place)
            document = read_document(folder_reader(place))
            key = Key.from_json(document["key"])
            about["chips"].add(key.chip)
            about["targets"].add(key.target)
            about["toolkits"].add(key.toolkit)
            times = (float(document[name]["task_duration_us"]) for name in ("baseline", "best"))
            row = BundleRow(key.hash, key.call, sha256(folder_reader(place)(ENTRY_FILE)), *times)
            rows.setdefault(folder.parent.name, []).append(row)
        manifest = {"schema": SCHEMA, "about": {k: sorted(v) for k, v in about.items()}, "entries": rows}
        data = canonical(manifest).encode() + b"\n"
        if not (target / MANIFEST).exists() or (target / MANIFEST).read_bytes() != data:
            (target / SIGNATURE).unlink(missing_ok=True)  # it was made for another manifest
            write_whole(target / MANIFEST, data, durable=True)
        for place in (target / "entries").glob("*/*"):
            if place not in wanted:
                shutil.rmtree(place)
        for place in (target / "entries").iterdir():
            if not any(place.iterdir()):
                place.rmdir()
    except OSError as error:
        raise CacheError(
            f"the bundle {target} can't be written: {error.strerror or error}.", "Free some space, or name another."
        ) from error
    return open_bundle(target)


def check_place(target: Path) -> None:
    """Raises CacheError for a place that :func:`write_bundle` refuses: a file, or a folder with other things in it."""
    try:
        other = target.exists() and (
            not target.is_dir() or (any(target.iterdir()) and not (target / "entries").is_dir())
        )
    except OSError as error:
        raise CacheError(
            f"the bundle {target} can't be read: {error.strerror or error}.", "Name another folder."
        ) from error
    if other:
        raise CacheError(f"{target} is not empty, and no bundle.", "Name another folder.")


def _copy(folder: Path, place: Path) -> None:
    """Copies an entry unless it is there: entries are never changed in place, so equal entry.json are equal entries."""
    try:
        if folder_reader(folder)(ENTRY_FILE) == folder_reader(place)(ENTRY_FILE):
            return
    except FileNotFoundError:
        pass
    Entry.from_files(folder_reader(folder))  # raises if it is damaged
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as work:
        shutil.copytree(folder, Path(work) / "entry")
        flush(Path(work) / "entry")  # the manifest, which names it, is
        shutil.rmtree(place, ignore_errors=True)
        os.rename(Path(work) / "entry", place)
    sync(place.parent)
