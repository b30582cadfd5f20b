"""Modelled against measured, row by row, and the limits of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from .measured import PublishedValue
from .runner import Modelled
from .table import reason_of, scenario_of, why_missed

#: What is promised of a metric, in per cent of the measured value. Other metrics are shown without a limit.
LIMITS = {
    "task_duration_us": 10.0,
    "aic_time_us": 10.0,  # the longest core's, of pages that publish no task duration
    "aiv_vec_time_us": 5.0,
    "system_counter_ticks_per_1000_add": 5.0,
    "time_us_per_100_loops": 5.0,
    "aiv_mte2_time_us": 10.0,
    "aic_mte2_time_us": 10.0,
    "aiv_scalar_time_us": 30.0,
    "aic_scalar_time_us": 30.0,
    "aiv_mte3_time_us": 15.0,
}
#: Metrics of a whole launch.
WHOLE = ("task_duration_us", "aic_time_us")
#: Of tasks up to SHORT_US long: whichever is more of a share and of microseconds.
SHORT_US, SHORT_PERCENT, SHORT_LEAST_US = 50.0, 15.0, 0.7
#: MTE3 has a limit only where published values of one scenario repeat within so many per cent.
REPEATS_PERCENT = 10.0
#: The median error over all rows with a limit, in per cent.
MEDIAN_PERCENT = 5.0


@dataclass(frozen=True)
class ComparedRow:
    """A published value beside its modelled one; ``modelled`` is None where the metric isn't modelled.

    ``allowed``: how far off the modelled value may be, in the metric's unit; None for a row without a limit.
    """

    measured: PublishedValue
    modelled: float | None
    scenario: str
    chip: str
    allowed: float | None = None
    note: str = ""  # why the row doesn't count, or which mechanism is missing
    left_out: bool = False  # its value means nothing here

    @property
    def error_percent(self) -> float | None:
        """(modelled - measured) / measured in per cent; of a range 0 inside and from its nearer end outside.

        None where there is nothing to divide.
        """
        if self.modelled is None or self.measured.ends[0] == 0:
            return None
        return 100 * (self.modelled / self.measured.nearest(self.modelled) - 1)

    @property
    def verdict(self) -> str:
        """``held``, ``missed``, or "" for a row without a limit."""
        if self.allowed is None or self.error_percent is None or self.modelled is None:
            return ""
        return "held" if abs(self.modelled - self.measured.nearest(self.modelled)) <= self.allowed else "missed"


def allowed(measured: PublishedValue, modelled: float | None) -> float | None:
    """How far off ``modelled`` may be, in the metric's unit: the limit and what the value was rounded by."""
    if measured.metric not in LIMITS or modelled is None:
        return None
    value = measured.nearest(modelled)
    share = value * LIMITS[measured.metric] / 100
    if measured.metric in WHOLE and value <= SHORT_US:
        share = max(value * SHORT_PERCENT / 100, SHORT_LEAST_US)
    return share + measured.half_digit


def rows_of(modelled: Sequence[Modelled], measured: Iterable[PublishedValue]) -> list[ComparedRow]:
    """The published values of the scenarios that were run, in the order of the table."""
    by_name = {m.scenario.name: m for m in modelled}
    found = [(row, by_name[s.name]) for row in measured if (s := scenario_of(row)) and s.name in by_name]
    repeating = _repeating(found)
    rows = []
    for row, one in found:
        scenario = one.scenario
        reason = scenario.left_out.get(row.metric, "")
        limited = not reason and (row.metric != "aiv_mte3_time_us" or scenario.name in repeating)
        value = one.value(row.metric)
        limit = allowed(row, value) if limited else None
        note = reason or scenario.missing or why_missed(scenario.name, row.metric)
        rows.append(ComparedRow(row, value, scenario.name, one.chip, limit, note, bool(reason)))
    return rows


def _repeating(found: Iterable[tuple[PublishedValue, Modelled]]) -> set[str]:
    """The scenarios of which several published MTE3 times lie within REPEATS_PERCENT."""
    values: dict[str, list[float]] = {}
    for row, one in found:
        if row.metric == "aiv_mte3_time_us":
            values.setdefault(one.scenario.name, []).append(row.value)
    return {name for name, v in values.items() if len(v) > 1 and max(v) <= min(v) * (1 + REPEATS_PERCENT / 100)}


def median_error(rows: Iterable[ComparedRow]) -> float:
    """The median absolute error over all rows with a limit, in per cent; 0 where there is none."""
    errors = [abs(r.error_percent) for r in rows if r.verdict and r.error_percent is not None]
    return median(errors) if errors else 0.0


def not_repeated(measured: Iterable[PublishedValue]) -> dict[str, int]:
    """Why rows of a table have no scenario, with the number of rows; "" counts those nothing is known about."""
    reasons: dict[str, int] = {}
    for row in measured:
        if scenario_of(row) is None:
            reason = reason_of(row)
            reasons[reason] = reasons.get(reason, 0) + 1
    return reasons


def without_row(modelled: Sequence[Modelled], rows: Sequence[ComparedRow]) -> list[Modelled]:
    """What was run though no value of it is published."""
    with_rows = {r.scenario for r in rows}
    return [one for one in modelled if one.scenario.name not in with_rows]
