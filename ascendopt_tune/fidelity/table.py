"""Tables: the scenarios there are kernels for, published measurements, and which row belongs to which scenario."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..errors import CaseError

FOLDER = Path(__file__).resolve().parent
#: The published rows that ship with the package: facts, each with the page it comes from.
MEASUREMENTS = FOLDER / "measurements.csv"
#: What asc-devkit's tables call parts of architecture 2201; `unknown` where a page names no product.
CHIPS_2201 = ("A2", "A2/A3", "unknown")
_COLUMNS = ("id", "source_path", "chip", "scenario", "metric", "value", "unit")


@dataclass(frozen=True)
class Scenario:
    """One thing that was measured, as a kernel of ours: ``kernels/<kernel>.cpp`` with macros ``define``.

    ``buffers`` are bytes, one per kernel argument. ``missing`` names the mechanism the model lacks where it is known to
    miss; ``left_out`` says of a metric why its value means nothing here.
    """

    name: str
    source: str
    match: str
    kernel: str
    define: tuple[str, ...]
    blocks: int
    buffers: tuple[int, ...]
    chip: str = "ascend910b1"
    slow: bool = False
    missing: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """Scenarios of one family are ranked against each other."""
        return self.name.split("/")[0]


@dataclass(frozen=True)
class Measured:
    """One published value; ``source`` is the page's path in asc-devkit."""

    id: str
    source: str
    chip: str
    scenario: str
    metric: str
    value: float
    unit: str


@dataclass(frozen=True)
class LeftOut:
    """Rows that can't be done again, and why."""

    source: str
    match: str
    reason: str


@cache
def _document() -> Mapping[str, list[dict[str, object]]]:
    return tomllib.loads((FOLDER / "scenarios.toml").read_text())


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Every scenario there is a kernel for, those without a published row too."""
    made = []
    for entry in _document()["scenario"]:
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
        made.append(Scenario(**values))  # type: ignore[arg-type]
    return tuple(made)


def left_out() -> tuple[LeftOut, ...]:
    """Which published rows are not done again."""
    return tuple(LeftOut(**entry) for entry in _document()["left_out"])  # type: ignore[arg-type]


def chosen(names: Sequence[str], slow: bool) -> tuple[Scenario, ...]:
    """The scenarios whose name is, or begins with, one of ``names``; without names all, slow ones if ``slow``.

    Raises:
        CaseError: nothing has such a name.
    """
    if not names:
        return tuple(s for s in scenarios() if slow or not s.slow)
    for name in names:
        if not any(s.name == name or s.family == name for s in scenarios()):
            raise CaseError(
                f"no scenario is called {name!r}.", f"Scenarios: {', '.join(s.name for s in scenarios())}; or a family."
            )
    return tuple(s for s in scenarios() if s.name in names or s.family in names)


def read(path: Path = MEASUREMENTS) -> tuple[Measured, ...]:
    """The rows of a table with columns ``id, source_path, chip, scenario, metric, value, unit`` (others are ignored).

    Raises:
        CaseError: no such file, a column is missing, or a value is not a number.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as e:
        raise CaseError(f"measurements {path}: {e.strerror}.", "Give a CSV file that exists.") from None
    for column in _COLUMNS:
        if rows and column not in rows[0]:
            raise CaseError(f"measurements {path} have no column {column!r}.", f"Columns: {', '.join(_COLUMNS)}.")
    try:
        return tuple(
            Measured(r["id"], r["source_path"], r["chip"], r["scenario"], r["metric"], float(r["value"]), r["unit"])
            for r in rows
        )
    except ValueError as e:
        raise CaseError(f"measurements {path}: {e}.", "The column `value` holds numbers.") from None


def scenario_of(row: Measured) -> Scenario | None:
    """The scenario that does again what ``row`` measured."""
    if row.chip not in CHIPS_2201:
        return None
    return next((s for s in scenarios() if s.source in row.source and s.match in row.scenario), None)


def reason_of(row: Measured) -> str:
    """Why there is no scenario for ``row``; "" when nothing is known about it."""
    if row.chip not in CHIPS_2201:
        return f"measured on {row.chip}, another architecture than 2201"
    return next((x.reason for x in left_out() if x.source in row.source and x.match in row.scenario), "")
