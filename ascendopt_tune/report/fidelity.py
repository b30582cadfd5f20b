"""The page of the comparison with published measurements: modelled against measured, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..fidelity import compare, output
from ..fidelity.compare import LIMITS, ComparedRow
from ..fidelity.runner import Modelled
from ..fidelity.summary import FidelitySummary
from .page import Card, DataTable, Figure, FigurePage, write_figures
from .plot import COLOURS, GREY, Plot, Scale

_LEGEND = 215


def write_fidelity(path: Path, found: FidelitySummary) -> None:
    """Writes the page; intervals where the scenarios were timed under plausible clocks (``runner.run``).

    Raises OSError if it can't be written.
    """
    ends = intervals(found.rows, found.modelled)
    held, missed = len(found.held), len(found.missed)
    inside = [_is_inside(r, ends[i]) for i, r in enumerate(found.rows) if r.verdict and i in ends]
    cards = [
        Card("rows within their limit", f"{held} of {held + missed}"),
        Card("median error", f"{compare.median_error(found.rows):.1f} %", f"limit {compare.MEDIAN_PERCENT:g} %"),
        *([Card("published values in the 90 % interval", f"{sum(inside)} of {len(inside)}")] if inside else []),
    ]
    about = "Own kernels that repeat published measurements, run on the virtual NPU; what is measured is published."
    units = sorted({r.measured.unit for r in found.rows if _shown(r)}, key=lambda unit: (unit != "us", unit))
    figures = [_unit(found.rows, ends, unit) for unit in units]
    figures += [
        Figure("Orders and gains", "Whether the model ranks variants as silicon does, and gives the same gains.",
               tables=[DataTable(["finding"], [[line] for line in found.lines()], open=True)]),
        Figure("Every row", "Published and modelled value, the error, and what is promised of it.",
               tables=[_rows(found.rows, ends)]),
    ]  # fmt: skip
    reasons = [[reason or "nothing is known about them", str(n)] for reason, n in found.not_repeated.items()]
    if reasons:
        table = DataTable(["why", "published values"], reasons)
        figures.append(Figure("Not repeated", "Published values without a kernel of ours, and why.", tables=[table]))
    write_figures(path, FigurePage("Modelled against measured", about, cards, figures))


def beside_a_suite(found: FidelitySummary) -> Figure:
    """The times alone, in us, with their data: what a page of speedups has of this one."""
    ends = intervals(found.rows, found.modelled)
    figure = _unit(found.rows, ends, "us")
    cells = [
        [r.scenario, r.measured.metric, r.measured.text, f"{r.modelled or 0:.4g}", _interval_text(ends, i),
         f"{r.error_percent or 0:+.1f} %"]
        for i, r in enumerate(found.rows) if _shown(r) and r.measured.unit == "us"
    ]  # fmt: skip
    heads = ["scenario", "metric", "measured (us)", "modelled (us)", "90 % interval", "error"]
    held, missed = len(found.held), len(found.missed)
    note = (
        f"Every speedup above is a quotient of two modelled times; here is how far such times are from published ones: "
        f"median error {compare.median_error(found.rows):.1f} %, {held} of {held + missed} rows within their limit, "
        f"without the slowest kernels, which ascendopt-tune fidelity --all has. {figure.note}"
    )
    return Figure("Modelled against measured", note, figure.svg, [DataTable(heads, cells, search=True)])


def _interval_text(ends: Mapping[int, tuple[float, float]], row: int) -> str:
    return f"{ends[row][0]:.4g} to {ends[row][1]:.4g}" if row in ends else "-"


def intervals(rows: Sequence[ComparedRow], modelled: Sequence[Modelled]) -> dict[int, tuple[float, float]]:
    """Number of a row -> the 5th and the 95th percentile of its modelled time over plausible clocks, where known."""
    by_name = {m.scenario.name: m for m in modelled}
    out = {}
    for i, row in enumerate(rows):
        times = by_name[row.scenario].under_other_clocks(row.measured.metric)
        if times is not None:
            low, high = np.percentile(times, (5, 95))
            out[i] = float(low), float(high)
    return out


def _is_inside(row: ComparedRow, ends: tuple[float, float]) -> bool:
    (low, high), rounding = row.measured.ends, row.measured.half_digit
    return ends[0] - rounding <= high and low <= ends[1] + rounding


def _shown(row: ComparedRow) -> bool:
    return bool(row.modelled and row.modelled > 0 and row.measured.value > 0 and row.measured.metric in LIMITS
                and not row.left_out)  # fmt: skip


def _unit(rows: Sequence[ComparedRow], ends: Mapping[int, tuple[float, float]], unit: str) -> Figure:
    """All metrics of one unit, both axes logarithmic."""
    shown = [(i, r) for i, r in enumerate(rows) if _shown(r) and r.measured.unit == unit]
    values = [value for _, r in shown for value in (r.measured.value, r.modelled or 0.0)]
    values += [value for i, _ in shown for value in ends.get(i, ()) if value > 0]
    plot = Plot(
        f"modelled against measured, {unit}",
        Scale.around(f"measured ({unit})", values, log=True),
        Scale.around(f"modelled ({unit})", values, log=True),
        height=460, right=_LEGEND,
    )  # fmt: skip
    low, high = plot.x.low, plot.x.high
    plot.line([(low, low), (high, high)], GREY, width=1.5, title="equal")
    for factor in (1.1, 1 / 1.1):
        at = [(x, x * factor) for x in (low * 1.1, high / 1.1)]
        plot.line(at, GREY, width=1, dash="4 4", title="10 % off")
    names = {}
    for metric, colour in zip(LIMITS, COLOURS, strict=False):
        of = [(i, r) for i, r in shown if r.measured.metric == metric]
        if of:
            plot.whiskers(((r.measured.value, *ends[i]) for i, r in of if i in ends and ends[i][0] > 0), colour)
            plot.dots(((r.measured.value, r.modelled or 0.0, _title(r)) for _, r in of), colour, radius=3.5)
            names[f"{metric.removesuffix('_us')[:20]} ({LIMITS[metric]:.0f} %)"] = colour
    plot.legend(names)
    note = (
        "A dot on the line is modelled as it was measured; dashed: 10 % off. Upright lines: the 90 % interval over "
        "plausible clocks. In brackets the limit that is promised of the metric."
    )
    return Figure(f"In {unit}", note, plot.svg())


def _title(r: ComparedRow) -> str:
    return f"{r.measured.id} {r.scenario}: {r.error_percent or 0:+.1f} %"


def _rows(rows: Sequence[ComparedRow], ends: Mapping[int, tuple[float, float]]) -> DataTable:
    cells = []
    for i, r in enumerate(rows):
        m, error, limit = r.measured, r.error_percent, output.limit_text(r)
        modelled = "-" if r.modelled is None else f"{r.modelled:.4g}"
        cells.append(
            [
                *(m.id, r.scenario, f"{m.metric} ({m.unit})", m.text, modelled),
                _interval_text(ends, i),
                *("-" if error is None else f"{error:+.1f} %", f"{limit} %" if limit else "-", r.verdict),
                r.note if r.verdict == "missed" else "",
            ]
        )
    heads = ["row", "scenario", "metric", "measured", "modelled", "90 % interval", "error", "limit", "verdict"]
    return DataTable([*heads, "missing"], cells, search=True)
