"""Chip: the hardware numbers of one Ascend part, read from ``vnpu/chips/<name>.toml`` or a file of one's own."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .errors import CaseError

CHIPS_FOLDER = Path(__file__).resolve().parent / "vnpu" / "chips"
DEFAULT_CHIP = "ascend910b2"


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


def chip_names() -> list[str]:
    """Names of the chips there are numbers for."""
    return sorted(p.stem for p in CHIPS_FOLDER.glob("*.toml"))


@cache
def load_chip(name: str) -> Chip:
    """The chip called ``name``, or the one in the file ``name`` when that ends in ``.toml``.

    Raises:
        CaseError: no such chip (the text lists those that exist), or a file that can't be read.
    """
    if name.endswith(".toml"):
        document = _document(Path(name))
        name = Path(name).stem
    elif name in chip_names():
        document = _document(CHIPS_FOLDER / f"{name}.toml")
    else:
        raise CaseError(f"unknown chip {name!r}.", f"Known chips: {', '.join(chip_names())}; or a file.toml.")
    parent = document.get("chip", {}).get("inherits")
    documents = [_document(CHIPS_FOLDER / f"{parent}.toml")] if parent else []
    values: dict[str, str | int | float] = {}
    constants: dict[str, Constant] = {}
    for source in (*documents, document):
        for key, value, constant in _numbers(source):
            values[key] = value
            constants.pop(key, None)
            if constant is not None:
                constants[key] = constant
    return Chip(name, values, constants)


def _document(file: Path) -> dict[str, dict[str, object]]:
    try:
        document: dict[str, dict[str, object]] = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError) as e:
        raise CaseError(f"the chip file {file} can't be read: {e}.", "Name a chip, or a TOML file that exists.") from None
    except tomllib.TOMLDecodeError as e:
        raise CaseError(f"the chip file {file} is no TOML: {e}.", "Correct it, or calibrate again.") from None
    return document


def _numbers(document: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str | int | float, Constant | None]]:
    """Flattened keys with their values, and an interval where there is one (forms: see architecture/2201.toml)."""
    for name, entry in document.items():
        key = f"{prefix}{name}"
        if isinstance(entry, str | int | float):
            yield key, entry, None
        elif isinstance(entry, list):
            yield key, entry[0], Constant(*map(float, entry), str(document.get("source", "")))
        elif isinstance(entry, dict) and "value" in entry:
            constant = Constant(*(float(entry[k]) for k in ("value", "low", "high")), str(entry.get("source", "")))
            yield key, entry["value"], constant
        elif isinstance(entry, dict):
            yield from _numbers(entry, f"{key}.")
