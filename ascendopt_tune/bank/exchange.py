"""Experience from and to other places: files of this project's own form, and lists of optimization points.

A list of optimization points is a JSON list of objects with the texts ``title``, ``description``, ``bottleneck`` and
``code_diff``, as the public bank of KernelHive/ascendc-skill has it. Such points name no motif, and nobody measured
them here: they serve a reader, or a language model, and count as no validated experience.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import BankError
from ..files import TEXT_BYTES, parse_json, read_plain, write_whole
from .bank import Records, read_records
from .experience import Experience, ExperienceProvenance, line_of

_POINT = {"title": "title", "description": "description", "bottleneck": "bottleneck", "code_diff": "diff"}


def read_any(path: Path) -> Records:
    """The records of a file: an exported bank, a bank's folder, or a list of optimization points.

    Raises:
        BankError: it can't be read, or is neither.
    """
    if path.is_dir():
        path = path / "experience.jsonl"
    if not path.is_file():
        raise BankError(f"there is no file {path}.", "Name a file of `bank export`, a bank's folder, or a JSON list.")
    try:
        with path.open("rb") as file:
            is_list = file.read(4096).lstrip().startswith(b"[")
        document = parse_json(read_plain(path, TEXT_BYTES)) if is_list else None
    except (OSError, ValueError) as error:
        raise BankError(f"{path} can't be read: {error}.", "Check the file.") from error
    return read_records(path) if document is None else points(document, path.name)


def points(document: Any, source: str) -> Records:
    """Optimization points as experiences that nobody measured. ``source``: the file's name, kept as provenance.

    Raises:
        BankError: an entry has other keys, or a value that is no text.
    """
    made: dict[str, Experience] = {}
    for number, entry in enumerate(document, start=1):
        if not isinstance(entry, dict) or set(entry) != set(_POINT):
            raise BankError(
                f"{source}, entry {number}, is no optimization point.",
                f"Each entry is an object with exactly the texts {', '.join(_POINT)}.",
            )
        for name, value in entry.items():
            if not isinstance(value, str):
                raise BankError(f"{source}, entry {number}: {name} is no text.", "Correct the entry.")
        texts = {ours: entry[theirs].strip() for theirs, ours in _POINT.items()}
        e = Experience(motif="", **texts, provenance=ExperienceProvenance(f"import of {source}"))
        made[e.id] = e
    return Records(made)


def write_file(path: Path, records: Records, chosen: Iterable[Experience] | None = None) -> int:
    """Writes records, or the ``chosen`` experiences of them with their uses, to one file, whole or not at all.

    Returns:
        The number of experiences written.

    Raises:
        BankError: the file can't be written.
    """
    ids = set(records.experiences) if chosen is None else {e.id for e in chosen}
    lines = [line_of(e) for i, e in records.experiences.items() if i in ids]
    lines += [line_of(u) for u in records.uses if u.experience in ids]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, "".join(f"{line}\n" for line in sorted(lines)))
    except OSError as error:
        raise BankError(f"{path} can't be written: {error.strerror}.", "Name another file.") from error
    return len(ids)
