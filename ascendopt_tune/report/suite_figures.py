"""The figures of a benchmark's page: the paper's Figure 2, its tables 3 and 4, curves, outcomes and cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..bench import peers, summary, table
from ..bench.record import RunRecord
from ..bench.report import PAPER, Results
from ..bench.sizes import SIZES
from ..bench.summary import THRESHOLDS, Gain, MeanInterval
from ..nouns.outcome import KINDS
from ..nouns.places import without_paths
from .page import DataTable, Figure
from .plot import COLOURS, Plot, Scale, stacks

#: Figure 2 of the AscendOptimizer paper (arXiv 2603.23566): of 63 operators that became faster, how many by how much.
PAPER_TAIL = {1.1: 0.397, 1.2: 0.302, 1.5: 0.190, 2.0: 0.143}
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_OUTCOMES = dict(zip((kind.__name__ for kind in KINDS), (COLOURS[2], *COLOURS[:2], *COLOURS[3:]), strict=False))
_LEGEND = 175


def distribution(runs: Sequence[RunRecord]) -> Figure:
    """The share of cases that are at most so much faster."""
    of = {"all sizes": list(runs)} | {s: found for s in SIZES if (found := [r for r in runs if r.size == s])}
    if len(of) == 2:
        of.pop("all sizes")
    speedups = {name: sorted(_by_case(found).values()) for name, found in of.items()}
    whole = next(iter(speedups.values()))
    faster = [v for v in whole if v > 1.0]
    marks = [
        [f"{t:g}x", _percent(_above(whole, t)), _percent(_above(faster, t)) if faster else "-", _percent(paper)]
        for t, paper in PAPER_TAIL.items()
    ]
    heads = [
        "at least",
        f"of all {len(whole)} cases",
        f"of the {len(faster)} that became faster",
        "the paper's 63 operators that did, on silicon",
    ]
    percentiles = [
        [name, *(f"{values[min(len(values) - 1, int(q * len(values)))]:.3f}" for q in _QUANTILES), f"{values[-1]:.3f}"]
        for name, values in speedups.items()
    ]
    note = (
        "A case is an operator at a size, its speedup the geometric mean over seeds. Dashed: marks of the paper's "
        "Figure 2."
    )
    tables = [
        DataTable(heads, marks, open=True, title="At least so much faster"),
        DataTable(["size", *(f"{100 * q:.0f} %" for q in _QUANTILES), "most"], percentiles, title="Percentiles"),
    ]
    return Figure("How much faster", note, _distribution_svg(speedups), tables)


def _distribution_svg(speedups: Mapping[str, list[float]]) -> str:
    lowest = min(0.95, *(values[0] for values in speedups.values()))
    highest = max(2.0, *(values[-1] for values in speedups.values())) * 1.05
    plot = Plot(
        "cumulative distribution of the modelled speedups",
        Scale("modelled speedup over the operator as written", lowest, highest, True),
        Scale("share of cases", 0.0, 1.0, digits=".0%"),
        right=_LEGEND,
    )
    names: dict[str, str] = {}
    for (name, values), colour in zip(speedups.items(), COLOURS, strict=False):
        points = [(lowest, 0.0), *((v, (i + 1) / len(values)) for i, v in enumerate(values)), (highest, 1.0)]
        plot.steps(points, colour, width=2.4 if not names else 1.4, title=name)
        names[f"{name} ({len(values)})"] = colour
    for threshold in PAPER_TAIL:
        share = 1 - _above(next(iter(speedups.values())), threshold)
        plot.line([(threshold, 0.0), (threshold, share)], "currentColor", width=1, dash="3 3")
    plot.legend(names)
    return plot.svg()


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _by_case(runs: Sequence[RunRecord]) -> dict[summary.CaseName, float]:
    of: dict[summary.CaseName, list[float]] = {}
    for r in runs:
        of.setdefault(r.case, []).append(r.speedup)
    return {case: summary.geometric_mean(values) for case, values in of.items()}


def _above(values: Sequence[float], threshold: float) -> float:
    return sum(v >= threshold for v in values) / len(values)


# -- Tables 3 and 4 ----------------------------------------------------------------------------------------------------

_GAIN_HEADS = (
    "cases",
    "geometric mean",
    *(f"fast_{p:g}" for p in THRESHOLDS),
    "survive",
    "launch",
    "tiling",
    "kernel",
    "both",
)


def by_level(runs: Sequence[RunRecord]) -> Figure:
    """The gain of one method by level and size, and the paper's (Table 3)."""
    rows = []
    for level in (*table.LEVELS, None):
        for size in (*SIZES, "all"):
            of = [r for r in runs if level in (r.level, None) and size in (r.size, "all")]
            if of:
                rows.append([f"level {level}" if level else "all levels", size, *_gain_cells(summary.gain(of))])
    name = runs[0].method
    if name in PAPER:
        rows.append(["the paper, on silicon", "its own", *_paper_cells(name)])
    levels = "; ".join(f"{level}: {text}" for level, text in table.LEVELS.items())
    note = (
        "fast_p is the share of runs that are more than p times as fast (Table 3). Survive: faster in at least 95 % of "
        "the plausible clocks. Launch, tiling, kernel, both: the factors they have in the mean. Levels are "
        f"{levels}."
    )
    return Figure("By level and size", note, tables=[DataTable(["level", "size", *_GAIN_HEADS], rows, open=True)])


def ablation(runs: Sequence[RunRecord], methods: Sequence[str]) -> Figure | None:
    """The gain of each stage and of both, and the paper's (Table 4); None for one method."""
    if len(methods) < 2:
        return None
    rows = []
    for method in methods:
        for size in (*SIZES, "all"):
            of = [r for r in runs if r.method == method and size in (r.size, "all")]
            if of:
                rows.append([method, size, *_gain_cells(summary.gain(of))])
        if method in PAPER:
            rows.append([f"{method}: the paper, on silicon", "its own", *_paper_cells(method)])
    note = "Each stage alone and both, on the same cases (Table 4)."
    return Figure("The stages apart", note, tables=[DataTable(["method", "size", *_GAIN_HEADS], rows, open=True)])


def _gain_cells(gain: Gain) -> list[str]:
    fast = (_with_ends(gain.fast[p], 100, ".1f", " %") for p in THRESHOLDS)
    wins = "-" if gain.wins is None else f"{100 * gain.wins:.1f} %"
    return [
        str(gain.cases),
        _with_ends(gain.mean, 1, ".3f", "x"),
        *fast,
        wins,
        *(f"{v:.3f}" for v in gain.parts.values()),
    ]


def _paper_cells(method: str) -> list[str]:
    mean, fast = PAPER[method]
    shares = (f"{100 * fast[p]:.1f} %" if p in fast else "-" for p in THRESHOLDS)
    return ["127", f"{mean:.2f}x", *shares, "-", "-", "-", "-", "-"]


def ends_of(figure: MeanInterval, scale: float, digits: str) -> str:
    """Its ends over plausible clocks, in words; "" where nobody asked."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{scale * figure.low:{digits}} to {scale * figure.high:{digits}} over plausible clocks"


def _with_ends(figure: MeanInterval, scale: float, digits: str, unit: str) -> str:
    text, ends = f"{scale * figure.nominal:{digits}}{unit}", ends_of(figure, scale, digits)
    return f"{text} ({ends.removesuffix(' over plausible clocks')})" if ends else text


# -- against the peers -------------------------------------------------------------------------------------------------


def curves_of(runs: Sequence[RunRecord], methods: Sequence[str]) -> dict[str, list[float]]:
    """Of every method, and of the first one at each size."""
    curves = summary.curves(runs, methods)
    sizes = [size for size in SIZES if any(r.size == size for r in runs)]
    for size in sizes if len(sizes) > 1 else []:
        curves[f"{methods[0]}, {size}"] = summary.curves([r for r in runs if r.size == size], methods[:1])[methods[0]]
    return curves


def curves_svg(curves: Mapping[str, list[float]], ground: str = "") -> str:
    """The curves; ``ground``: a colour behind them, none: the page's."""
    budget = max(len(c) for c in curves.values())
    highest = max(1.05, *(max(c) for c in curves.values()))
    plot = Plot(
        "modelled speedup by evaluation, geometric mean over cases and seeds",
        Scale("evaluation", 1, max(2, budget)),
        Scale("modelled speedup, geometric mean", 1.0, highest * 1.01, digits=".2f"),
        right=_LEGEND, ground=ground,
    )  # fmt: skip
    colours = dict(zip(curves, COLOURS, strict=False))
    for i, (name, values) in enumerate(curves.items()):
        plot.line(
            list(enumerate(values, start=1)), colours.get(name, COLOURS[-1]), width=2.8 if i == 0 else 1.5, title=name
        )
    ordered = sorted(curves, key=lambda name: -curves[name][-1])
    plot.legend({f"{name} {curves[name][-1]:.3f}": colours.get(name, COLOURS[-1]) for name in ordered})
    return plot.svg()


def anytime(runs: Sequence[RunRecord], methods: Sequence[str]) -> Figure:
    """The anytime curves against the peers."""
    curves = curves_of(runs, methods)
    budget = max(len(c) for c in curves.values())
    places = sorted({1, 2, 5, *range(10, budget + 1, 10), budget} & set(range(1, budget + 1)))
    rows = [[name, *(f"{values[n - 1]:.3f}" for n in places)] for name, values in curves.items()]
    note = "The best confirmed pair so far, after each evaluation; geometric mean over cases and seeds."
    table_ = DataTable(["method", *(f"after {n}" for n in places)], rows)
    return Figure("By evaluation", note, curves_svg(curves), [table_])


def against(results: Results, runs: Sequence[RunRecord]) -> Figure | None:
    """The first method against each other one; None where there is none."""
    methods = results.plan.methods
    numeric = results.having(methods)
    found = [summary.against(numeric if m in peers.PARAMETRIC else runs, methods[0], m) for m in methods[1:]]
    rows = [
        [
            *(one.other, str(one.cases), f"{one.ratio:.3f}x ({one.low:.3f} to {one.high:.3f})"),
            *map(str, (one.ahead, one.level, one.behind)),
        ]
        for one in found
        if one is not None
    ]
    if not rows:
        return None
    general = [m for m in methods if m not in peers.PARAMETRIC]
    alone = [
        [
            *(x.method, str(x.cases), f"{x.mean:.3f}x ({x.low:.3f} to {x.high:.3f})"),
            "-" if x.to_best is None else f"{x.to_best:g}",
            *(_percent(x.reached), f"{x.overhead_s:.2f} s"),
        ]
        for x in summary.lines(runs, general, summary.best_known(results.runs))
    ]
    note = (
        f"{methods[0]} over each: the ratio of the speedups, with its 95 % interval by drawing operators anew; ahead, "
        "level (within 0.5 %) and behind are cases."
    )
    heads = ["method", "cases", "geometric mean (worst and best seed)", "evaluations to 95 % of the best known"]
    heads += ["reach it", "own time an evaluation"]
    tables = [
        DataTable(["method", "cases", "ratio", "ahead", "level", "behind"], rows, open=True, title="Against each"),
        DataTable(heads, alone, title="Each method by itself"),
    ]
    return Figure(f"{methods[0]} against each", note, tables=tables)


def outcomes(runs: Sequence[RunRecord], methods: Sequence[str]) -> Figure | None:
    """Evaluations by kind of outcome; None where nothing tells."""
    found = summary.outcomes(runs, methods)
    if not found:
        return None
    kinds = [k for k in _OUTCOMES if any(c[k] for c in found.values())]
    rows = [[m, str(c.total()), *(f"{100 * c[k] / c.total():.1f} %" for k in kinds)] for m, c in found.items()]
    svg = stacks("outcomes of evaluations", list(found.items()), {k: _OUTCOMES[k] for k in kinds})
    note = "What became of the evaluations; what isn't Timed failed the gate and has no time."
    return Figure("Outcomes", note, svg, [DataTable(["method", "evaluations", *kinds], rows)])


# -- the cases ---------------------------------------------------------------------------------------------------------


def cases(runs: Sequence[RunRecord], methods: Sequence[str]) -> Figure:
    """A row for every case."""
    known = summary.best_known(runs)
    order = {size: place for place, size in enumerate(SIZES)}
    of: dict[tuple[summary.CaseName, str], list[RunRecord]] = {}
    for r in runs:
        of.setdefault((r.case, r.method), []).append(r)
    rows = []
    for case in sorted({r.case for r in runs}, key=lambda c: (c[0], order[c[1]])):
        one = of[case, methods[0]][0]
        cells = [_with_ends(summary.gain(of[case, m]).mean, 1, ".2f", "x") for m in methods]
        base = one.baseline_us
        rows.append([case[0], case[1], str(one.level), f"{base:.2f}", f"{base / known[case]:.2f}x", *cells])
    note = "Modelled time as written, and the speedup by method (geometric mean over seeds)."
    heads = ["operator", "size", "level", "as written (us)", "best known", *methods]
    return Figure("Every case", note, tables=[DataTable(heads, rows, search=True, open=len(rows) <= 40)])


def not_run(results: Results) -> Iterator[Figure]:
    """What has no run, where there is any."""
    rows = [[path, size, " ".join(without_paths(reason).split())[:200]] for (path, size), reason in results.failed]
    rows += [[one.path, one.size, one.reason] for one in results.left_out]
    if rows:
        note = "Cases without a run, and sizes that an operator doesn't have, each with the reason."
        yield Figure("Not run", note, tables=[DataTable(["operator", "size", "why"], rows, search=True)])
