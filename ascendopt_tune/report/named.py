"""From what ``ascendopt-tune report`` is given to the page that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import AscendOptError, CaseError
from ..files import MALFORMED, parse_json, read_plain
from ..sources.registry import load_operator, operator_names
from ..store.cache import EntrySummary
from ..store.entry import Entry, folder_reader, restore
from ..tuner import TuneRecord
from .cases import write_prebuild, write_together, write_warmup
from .html import write_run
from .run_record import run_document

_RECORD_BYTES = 256 << 20
_KNOWN = (
    "Give a record of tune, prebuild or a warm-up (JSON), the first digits of a result's key, or a folder of bench "
    "results (the one with runs.jsonl)."
)


@dataclass(frozen=True)
class NamedPage:
    """``kind``: run, cases, prebuild, warmup or bench; ``default``: where the page goes unless that is said."""

    kind: str
    default: Path
    write: Callable[[Path], None]


def of_path(path: Path) -> NamedPage:
    """The page of a record or of a folder of bench results.

    Raises:
        CaseError: it can't be read, or is none of these; the text says what it is.
    """
    if path.name == "runs.jsonl":
        path = path.parent
    if path.is_dir():
        if not (path / "runs.jsonl").is_file():
            raise CaseError(f"{path} is a folder without runs.jsonl.", _what_folder(path))
        from .suite import write_suite

        return NamedPage("bench", path / "report.html", lambda out: write_suite(out, path))
    document = _read(path)
    for kind, (fields, _) in _KINDS.items():
        if fields <= document.keys():
            return NamedPage(kind, path.with_suffix(".html"), partial(_record_page, path, kind, document))
    if "error" in document:
        raise CaseError(f"{path} is the record of a command that failed: {_message(document)}", "Run that one again.")
    raise CaseError(f"{path} is JSON, but no record that has a page.", _KNOWN)


def of_result(summary: EntrySummary) -> NamedPage:
    """The page of a result of the cache; what the search tried isn't kept there."""

    def write(out: Path) -> None:
        entry = Entry.from_files(folder_reader(summary.folder))
        name = entry.key.operator
        operator = load_operator(name) if name in operator_names() else None
        write_run(out, run_document(TuneRecord(entry.key, entry.case, entry, cached=True), operator))

    return NamedPage("run", Path(f"{summary.key.operator}-{summary.key.hash[:12]}.html"), write)


Write = Callable[[Path, Mapping[str, Any]], None]
_KINDS: dict[str, tuple[set[str], Write]] = {
    "run": ({"history", "baseline", "best", "case"}, write_run),
    "cases": ({"history", "cases", "mean_relative_time"}, write_together),
    "prebuild": ({"bundle", "entries"}, write_prebuild),
    "warmup": ({"cases", "model_us_before", "model_us_after"}, write_warmup),
}


def _read(path: Path) -> dict[str, Any]:
    try:
        document = restore(parse_json(read_plain(path, _RECORD_BYTES)))
    except OSError as error:
        raise CaseError(f"{path} can't be read: {error.strerror or error}.", _KNOWN) from None
    except ValueError as error:
        raise CaseError(f"{path} is no JSON: {error}.", _KNOWN) from None
    if not isinstance(document, dict):
        raise CaseError(f"{path} is JSON, but no record that has a page.", _KNOWN)
    return document


def _record_page(path: Path, kind: str, document: Mapping[str, Any], out: Path) -> None:
    _, write = _KINDS[kind]
    try:
        write(out, document)
    except AscendOptError:
        raise
    except MALFORMED as error:
        text = f"{path} looks like the record of a {kind}, but isn't whole: {type(error).__name__}: {error}."
        raise CaseError(text, "Was it edited, or made by another version?") from error


def _message(document: Mapping[str, Any]) -> str:
    error = document["error"]
    return str(error.get("message", error) if isinstance(error, dict) else error)


def _what_folder(path: Path) -> str:
    if (path / "entry.json").is_file():
        return f"It is a result of the cache: give the first digits of its key, {path.name[:12]}."
    if (path / "op_host").is_dir() or (path / "op_kernel").is_dir():
        return "It is an operator: ascendopt-tune tune has --report."
    return _KNOWN
