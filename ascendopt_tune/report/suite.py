"""The page of a benchmark: how much faster, on which levels and sizes, by which stage, and against which peers.

Everything is reckoned as on the Markdown page (bench/report.py); the paper's figures are named where they are repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..bench import peers, runner, summary, table
from ..bench.record import RunRecord
from ..bench.report import Results
from ..errors import CacheError, CaseError
from ..fidelity.summary import FidelitySummary
from . import landscape
from . import suite_figures as figures_of
from .fidelity import beside_a_suite
from .page import Card, Figure, FigurePage, write_figures

_ABLATION = ("stage-1", "stage-2", "full")
_FIDELITY = (
    "Every speedup above is a quotient of two modelled times. How far such times are from published measurements, "
    "kernel by kernel and with intervals over plausible clocks, is a page of its own, because its kernels have to run "
    "first. ascendopt-tune report FOLDER --fidelity runs them and shows their times here; every row: ascendopt-tune "
    "fidelity --plot fidelity.html."
)


def write_suite(path: Path, folder: Path, fidelity: FidelitySummary | None = None) -> None:
    """Writes the page of the runs in a folder of ``bench search --results``; with ``fidelity`` what it tells of times.

    Raises:
        CaseError: there are no runs, or they can't be read.
        OSError: the page can't be written.
    """
    write_results(path, results_of(folder), fidelity)


def results_of(folder: Path) -> Results:
    """What the runs in a folder were asked for, as far as they tell: the chip and budget most of them have.

    Raises:
        CaseError: there are none, or they can't be read.
    """
    try:
        runs = runner.read_runs(folder)
    except CacheError as error:
        raise CaseError(error.message, "Was it made by another version?") from error
    if not runs:
        raise CaseError(f"{folder / 'runs.jsonl'} has no run.", "ascendopt-tune bench search --results makes some.")
    (chip, budget), _ = Counter((r.chip, r.budget) for r in runs).most_common(1)[0]
    runs = [r for r in runs if (r.chip, r.budget) == (chip, budget)]
    cases = {r.case for r in runs}
    methods = [m for m in runner.METHODS if any(r.method == m for r in runs)]
    operators = tuple(o for o in table.read() if (o.path, o.size) in cases)
    seeds_of = Counter((case, method) for case, method, _ in {(r.case, r.method, r.seed) for r in runs})
    (seeds, _), *_ = Counter(seeds_of.values()).most_common()
    lists = {o.list for o in operators}
    plan = runner.BenchPlan(
        operators, tuple(methods), seeds, budget, chip, folder,
        sampled=tuple(m for m in methods if _on_sample(runs, m)),
        list=table.EXTENDED if len(lists) > 1 else next(iter(lists), table.TEST),
    )  # fmt: skip
    newest = list({(*r.case, r.method, r.seed): r for r in runs}.values())
    failed = [one for one in sorted(runner.read_failures(folder).items()) if one[0] not in cases]
    return Results(plan, newest, failed, table.left_out())


def _on_sample(runs: Sequence[RunRecord], method: str) -> bool:
    """Whether a method ran on fewer operators than another one that applies to all."""
    of = Counter(m for m, _ in {(r.method, r.operator) for r in runs} if m not in peers.PARAMETRIC)
    return method in of and of[method] < max(of.values())


def write_results(path: Path, results: Results, fidelity: FidelitySummary | None = None) -> None:
    """Writes the page. Raises CaseError where no case has every method and seed; OSError if it can't be written."""
    counted, general = results.counted, results.general
    if not counted:
        raise CaseError("no case has every method and seed yet.", "Run the same `bench search` to its end.")
    first = general[0]
    own = [r for r in counted if r.method == first]
    gain = summary.gain(own)
    plan, faster = results.plan, gain.fast[1.0]
    sample = (results.having(plan.sampled) if plan.sampled else counted) or counted
    cards = [
        Card("geometric mean, modelled", f"{gain.mean.nominal:.3f}x", figures_of.ends_of(gain.mean, 1.0, ".3f"), True),
        Card("faster than as written", f"{100 * faster.nominal:.1f} %", figures_of.ends_of(faster, 100, ".1f")),
        Card("cases", str(gain.cases), f"{len({r.operator for r in own})} operators"),
        *(
            [Card("survive", f"{100 * gain.wins:.1f} %", "faster in 95 % of the clocks")]
            if gain.wins is not None
            else []
        ),
    ]
    seeds = "1 seed" if plan.seeds == 1 else f"{plan.seeds} seeds"
    about = (
        f"{first} on the {plan.list} list, chip {plan.chip}, {seeds}, {plan.budget} evaluations each; search "
        f"{', '.join(sorted({r.code for r in counted}))}, toolkit {', '.join(sorted({r.toolkit for r in counted}))}. "
        "In brackets: the 5th and the 95th percentile over plausible clocks, the same clocks for all cases."
    )
    figures = [
        figures_of.distribution(own),
        figures_of.by_level(own),
        figures_of.ablation(sample, [m for m in _ABLATION if any(r.method == m for r in sample)]),
        figures_of.anytime(counted, general),
        figures_of.against(results, sample),
        figures_of.outcomes(sample, [m for m in plan.methods if m not in peers.PARAMETRIC]),
        landscape.of_bank(),
        beside_a_suite(fidelity) if fidelity is not None else Figure("Modelled against measured", _FIDELITY),
        figures_of.cases(counted, general),
        *figures_of.not_run(results),
    ]
    write_figures(path, FigurePage("Benchmark of the search", about, cards, [f for f in figures if f is not None]))


def anytime_svg(results: Results, ground: str = "") -> str:
    """The anytime curves of all methods that apply to every case, and of the first one at each size."""
    counted, general = results.counted, results.general
    return figures_of.curves_svg(figures_of.curves_of(counted, general), ground)
