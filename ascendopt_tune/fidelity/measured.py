"""Published values: rows of ``measurements.csv`` (asc-devkit's pages) and of ``silicon.csv`` (other repositories)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import CaseError

_FOLDER = Path(__file__).resolve().parent
#: The published values that ship with the package: facts, each with the page it comes from.
MEASUREMENTS = _FOLDER / "measurements.csv"
#: Small kernels of other public repositories, a run of a kernel a row, with up to ten metrics.
SILICON = _FOLDER / "silicon.csv"
#: What asc-devkit's tables call parts of architecture 2201; `unknown` where a page names no product.
CHIPS_2201 = ("A2", "A2/A3", "unknown")
_COLUMNS = ("id", "source_path", "chip", "scenario", "metric", "value", "unit")
_PIPES = ("vec", "scalar", "mte2", "mte3")
_METRICS = (  # columns of silicon.csv
    *("task_duration_us", "aiv_time_us"),
    *(f"aiv_{pipe}_{what}" for what in ("time_us", "ratio") for pipe in _PIPES),
)


@dataclass(frozen=True)
class PublishedValue:
    """One published value; ``source`` is the page's path in asc-devkit, or a repository and a place in it.

    ``text`` is the value as it was published, a number or a range ``low-high``. ``wide``: from silicon.csv, whose ids
    name several values.
    """

    id: str
    source: str
    chip: str
    scenario: str
    metric: str
    text: str
    unit: str
    wide: bool = False

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The two ends of a range; for a number, itself twice. Raises ValueError for what is neither."""
        low, _, high = self.text.partition("-")
        return float(low), float(high or low)

    @property
    def value(self) -> float:
        """The published value, of a range its middle."""
        return sum(self.ends) / 2

    def nearest(self, value: float) -> float:
        """The published value; of a range what is nearest to ``value``."""
        low, high = self.ends
        return min(max(value, low), high)

    @property
    def half_digit(self) -> float:
        """Half a unit of the last published digit: how far off the value is by rounding alone."""
        return 0.5 * 10.0 ** -len(self.text.partition("-")[0].partition(".")[2])


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as e:
        raise CaseError(f"measurements {path}: {e.strerror}.", "Give a CSV file that exists.") from None
    for column in columns:
        if rows and column not in rows[0]:
            raise CaseError(f"measurements {path} have no column {column!r}.", f"Columns: {', '.join(columns)}.")
    return rows


def _checked(path: Path, values: Iterator[PublishedValue]) -> tuple[PublishedValue, ...]:
    found = tuple(values)
    try:
        for value in found:
            _ = value.ends
    except ValueError as e:
        raise CaseError(f"measurements {path}: {e}.", "Values are numbers.") from None
    return found


def read(path: Path = MEASUREMENTS) -> tuple[PublishedValue, ...]:
    """The rows of a table with columns ``id, source_path, chip, scenario, metric, value, unit`` (others are ignored).

    Raises:
        CaseError: no such file, a column is missing, or a value is not a number.
    """
    rows = _rows(path, _COLUMNS)
    return _checked(
        path,
        (
            PublishedValue(r["id"], r["source_path"], r["chip"], r["scenario"], r["metric"], r["value"], r["unit"])
            for r in rows
        ),
    )


def points(path: Path = SILICON) -> tuple[PublishedValue, ...]:
    """The values of ``silicon.csv``, one for each metric that a row has.

    Raises:
        CaseError: no such file, a column is missing, or a value is not a number.
    """
    rows = _rows(path, ("id", "chip", "kernel", "shape", "block_dim", "source", *_METRICS))
    return _checked(path, (value for row in rows for value in _values(row)))


def _values(row: Mapping[str, str]) -> Iterator[PublishedValue]:
    what = f"{row['kernel']}, {row['shape']}, {row['block_dim']} cores"
    for metric in _METRICS:
        if row[metric]:
            unit = "us" if metric.endswith("_us") else "ratio"
            yield PublishedValue(row["id"], row["source"], row["chip"], what, metric, row[metric], unit, wide=True)
