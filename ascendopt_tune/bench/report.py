"""The results as a Markdown page; its picture, and the page of the same runs in HTML, are report/suite.py's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..files import write_between
from . import peers, summary
from .gain import PARTS
from .record import RunRecord
from .runner import COMPARED, BenchPlan
from .sizes import SIZES
from .table import LEVELS, LeftOut

BEGIN, END = "<!-- results: written by `ascendopt-tune bench search --docs` -->", "<!-- end of results -->"
FULL = "full"
_AIM_MEAN, _AIM_FAST = 1.25, 0.6  # what the search is to reach
#: Method -> geometric mean and fast_p that the AscendOptimizer paper gives (arXiv 2603.23566: tables 3 and 4, section
#: 4.3; fast_1.2 of its full method from figure 2, 30.2 % of 63 operators). Measured on 910B4, 127 operators of cann-ops
#: at shapes of its own, a language model proposing.
PAPER: dict[str, tuple[float, dict[float, float]]] = {
    "full": (1.19, {1.0: 0.4961, 1.2: 0.150, 2.0: 0.0709}),
    "stage-1": (1.09, {1.0: 0.3858, 2.0: 0.0315}),
    "stage-2": (1.12, {1.2: 0.1575, 1.4: 0.1181}),
}
_INTERRUPTED = (
    "The run is not complete. Operators come in an order that mixes the levels and that their names decide, each with "
    "its sizes one after the other, so which ones are here has nothing to do with results. "
)
_MOST_KINDS = 10
_LEFT = 3  # cases told of with the most left on the table
_MOST_REASON = 240  # characters
_FOLDERS = re.compile(r"(?<![\w.:/])/\S*/")  # of absolute paths: where the run had its files says nothing to a reader

Failures = Sequence[tuple[summary.CaseName, str]]


@dataclass(frozen=True)
class Results:
    """What there is to report. ``failed``: cases without a run, and why; ``left_out``: sizes there are no cases of."""

    plan: BenchPlan
    runs: Sequence[RunRecord]
    failed: Failures
    left_out: Sequence[LeftOut] = ()

    @property
    def general(self) -> list[str]:
        """The methods that apply to every case."""
        return [m for m in self.plan.methods if m not in peers.PARAMETRIC and m not in self.plan.sampled]

    @property
    def counted(self) -> list[RunRecord]:
        """The runs of cases that have every seed of ``general``."""
        return summary.complete(self.runs, self.general, self.plan.seeds)

    def having(self, more: Sequence[str]) -> list[RunRecord]:
        """The runs of cases that have every seed of these methods as well."""
        return summary.complete(self.runs, [*self.general, *more], self.plan.seeds)


def write(page: Path, results: Results) -> None:
    """Writes the results between the marks of ``page`` (a new page, if there is none).

    Raises:
        CacheError: it can't be written.
    """
    body = "\n".join(_results(results, f"{page.stem}.svg")).rstrip()
    write_between(page, BEGIN, END, "results", body, "# Benchmark of the search")


def _results(results: Results, picture: str) -> Iterator[str]:
    plan, counted = results.plan, results.counted
    versions = {p: v for r in results.runs for p, v in r.versions.items()}
    yield (
        f"{_coverage(results)}: {plan.seeds} seed(s), {plan.budget} evaluations each, on the virtual NPU "
        f"({plan.chip}). **All times and speedups are modelled.** Version of the "
        f"search: {', '.join(sorted({r.code for r in counted})) or '-'}; toolkit: "
        f"{', '.join(sorted({r.toolkit for r in counted})) or '-'}; peers: "
        f"{', '.join(f'{p} {v}' for p, v in sorted(versions.items())) or '-'}."
    )
    yield ""
    if counted:
        yield f"![Modelled speedup by evaluation, geometric mean]({picture})\n"
        yield from _tables(results, summary.best_known(results.runs))
    else:
        yield "No case has every method and seed yet."
    yield from _missing("Not run", [(path, size, why) for (path, size), why in results.failed])
    without = [(one.path, one.size, one.reason) for one in results.left_out]
    yield from _missing("Sizes that an operator does not have", without)


def _tables(results: Results, known: dict[summary.CaseName, float]) -> Iterator[str]:
    """Everything that is counted; ``known``: summary.best_known."""
    plan, counted, general = results.plan, results.counted, results.general
    yield from _gains(results)
    yield from _nearness(results)
    sampled = results.having(plan.sampled) if plan.sampled else counted
    methods = [m for m in plan.methods if m not in peers.PARAMETRIC]
    found = summary.lines(sampled, methods, known)
    if len(methods) > 1 and found:
        where = "the sample, all sizes" if plan.sampled else "all sizes"
        yield from _table(f"The methods on {where}", found)
        yield from _against(results, sampled, found)
    for level, meaning in LEVELS.items():
        of = [r for r in counted if r.level == level]
        if of:
            yield from _table(f"Level {level} ({meaning})", summary.lines(of, general, known))
    numeric = results.having(plan.methods) if set(plan.methods) & set(peers.PARAMETRIC) else []
    if numeric:
        title = "Operators with numbers to tune: the methods that change nothing else, beside the others"
        yield from _table(title, summary.lines(numeric, plan.methods, known))
    yield from _outcomes(sampled or counted, methods if sampled else general)
    yield from _kinds(counted, general[0])
    yield from _operators(counted, general, known)
    yield from _left_behind(results, general[0], known)


def _missing(title: str, cases: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Cases without a result: operator, size, why."""
    if cases:
        yield f"### {title}\n\n| operator | size | why |\n|---|---|---|"
        yield from (f"| {path} | {size} | {_cell(reason)} |" for path, size, reason in cases)
        yield ""


def _coverage(results: Results) -> str:
    """How many cases of how many operators have every method and seed, and whether more are to come."""
    asked = {(o.path, o.size) for o in results.plan.operators}
    have = {r.case for r in results.counted}
    by_size = ", ".join(
        f"{sum(s == size for _, s in have)} {size}" for size in SIZES if any(s == size for _, s in asked)
    )
    missing = asked - have - {case for case, _ in results.failed}
    sampled = results.plan.sampled
    too = f"; {len({r.case for r in results.having(sampled)})} have {', '.join(sampled)}, too" if sampled else ""
    return (
        f"{_INTERRUPTED if missing else ''}{len(have)} of the {len(asked)} cases ({by_size}) of the "
        f"{len({path for path, _ in asked})} operators of the {results.plan.list} list that were asked for have every "
        f"method{' that is not sampled' if sampled else ''} and seed{too}"
    )


# -- by size -----------------------------------------------------------------------------------------------------------


def _gains(results: Results) -> Iterator[str]:
    """What the first method gains by size, then every method of the sample; the paper's figures below each."""
    first = results.general[0]
    of = [r for r in results.counted if r.method == first]
    yield f"### {first}, by size\n"
    yield (
        "In brackets: the 5th and the 95th percentile over plausible clocks (search.md), the same for all cases. "
        f"Survive: runs that are faster in at least {100 * summary.WINS:.0f} % of the plausible clocks. "
        "Launch, tiling and kernel: the factors they have in the geometric mean (Where the gain comes from, below).\n"
    )
    yield from _gain_table([(size, _of_size(of, size)) for size in SIZES] + [("all", of)], first)
    if results.plan.sampled:
        sample = results.having(results.plan.sampled)
        for size in (*SIZES, "all"):
            rows = [(m, _of_size([r for r in sample if r.method == m], size)) for m in results.plan.methods]
            if any(runs for _, runs in rows):
                yield f"### Stages apart, on the sample: {size}\n"
                yield from _gain_table(rows)


def _nearness(results: Results) -> Iterator[str]:
    """How near each method comes to the hardware's bound, by size, on the cases that have all of them."""
    plan = results.plan
    runs = results.having(plan.sampled) if plan.sampled else results.counted
    bound = summary.bounds(results.runs)
    rows = [
        (size, found)
        for size in SIZES
        for m in plan.methods
        if m not in peers.PARAMETRIC and (found := summary.nearness(m, _of_size(runs, size), bound)) is not None
    ]
    if not rows:
        return
    yield "### Distance to the hardware's bound\n"
    yield (
        "The bound: each byte of inputs and outputs once, the fewest instructions that a known pair needs without "
        "their heads, a launch without tiling data, and nothing that waits (`ascendopt_tune/evaluate/bound.py`). HAP "
        "is cann-bench's score, 0.5 as fast as written and 1 at the bound, mean; the others are medians.\n"
    )
    yield "| size | method | cases | HAP | the bound's share of the time as written | and of the best pair's |"
    yield "|---|---|---|---|---|---|"
    for size, one in rows:
        hap = "-" if one.hap is None else f"{one.hap:.3f}"
        yield f"| {size} | {one.method} | {one.cases} | {hap} | {100 * one.before:.0f} % | {100 * one.after:.0f} % |"
    yield ""


def _of_size(runs: Sequence[RunRecord], size: str) -> list[RunRecord]:
    return [r for r in runs if size in (r.size, "all")]


def _gain_table(rows: Sequence[tuple[str, Sequence[RunRecord]]], method: str = "") -> Iterator[str]:
    heads = " | ".join(f"fast_{p:g}" for p in summary.THRESHOLDS)
    yield f"| {'size' if method else 'method'} | cases | geometric mean | {heads} | survive | {' | '.join(PARTS)} |"
    yield f"|---|---{'|---' * (2 + len(summary.THRESHOLDS) + len(PARTS))}|"
    for label, runs in rows:
        if not runs:
            continue
        one = summary.gain(runs)
        fast = " | ".join(_interval(one.fast[p], 100.0, ".1f", " %") for p in summary.THRESHOLDS)
        wins = "-" if one.wins is None else f"{100 * one.wins:.1f} %"
        parts = " | ".join(f"{one.parts[part]:.3f}" for part in PARTS)
        yield f"| {label} | {one.cases} | {_interval(one.mean, 1.0, '.3f', '')} | {fast} | {wins} | {parts} |"
    for name in [method] if method else [label for label, runs in rows if runs]:
        if name in PAPER:
            mean, fast_p = PAPER[name]
            fast = " | ".join(f"{100 * fast_p[p]:.1f} %" if p in fast_p else "-" for p in summary.THRESHOLDS)
            label = "the paper, on silicon" if method else f"{name}: the paper, on silicon"
            yield f"| {label} | 127 | {mean:.2f} | {fast} | - {'| - ' * len(PARTS)}|"
    yield ""


def _interval(figure: summary.MeanInterval, scale: float, digits: str, unit: str) -> str:
    def text(value: float) -> str:
        return f"{scale * value:{digits}}"

    if figure.low is None or figure.high is None:
        return f"{text(figure.nominal)}{unit}"
    return f"{text(figure.nominal)}{unit} ({text(figure.low)} to {text(figure.high)})"


# -- methods -----------------------------------------------------------------------------------------------------------


def _table(title: str, lines: Sequence[summary.Line]) -> Iterator[str]:
    yield f"### {title}\n"
    heads = " | ".join(f"fast_{p:g}" for p in summary.THRESHOLDS)
    columns = "method | cases | runs | geometric mean | worst and best seed"
    yield f"| {columns} | {heads} | evaluations to 95 % | reach it | overhead |"
    yield f"|---|---{'|---' * (6 + len(summary.THRESHOLDS))}|"
    for one in lines:
        fast = " | ".join(f"{100 * share:.1f} %" for share in one.fast)
        to_best = "-" if one.to_best is None else f"{one.to_best:g}"
        yield (
            f"| {one.method} | {one.cases} | {one.runs} | {one.mean:.3f} | {one.low:.3f} to {one.high:.3f} "
            f"| {fast} | {to_best} | {100 * one.reached:.0f} % | {one.overhead_s:.2f} s |"
        )
    yield ""


def _against(results: Results, runs: Sequence[RunRecord], lines: Sequence[summary.Line]) -> Iterator[str]:
    """The plan's first method against each other one, and whether the aim is met."""
    plan = results.plan
    first = plan.methods[0]
    numeric = results.having(plan.methods)
    found = [summary.against(numeric if m in peers.PARAMETRIC else runs, first, m) for m in plan.methods if m != first]
    rows = [one for one in found if one is not None]
    if not rows:
        return
    yield f"### {first} against each\n"
    yield "Ratio of the speedups, geometric mean; 95 % interval by drawing operators anew; ahead, level (within 0.5 %)"
    yield f"and behind are cases of {first}.\n"
    yield "| method | cases | ratio | interval | ahead | level | behind |\n|---|---|---|---|---|---|---|"
    for one in rows:
        yield (
            f"| {one.other} | {one.cases} | {one.ratio:.3f} | {one.low:.3f} to {one.high:.3f} "
            f"| {one.ahead} | {one.level} | {one.behind} |"
        )
    yield ""
    if first == FULL and not plan.sampled:
        (own,) = (line for line in lines if line.method == first)
        yield _aim(own, [row for row in rows if row.other in COMPARED])
        yield ""


def _aim(own: summary.Line, rows: Sequence[summary.Against]) -> str:
    fast = dict(zip(summary.THRESHOLDS, own.fast, strict=True))[1.0]
    parts = [
        (own.mean >= _AIM_MEAN, f"a geometric mean of at least {_AIM_MEAN} ({own.mean:.3f})"),
        (fast >= _AIM_FAST, f"fast_1 of at least {100 * _AIM_FAST:.0f} % ({100 * fast:.1f} %)"),
        *((r.ratio > 1, f"ahead of {r.other} ({r.ratio:.3f}, interval from {r.low:.3f})") for r in rows),
    ]
    met, missed = ("; ".join(text for holds, text in parts if holds is wanted) for wanted in (True, False))
    return f"The aim on these cases. Met: {met or 'nothing'}. Missed: {missed or 'nothing'}."


def _outcomes(runs: Sequence[RunRecord], methods: Sequence[str]) -> Iterator[str]:
    found = summary.outcomes(runs, methods)
    kinds = [kind for kind, _ in sum(found.values(), start=type(next(iter(found.values())))()).most_common()]
    yield "### Outcomes of evaluations\n"
    yield f"| method | {' | '.join(kinds)} |"
    yield f"|---{'|---' * len(kinds)}|"
    for method, counts in found.items():
        total = counts.total()
        yield f"| {method} | {' | '.join(f'{100 * counts[k] / total:.1f} %' for k in kinds)} |"
    yield ""


def _kinds(runs: Sequence[RunRecord], method: str) -> Iterator[str]:
    kinds = list(summary.kinds_of_change(runs, method).items())[:_MOST_KINDS]
    if kinds:
        yield f"### What the best pairs of {method} changed\n\nShare of its runs whose best pair has such a change.\n"
        yield f"| {' | '.join(kind for kind, _ in kinds)} |\n|{'---|' * len(kinds)}"
        yield f"| {' | '.join(f'{100 * share:.0f} %' for _, share in kinds)} |\n"


def _operators(
    runs: Sequence[RunRecord], methods: Sequence[str], known: dict[summary.CaseName, float]
) -> Iterator[str]:
    yield "### Operators\n\nModelled time as written, and the speedup by method (geometric mean over seeds), in"
    yield "brackets its 5th and 95th percentile over plausible clocks.\n"
    yield f"| operator | level | size | as written | best known | {' | '.join(methods)} |"
    yield f"|---|---|---|---|---{'|---' * len(methods)}|"
    order = {size: place for place, size in enumerate(SIZES)}
    for case in sorted({r.case for r in runs}, key=lambda c: (c[0], order[c[1]])):
        of = [r for r in runs if r.case == case]
        base = of[0].baseline_us
        cells = [_interval(summary.gain([r for r in of if r.method == m]).mean, 1.0, ".2f", "") for m in methods]
        about = f"{case[0]} | {of[0].level} | {case[1]} | {base:.2f} us | {base / known[case]:.2f}"
        yield f"| {about} | {' | '.join(cells)} |"
    yield ""


def _left_behind(results: Results, first: str, known: dict[summary.CaseName, float]) -> Iterator[str]:
    runs = [r for r in results.runs if r.case in {c.case for c in results.counted}]
    rest = [row for row in summary.left_behind(runs, first, known) if row[1] < 0.995 * row[2]][:_LEFT]
    if rest:
        yield f"Most left on the table by {first}, against the best known pair of any method:\n"
        for case, own, best, who in rest:
            winner = min((r for r in runs if r.case == case and r.method == who), key=lambda r: r.best_us)
            steps = "; ".join(winner.changes) or "as written"
            yield f"- {' '.join(case)}: {own:.2f} of {best:.2f}, found by {who}: {_cell(steps)}"
        yield ""


def _cell(text: str) -> str:
    flat = " ".join(_FOLDERS.sub("", text).split()).replace("|", "\\|")
    return flat if len(flat) <= _MOST_REASON else flat[:_MOST_REASON] + " ..."
