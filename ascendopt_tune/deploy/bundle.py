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

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..entry import ENTRY_FILE, Entry, Key, canonical, folder_reader, read_document, sha256
from ..errors import CacheError
from ..files import write_whole

MANIFEST, SIGNATURE = "bundle.json", "bundle.sig"
SCHEMA = 1
_AGAIN = "Copy it again from where it was made."


class Row(NamedTuple):
    """One entry in the manifest. Times are us of the entry's target (modelled for ``virtual``)."""

    hash: str
    call: str
    entry_sha256: str
    baseline_us: float
    best_us: float


@dataclass(frozen=True)
class Bundle:
    """An opened bundle: its manifest, parsed. Entries are read, and checked, when they are asked for.

    ``rows`` are by the operator's folder name; ``about`` says chips, targets and tools.
    """

    root: Path
    digest: str
    manifest_bytes: bytes = field(repr=False)
    signature: bytes | None = field(repr=False)
    about: Mapping[str, Any]
    rows: Mapping[str, Sequence[Row]] = field(repr=False)
    _calls: dict[str, dict[str, list[str]]] = field(default_factory=dict, repr=False)
    _digests: dict[str, str] = field(default_factory=dict, repr=False)

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
            data = (folder / name).read_bytes()
            if name == ENTRY_FILE and sha256(data) != wanted:
                raise CacheError(f"{ENTRY_FILE} is altered: its sha256 is not the one in {MANIFEST}.", _AGAIN)
            return data

        return read

    def was_replaced(self) -> bool:
        """Whether there is another manifest now, or none."""
        try:
            return (self.root / MANIFEST).read_bytes() != self.manifest_bytes
        except OSError:
            return True


def is_bundle(root: Path) -> bool:
    return (root / MANIFEST).is_file()


def open_bundle(root: Path) -> Bundle:
    """The bundle in folder ``root``; nothing but the manifest is read.

    Raises:
        CacheError: no manifest, one of another schema, or a damaged one.
    """
    path = root / MANIFEST
    try:
        data = path.read_bytes()
        signature = (root / SIGNATURE).read_bytes() if (root / SIGNATURE).is_file() else None
        document = json.loads(data)
        if document["schema"] != SCHEMA:
            raise CacheError(
                f"{path} has schema {document['schema']}, this version reads {SCHEMA}.",
                "Prebuild it with this version of ascendopt_tune.",
            )
        rows = {_plain(name): [Row._make(row) for row in found] for name, found in document["entries"].items()}
        for row in (row for found in rows.values() for row in found):
            if len(row.hash) != 64 or not row.hash.isalnum():
                raise ValueError(f"{row.hash!r} is no key hash")
        return Bundle(root, sha256(data), data, signature, document["about"], rows)
    except OSError as error:
        raise CacheError(f"{path} can't be read: {error.strerror or error}.", _AGAIN) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CacheError(f"{path} is truncated or no manifest ({error}).", _AGAIN) from error


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
    if target.exists() and (not target.is_dir() or (any(target.iterdir()) and not (target / "entries").is_dir())):
        raise CacheError(f"{target} is not empty, and no bundle.", "Name another folder.")
    rows: dict[str, list[Row]] = {}
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
            row = Row(key.hash, key.call, sha256((place / ENTRY_FILE).read_bytes()), *times)
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


def _copy(folder: Path, place: Path) -> None:
    """Copies an entry unless it is there: entries are never changed in place, so equal entry.json are equal entries."""
    try:
        if (folder / ENTRY_FILE).read_bytes() == (place / ENTRY_FILE).read_bytes():
            return
    except FileNotFoundError:
        pass
    Entry.from_files(folder_reader(folder))  # raises if it is damaged
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as work:
        shutil.copytree(folder, Path(work) / "entry")
        shutil.rmtree(place, ignore_errors=True)
        os.rename(Path(work) / "entry", place)
