"""Summaries of a root's results, so that a listing need not read them all: a diskcache of JSON, and the way to do
without it. The index can be thrown away at any time; ``entry.json`` is the truth.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import diskcache

from ..errors import CacheError
from ..files import MALFORMED, parse_json
from ..nouns.clocks import Interval
from .entry import ENTRY_FILE, Key, canonical, folder_reader, read_document, restore

_ROW_FIELDS = frozenset({"key", "call", "baseline_us", "best_us", "created", "signature", "stamp"})

#: What an index raises that can't be read or written.
INDEX_TROUBLE = (OSError, sqlite3.Error, diskcache.Timeout, CacheError, *MALFORMED)

_WAIT_S = 10.0  # writers come one by one, under the lock; only a reader of a moment can be in the way


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


@dataclass
class SummaryIndex:
    """The index in ``folder``, opened when it is first asked. Methods raise one of ``INDEX_TROUBLE``."""

    folder: Path
    _handle: Any = field(default=None, repr=False)

    def get(self, name: str) -> object:
        """The row of the entry in folder ``name``, whatever it is; None if there is none."""
        return self._open().get(name)

    def add(self, name: str, row: Mapping[str, Any] | None) -> None:
        """Sets a row; opens the index anew where that fails, for it may have been removed or damaged meanwhile."""
        try:
            self._open().set(name, row)
        except (OSError, sqlite3.Error) as error:
            self._drop(damaged=not isinstance(error, OSError | sqlite3.OperationalError))
            self._open().set(name, row)

    def fill(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        """Has these rows and no others, in place, as others may have it open; made anew where that fails."""
        try:
            self._fill(rows)
        except INDEX_TROUBLE:
            self._drop(damaged=True)
            self._fill(rows)

    def close(self) -> None:
        """It may be used on."""
        if self._handle is not None:
            self._handle.close()

    def _open(self) -> Any:
        if self._handle is None:
            options = {"timeout": _WAIT_S, "eviction_policy": "none", "cull_limit": 0, "disk": JsonDisk}
            try:
                self._handle = diskcache.Cache(str(self.folder), **options)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise  # busy, full or read-only, not damaged
                shutil.rmtree(self.folder, ignore_errors=True)
                self._handle = diskcache.Cache(str(self.folder), **options)
        return self._handle

    def _drop(self, damaged: bool) -> None:
        with suppress(*INDEX_TROUBLE):
            self.close()
        self._handle = None
        if damaged:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _fill(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        index = self._open()
        with index.transact():
            index.clear()
            for name, row in rows.items():
                index.set(name, row)


def current_row(folder: Path, row: object) -> dict[str, Any] | None:
    """An entry's summary: ``row``, what the index says of it, where that is whole and of the ``entry.json`` that is
    there, else from ``entry.json``; None if nothing can be read."""
    if not isinstance(row, dict) or not row.keys() >= _ROW_FIELDS:
        return read_row(folder)
    if row["stamp"] != _stamp(folder):  # a writer that died has left the row of the entry before
        return read_row(folder) or row  # the row of a damaged one leads to it: then it is quarantined
    return row


def read_row(folder: Path) -> dict[str, Any] | None:
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
