"""The results as a Markdown page, with pictures that need nothing (``.svg``) and one to look into (``.html``)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from ..errors import CacheError
from ..files import replacing, write_whole
from . import peers, summary
from .run import RunRecord
from .runner import COMPARED, Plan
from .table import LEVELS

BEGIN, END = "<!-- results: written by `ascendopt-tune bench search --docs` -->", "<!-- end of results -->"
_COLOURS = ("#1d4ed8", "#60a5fa", "#b45309", "#16a34a", "#8a94a6", "#6b7280", "#dc2626", "#9333ea", "#0d9488")
FULL = "full"
_AIM_MEAN, _AIM_FAST = 1.25, 0.6  # what the search is to reach; the paper on silicon: 1.19 and 49.6 %
_INTERRUPTED = (
    "The run was interrupted. Operators come in an order that mixes the levels and that their names decide, so which "
    "ones are here has nothing to do with results. "
)
_MOST_KINDS = 10
_LEFT = 3  # operators told of with the most left on the table
_MOST_REASON = 240  # characters
_FOLDERS = re.compile(r"(?<![\w.:/])/\S*/")  # of absolute paths: where the run had its files says nothing to a reader


def methods_of(plan: Plan) -> tuple[list[str], list[str]]:
    """(methods that apply to every operator, all methods) of the plan."""
    return [m for m in plan.methods if m not in peers.PARAMETRIC], list(plan.methods)


def write(page: Path, plan: Plan, runs: Sequence[RunRecord], failed: Sequence[tuple[str, str]]) -> list[Path]:
    """Writes the results between the marks of ``page`` (a new page, if there is none) and the pictures beside it.

    Raises:
        CacheError: a file can't be written.
    """
    general, _ = methods_of(plan)
    counted = summary.complete(runs, general, plan.seeds)
    old = page.read_text() if page.exists() else f"# Benchmark of the search\n\n{BEGIN}\n{END}\n"
    if BEGIN not in old or END not in old:
        raise CacheError(f"{page} has no place for results.", f"Put the lines {BEGIN!r} and {END!r} into it.")
    picture, interactive = page.with_name(f"{page.stem}.svg"), page.with_name(f"{page.stem}.html")
    body = "\n".join(_results(plan, runs, counted, failed, picture.name)).rstrip()
    try:
        write_whole(page, f"{old.partition(BEGIN)[0]}{BEGIN}\n\n{body}\n\n{END}{old.partition(END)[2]}")
        if counted:
            curves = summary.curves(counted, general)
            write_whole(picture, svg(curves))
            with replacing(interactive) as whole:
                figure(curves, counted, general).write_html(whole, include_plotlyjs=True)
    except OSError as error:
        raise CacheError(f"can't write {error.filename}: {error.strerror}.", "Name another --docs.") from error
    return [page, picture, interactive] if counted else [page]


def _results(
    plan: Plan, runs: Sequence[RunRecord], counted: list[RunRecord], failed: Sequence[tuple[str, str]], picture: str
) -> Iterator[str]:
    general, every = methods_of(plan)
    known = summary.best_known(runs)
    listed = plan.operators[0].list if plan.operators else ""
    versions = {p: v for r in runs for p, v in r.versions.items()}
    have = len({r.operator for r in counted})
    missing = len(plan.operators) - have - len({path for path, _ in failed})
    yield (
        f"{have} of the {len(plan.operators)} operators of the {listed} list that were asked for have every method and "
        f"seed: {plan.seeds} seed(s), {plan.budget} evaluations each, on the virtual NPU ({plan.chip}). "
        f"{_INTERRUPTED if missing > 0 else ''}**All times and speedups are modelled.** Version of the "
        f"search: {', '.join(sorted({r.code for r in counted})) or '-'}; toolkit: "
        f"{', '.join(sorted({r.toolkit for r in counted})) or '-'}; peers: "
        f"{', '.join(f'{p} {v}' for p, v in sorted(versions.items())) or '-'}."
    )
    yield ""
    if not counted:
        yield "No operator has every method and seed yet."
    else:
        yield f"![Modelled speedup by evaluation, geometric mean]({picture})\n"
        found = summary.lines(counted, general, known)
        yield from _table("All levels", found)
        yield from _against(runs, counted, general, every, plan.seeds, found)
        for level, meaning in LEVELS.items():
            of = [r for r in counted if r.level == level]
            if of:
                yield from _table(f"Level {level} ({meaning})", summary.lines(of, general, known))
        numeric = summary.complete(runs, every, plan.seeds) if every != general else []
        if numeric:
            title = "Operators with numbers to tune: the methods that change nothing else, beside the others"
            yield from _table(title, summary.lines(numeric, every, known))
        yield from _outcomes(counted, general)
        yield from _kinds(counted, every[0])
        yield from _operators(counted, general, known)
    if failed:
        yield "### Not run\n\n| operator | why |\n|---|---|"
        yield from (f"| {path} | {_cell(reason)} |" for path, reason in failed)
        yield ""


def _table(title: str, lines: Sequence[summary.Line]) -> Iterator[str]:
    yield f"### {title}\n"
    heads = " | ".join(f"fast_{p:g}" for p in summary.THRESHOLDS)
    columns = "method | operators | runs | geometric mean | worst and best seed"
    yield f"| {columns} | {heads} | evaluations to 95 % | reach it | overhead |"
    yield f"|---|---{'|---' * (6 + len(summary.THRESHOLDS))}|"
    for one in lines:
        fast = " | ".join(f"{100 * share:.1f} %" for share in one.fast)
        to_best = "-" if one.to_best is None else f"{one.to_best:g}"
        yield (
            f"| {one.method} | {one.operators} | {one.runs} | {one.mean:.3f} | {one.low:.3f} to {one.high:.3f} "
            f"| {fast} | {to_best} | {100 * one.reached:.0f} % | {one.overhead_s:.2f} s |"
        )
    yield ""


def _against(
    runs: Sequence[RunRecord],
    counted: Sequence[RunRecord],
    general: Sequence[str],
    every: Sequence[str],
    seeds: int,
    lines: Sequence[summary.Line],
) -> Iterator[str]:
    """The plan's first method against each other one, and whether the aim is met."""
    first = every[0]
    numeric = summary.complete(runs, every, seeds)
    found = [summary.against(counted if m in general else numeric, first, m) for m in every if m != first]
    rows = [one for one in found if one is not None]
    if not rows:
        return
    yield f"### {first} against each\n"
    yield "Ratio of the speedups, geometric mean; 95 % interval by drawing operators anew; ahead, level (within 0.5 %)"
    yield f"and behind are operators of {first}.\n"
    yield "| method | operators | ratio | interval | ahead | level | behind |\n|---|---|---|---|---|---|---|"
    for one in rows:
        yield (
            f"| {one.other} | {one.operators} | {one.ratio:.3f} | {one.low:.3f} to {one.high:.3f} "
            f"| {one.ahead} | {one.level} | {one.behind} |"
        )
    yield ""
    if first == FULL:
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
    return f"The aim on these operators. Met: {met or 'nothing'}. Missed: {missed or 'nothing'}."


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


def _operators(runs: Sequence[RunRecord], methods: Sequence[str], known: dict[str, float]) -> Iterator[str]:
    yield "### Operators\n\nModelled time as written, and the speedup by method (geometric mean over seeds).\n"
    yield f"| operator | level | as written | best known | {' | '.join(methods)} |"
    yield f"|---|---|---|---{'|---' * len(methods)}|"
    for path in sorted({r.operator for r in runs}):
        of = [r for r in runs if r.operator == path]
        base = of[0].baseline_us
        cells = [summary.geometric_mean([r.speedup for r in of if r.method == m]) for m in methods]
        yield (
            f"| {path} | {of[0].level} | {base:.2f} us | {base / known[path]:.2f} | "
            f"{' | '.join(f'{c:.2f}' for c in cells)} |"
        )
    yield ""
    first = methods[0]
    rest = [row for row in summary.left_behind(runs, first, known) if row[1] < 0.995 * row[2]][:_LEFT]
    if rest:
        yield f"Most left on the table by {first}, against the best known pair of any method:\n"
        for path, own, best, who in rest:
            winner = min((r for r in runs if r.operator == path and r.method == who), key=lambda r: r.best_us)
            steps = "; ".join(winner.changes) or "as written"
            yield f"- {path}: {own:.2f} of {best:.2f}, found by {who}: {_cell(steps)}"
        yield ""


def _cell(text: str) -> str:
    flat = " ".join(_FOLDERS.sub("", text).split()).replace("|", "\\|")
    return flat if len(flat) <= _MOST_REASON else flat[:_MOST_REASON] + " ..."


# -- pictures ----------------------------------------------------------------------------------------------------------


def svg(curves: dict[str, list[float]]) -> str:
    """The anytime curves: geometric mean of the modelled speedup after each evaluation."""
    width, height, left, right, top, bottom = 760, 400, 56, 150, 34, 44
    budget = max(len(c) for c in curves.values())
    highest = max(1.05, *(max(c) for c in curves.values()))
    step = next(s for s in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 1e9) if (highest - 1) / s <= 8)

    def at(n: int, value: float) -> tuple[float, float]:
        x = left + (width - left - right) * (n - 1) / max(1, budget - 1)
        return x, height - bottom - (height - top - bottom) * (value - 1) / (highest - 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12"><rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="18" font-size="14">Modelled speedup, geometric mean over operators and seeds</text>',
    ]
    for i in range(math.floor((highest - 1) / step + 1e-9) + 1):
        x, y = at(1, 1 + i * step)
        parts.append(f'<line x1="{x}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{1 + i * step:.2f}</text>')
    for n in sorted({1, *range(10, budget + 1, 10), budget}):
        x, _ = at(n, 1)
        parts.append(f'<text x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">{n}</text>')
    parts.append(f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle">evaluation</text>')
    ends = sorted(curves, key=lambda m: -curves[m][-1])
    for i, (method, values) in enumerate(curves.items()):
        points = " ".join("{:.1f},{:.1f}".format(*at(n, v)) for n, v in enumerate(values, start=1))
        colour = _COLOURS[i % len(_COLOURS)]
        wide = 3 if i == 0 else 1.5
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{wide}"/>')
        y = top + 18 * ends.index(method)
        text = f"{escape(method)} {values[-1]:.3f}"
        parts.append(f'<text x="{width - right + 10}" y="{y + 12}" fill="{colour}">{text}</text>')
    return "\n".join([*parts, "</svg>\n"])


def figure(curves: dict[str, list[float]], runs: Sequence[RunRecord], methods: Sequence[str]) -> go.Figure:
    """The anytime curves, and each operator's speedup by method on the button's other side."""
    out = go.Figure()
    for method, values in curves.items():
        out.add_trace(go.Scatter(x=list(range(1, len(values) + 1)), y=values, name=method, mode="lines"))
    for method in methods:
        of = [r for r in runs if r.method == method]
        out.add_trace(
            go.Box(
                x=[method] * len(of),
                y=[r.speedup for r in of],
                text=[f"{r.operator}, seed {r.seed}" for r in of],
                name=method,
                boxpoints="all",
                visible=False,
            )
        )
    n, m = len(curves), len(methods)
    buttons = [
        {"label": label, "method": "update", "args": [{"visible": shown}, {"xaxis.title": title}]}
        for label, shown, title in (
            ("by evaluation", [True] * n + [False] * m, "evaluation"),
            ("by operator", [False] * n + [True] * m, "method"),
        )
    ]
    out.update_layout(
        title="Modelled speedup over the operators as written",
        xaxis_title="evaluation",
        yaxis_title="modelled speedup",
        template="plotly_white",
        updatemenus=[{"buttons": buttons, "x": 1.0, "xanchor": "right", "y": 1.12}],
    )
    return out
