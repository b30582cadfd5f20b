"""Chip: the hardware numbers of one Ascend part, read from ``vnpu/chips/<name>.toml`` or a file of one's own.

A file of one's own is known by what it says: its name gets a hash of the content, and a copy under that name is kept in
the writable cache, so that results that were found with it can be told, and read, when the file has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .. import paths
from ..errors import CaseError, did_you_mean
from ..files import MALFORMED, read_plain, read_toml, write_whole

CHIPS_FOLDER = paths.chips()
DEFAULT_CHIP = "ascend910b2"
#: What a launch finds: ``warm``, what launches of the same kernel that follow each other find; ``flushed``, an L2 that
#: something else has filled since; ``cold``, as the first launch after the kernel was loaded.
WARM, FLUSHED = "warm", "flushed"
STATES = (WARM, FLUSHED, "cold")
_FILE_BYTES = 4 << 20
_ENDING = ".toml"
#: What begins so in a chip file concerns kernels that run on cube cores, or ask them for products.
_CUBE = (
    "nd2nz.",
    "mte1.",
    "mac.",
    "fixpipe.",
    "mixed.",
    "cube_instructions.",
    "flushed.cube_",
    "scalar.matmul_",
    "scalar.message_",
)


@dataclass(frozen=True)
class Constant:
    """A hardware number, the interval in which it plausibly lies (nine times of ten), and where it comes from."""

    value: float
    low: float
    high: float
    source: str


@dataclass(frozen=True)
class Chip:
    """``values`` are flattened ``section.key``; each number's unit is in its name, its source in the file.

    ``constants`` are those of them that have an interval: what is fitted, measured or assumed rather than known.
    """

    name: str
    values: Mapping[str, str | int | float]
    constants: Mapping[str, Constant] = field(default_factory=dict)
    #: The file of one's own that it was read from, as it is kept.
    file: Path | None = None

    @property
    def vector_constants(self) -> dict[str, Constant]:
        """Those of ``constants`` that kernels on vector cores show."""
        return {key: c for key, c in self.constants.items() if not key.startswith(_CUBE)}

    @property
    def option(self) -> str:
        """What the virtual NPU's option ``chip`` takes."""
        return str(self.file or self.name)


def kept_folder() -> Path:
    """Where copies of chip files of one's own are kept, by name and hash."""
    return paths.cache_dir() / "chips"


def chip_key(name: str) -> str:
    """The name under which results are kept: a chip's own, or for a ``file.toml`` one that tells its content.

    Raises:
        CaseError: a file that can't be read.
    """
    return load_chip(name).name if name.endswith(_ENDING) else name


def chip_names() -> list[str]:
    """Names of the chips there are numbers for."""
    return sorted(p.stem for p in CHIPS_FOLDER.glob("*.toml"))


def load_chip(name: str) -> Chip:
    """The chip called ``name``, or the one in the file ``name`` when that ends in ``.toml``.

    Raises:
        CaseError: no such chip (the text lists those that exist), or a file that can't be read.
    """
    return _named(_keep(Path(name)) if name.endswith(_ENDING) else name)


def _keep(file: Path) -> str:
    """Keeps a copy of a chip file; the name that the copy is known by."""
    document, content = _document(file), read_plain(file, _FILE_BYTES)
    try:
        parent = _inherited(document)
        list(_numbers(document))
    except MALFORMED as e:
        raise CaseError(
            f"the chip file {file} has other values than a chip's: {e!r:.200}.", "Correct it, or calibrate again."
        ) from None
    loose = [key for key, value in document.items() if not isinstance(value, dict)]
    if loose or (parent is None and "aiv" not in document.get("core", {})):
        lacks = (
            f"has {loose[0]!r:.80} outside of a section" if loose else "says nothing of its cores and inherits nothing"
        )
        raise CaseError(
            f"the chip file {file} {lacks}.", 'Begin it with [chip] and inherits = "ascend910b4", or calibrate.'
        )
    whole = content + (CHIPS_FOLDER / f"{parent}{_ENDING}").read_bytes() if parent else content
    name = f"{file.stem}-{hashlib.sha256(whole).hexdigest()[:8]}"
    if file.parent == kept_folder():
        return file.stem
    kept = kept_folder() / f"{name}{_ENDING}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, content)
    return name


@cache
def _named(name: str) -> Chip:
    own = kept_folder() / f"{name}{_ENDING}"
    if name in chip_names():
        document, file = _document(CHIPS_FOLDER / f"{name}{_ENDING}"), None
    elif "/" not in name and own.is_file():
        document, file = _document(own), own
    else:
        raise CaseError(
            f"unknown chip {name!r}.{did_you_mean(name, chip_names())}",
            f"Known chips: {', '.join(chip_names())}; or a file.toml.",
        )
    try:
        return _made(name, document, file)
    except MALFORMED as e:
        raise CaseError(
            f"the chip file {file or name} has other values than a chip's: {e!r:.200}.",
            "Correct it, or calibrate again.",
        ) from None


def _inherited(document: Mapping[str, Mapping[str, object]]) -> str | None:
    """The chip whose numbers the document begins with. Raises ValueError for what is none."""
    parent = document.get("chip", {}).get("inherits")
    known = {p.relative_to(CHIPS_FOLDER).as_posix().removesuffix(_ENDING) for p in CHIPS_FOLDER.rglob(f"*{_ENDING}")}
    if parent is not None and parent not in known:
        raise ValueError(f"inherits = {parent!r:.80}, which is no chip")
    return str(parent) if parent is not None else None


def _made(name: str, document: dict[str, dict[str, object]], file: Path | None) -> Chip:
    documents = [document]
    while parent := _inherited(documents[0]):
        documents.insert(0, _document(CHIPS_FOLDER / f"{parent}{_ENDING}"))
    values: dict[str, str | int | float] = {}
    constants: dict[str, Constant] = {}
    for source in documents:
        for key, value, constant in _numbers(source):
            values[key] = value
            constants.pop(key, None)
            if constant is not None:
                constants[key] = constant
    return Chip(name, values, constants, file)


def _document(file: Path) -> dict[str, dict[str, object]]:
    try:
        document: dict[str, dict[str, object]] = read_toml(file)
    except OSError as e:
        raise CaseError(
            f"the chip file {file} can't be read: {e}.", "Name a chip, or a TOML file that exists."
        ) from None
    except ValueError as e:
        raise CaseError(f"the chip file {file} is no TOML: {e}.", "Correct it, or calibrate again.") from None
    return document


def _numbers(
    document: Mapping[str, object], prefix: str = ""
) -> Iterator[tuple[str, str | int | float, Constant | None]]:
    """Flattened keys with their values, and an interval where there is one (forms: see architecture/2201.toml)."""
    for name, entry in document.items():
        key = f"{prefix}{name}"
        if isinstance(entry, str | int | float):
            yield key, entry, None
        elif isinstance(entry, list):
            value, low, high = map(float, entry)
            yield key, entry[0], Constant(value, low, high, str(document.get("source", "")))
        elif isinstance(entry, dict) and "value" in entry:
            value, low, high = (float(entry[k]) for k in ("value", "low", "high"))
            yield key, entry["value"], Constant(value, low, high, str(entry.get("source", "")))
        elif isinstance(entry, dict):
            yield from _numbers(entry, f"{key}.")
