"""Chip: the hardware numbers of one Ascend part, read from ``vnpu/chips/<name>.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import CaseError

CHIPS_FOLDER = Path(__file__).resolve().parent / "vnpu" / "chips"
DEFAULT_CHIP = "ascend910b2"


@dataclass(frozen=True)
class Chip:
    """``values`` are flattened ``section.key``; each number's unit is in its name, its source in the file."""

    name: str
    values: Mapping[str, str | int | float]


def chip_names() -> list[str]:
    """Names of the chips there are numbers for."""
    return sorted(p.stem for p in CHIPS_FOLDER.glob("*.toml"))


@cache
def load_chip(name: str) -> Chip:
    """The chip called ``name``.

    Raises:
        CaseError: no such chip; the text lists those that exist.
    """
    file = CHIPS_FOLDER / f"{name}.toml"
    if name not in chip_names():
        raise CaseError(f"unknown chip {name!r}.", f"Known chips: {', '.join(chip_names())}.")
    document = tomllib.loads(file.read_text())
    return Chip(name, {f"{section}.{key}": v for section, keys in document.items() for key, v in keys.items()})
