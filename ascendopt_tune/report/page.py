"""Pages of figures, each with its data beside it: one HTML file that needs no network.

A page is read on any width, in light and dark, on paper and by keyboard; its pictures are SVG (plot.py, charts.py).
What a page shows is put together elsewhere, one module a kind; ``templates/figures.html`` draws them all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from ..files import write_whole

_TEMPLATES = Path(__file__).resolve().parent / "templates"
_NUMBER = re.compile(r"[-+]?\d[\d.]*( ?(%|x|us|s|MB))?( \(.*\))?|-")


@dataclass(frozen=True)
class DataTable:
    """``search``: whether rows can be looked for by a word; ``open``: whether it is shown at once."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    search: bool = False
    open: bool = False
    title: str = "The data"


@dataclass(frozen=True)
class Figure:
    """A section of a page: what it shows in words, a picture (SVG) where there is one, and the data."""

    title: str
    note: str
    svg: str = ""
    tables: Sequence[DataTable] = ()


@dataclass(frozen=True)
class Card:
    """A number that is seen first, with what it is and a remark."""

    name: str
    value: str
    note: str = ""
    win: bool = False


@dataclass(frozen=True)
class FigurePage:
    """``modelled``: times are from the virtual NPU's model, and the page says so on top."""

    title: str
    about: str
    cards: Sequence[Card]
    figures: Sequence[Figure]
    modelled: bool = True


def _interval(cell: str) -> tuple[str, str]:
    """A cell's number, and the interval behind it in brackets, if it has one."""
    number, bracket, rest = cell.partition(" (")
    return (number, bracket.strip() + rest) if _NUMBER.fullmatch(cell) else (cell, "")


def write_figures(path: Path, page: FigurePage) -> None:
    """Writes the page, whole or not at all. Raises OSError if it can't."""
    write_page(path, "figures.html", page=page)


def write_page(path: Path, template: str, **about: Any) -> None:
    """Writes what a template makes of ``about``, whole or not at all. Raises OSError if it can't."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.tests["numeric"] = lambda text: bool(_NUMBER.fullmatch(text))
    environment.filters["interval"] = _interval
    write_whole(path, environment.get_template(template).render(**about))
