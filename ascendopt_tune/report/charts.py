"""Pictures of a run as SVG: they need no script and no network, scale with the page and take its colours.

Inlined into a page, lines and texts have the page's text colour (``currentColor``); as a file of its own a picture
brings a white ground.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from ..nouns.trial import Trial
from .plot import Scale

GREY, GREEN, RED = "#8a94a6", "#209869", "#c2410c"
STAGES = {0: "start", 1: "Stage I", 2: "Stage II", 3: "joint"}
COLOURS = {0: "#8a94a6", 1: "#3b82f6", 2: "#b45309", 3: "#059669"}
At = Callable[[int, float], tuple[float, float]]
_SLOWEST = 0.5  # speedup; what is slower lies on the lower edge
_WIDTH, _LEFT, _HEAD = 760, 48, 32
_ROW, _ROWS = 14, 4  # of labels above the plot: height, and how many at most
_LETTER, _LONGEST = 5.6, 28  # of a label: width of a letter, and how many
_WIDE_LETTER = 7.4  # of a row's title, in the widest of usual fonts


def _open(width: float, height: float, label: str, ground: str) -> list[str]:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" '
        f'font-size="12" fill="currentColor" role="img" aria-label="{escape(label)}">'
    )
    return [head, f'<rect width="{width:.0f}" height="{height:.0f}" fill="{ground}"/>'] if ground else [head]


def trajectory(trials: Sequence[Trial], word: str, ground: str = "") -> str:
    """Speedup over the baseline by evaluation, the stages shaded, accepted changes labelled (the paper's Figure 4).

    Args:
        trials: those that cost an evaluation, the baseline first.
        word: ``modelled`` or ``measured``.
        ground: a colour behind everything; none: the page's.
    """
    base = trials[0].time_us or 1.0
    ups = [base / t.time_us if t.time_us else None for t in trials]
    top = max(1.2, *(u for u in ups if u is not None)) * 1.08
    width, left, bottom = _WIDTH, _LEFT, 40
    low = 0.95 * max(_SLOWEST, min(u for u in ups if u is not None))
    across = (width - left - 16) / max(1, len(trials) - 1)
    labels = _labels(trials, ups, across)
    above = _HEAD + _ROW * (1 + max((label.row for label in labels), default=-1))
    height = above + 252 + bottom
    up = 252 / (top - low)

    def at(n: int, value: float) -> tuple[float, float]:
        return left + n * across, height - bottom - max(0.0, value - low) * up

    parts = _open(width, height, f"speedup by evaluation, {word}", ground)
    for stage, stretch in itertools.groupby(range(len(trials)), lambda n: trials[n].stage):
        of = list(stretch)
        x, _ = at(of[0], low)
        shade = f'y="{above}" height="{(top - low) * up:.1f}" fill="{COLOURS[stage]}" opacity="0.08"'
        parts.append(f'<rect x="{x - across / 2:.1f}" width="{across * len(of):.1f}" {shade}/>')
    for value in Scale("", low, top).ticks():
        _, y = at(0, value)
        parts.append(f'<path d="M{left} {y:.1f}H{width - 16}" stroke="{GREY}" opacity="0.35"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}x</text>')
    parts += _best_line(ups, at)
    for n, (trial, one) in enumerate(zip(trials, ups, strict=True)):
        x, y = at(n, one or low)
        title = f"<title>{n + 1}: {escape(trial.candidate.change)}</title>"
        if one is None:
            parts.append(f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{RED}">x{title}</text>')
        else:
            slow = one < low  # an arrow at the edge that it lies beyond
            shape = f'path d="M{x - 5:.1f} {y - 9:.1f}h10l-5 8z"' if slow else f'circle cx="{x:.1f}" cy="{y:.1f}" r="4"'
            parts.append(f'<{shape} fill="{COLOURS[trial.stage]}">{title}</{"path" if slow else "circle"}>')
    parts += _accepted(labels, ups, at)
    names = "".join(
        f'<tspan fill="{COLOURS[s]}" dx="14">{STAGES[s]}</tspan>'
        for s in (1, 2, 3)
        if any(t.stage == s for t in trials)
    )
    head = f"speedup over the pair as written ({word}), x: did not pass the gate"
    if any(one is not None and one < low for one in ups):
        head += f", arrow: below {low:.2g}x"
    parts.append(f'<text x="{left}" y="18">{head}{names}</text>')
    for n in range(0, len(trials), 10):
        x, y = at(n, 0)
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{n + 1}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 6}" text-anchor="middle">evaluation</text></svg>\n')
    return "\n".join(parts)


def _best_line(ups: Sequence[float | None], at: At) -> list[str]:
    best, line = ups[0] or 0.0, "M{:.1f} {:.1f}".format(*at(0, ups[0] or 0.0))
    for n, one in enumerate(ups[1:], start=1):
        best = max(best, one or 0.0)
        x, y = at(n, best)
        line += f"H{x:.1f}V{y:.1f}"
    return [f'<path d="{line}" fill="none" stroke="{GREEN}" stroke-width="2"/>']


@dataclass(frozen=True)
class _Label:
    """The name of an accepted change, in a row above the plot; ``at`` is the place of its evaluation, from 0."""

    at: int
    x: float  # where the text begins
    row: int
    text: str
    whole: str


def _labels(trials: Sequence[Trial], ups: Sequence[float | None], across: float) -> list[_Label]:
    """A label for every step of the line; below its neighbour where they would touch, so that no line of one goes
    through another. Without those that no row is left for."""
    found, best = [], ups[0] or 0.0
    ends = [0.0] * _ROWS  # of what stands in each row
    for n, (trial, one) in enumerate(zip(trials, ups, strict=True)):
        if n == 0 or one is None or one <= best:
            continue
        best = one
        whole = trial.candidate.change
        text = whole.partition(":")[0][:_LONGEST]
        x = min(_LEFT + n * across, _WIDTH - _LETTER * len(text))
        row = 1 + max((i for i, end in enumerate(ends) if end > x), default=-1)
        if row < _ROWS:
            ends[row] = x + _LETTER * len(text) + 8
            found.append(_Label(n, x, row, text, whole))
    return found


def _accepted(labels: Sequence[_Label], ups: Sequence[float | None], at: At) -> list[str]:
    """The labels, each with a line to its step."""
    parts = []
    for label in labels:
        x, y = at(label.at, ups[label.at] or 0.0)
        top = _HEAD + _ROW * label.row
        parts.append(f'<path d="M{x:.1f} {top + 4}V{y - 5:.1f}" stroke="{GREEN}" stroke-dasharray="2 2"/>')
        title = f"<title>{label.at + 1}: {escape(label.whole)}</title>"
        parts.append(f'<text x="{label.x:.1f}" y="{top}" font-size="10">{escape(label.text)}{title}</text>')
    return parts


def bars(rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], unit: str) -> str:
    """Times side by side: a group of bars for each row, one for each of ``names`` (at most two); it fits a phone.

    Args:
        rows: (title, value of each name).
        unit: what the values are in, for the label.
    """
    width, thick, gap = 480, 13, 9
    left = 12 + _WIDE_LETTER * max((len(title) for title, _ in rows), default=0)
    highest = max((v for _, values in rows for v in values), default=1.0) or 1.0
    scale = (width - left - 50) / highest
    group = thick * len(names) + gap
    parts = _open(width, 24 + group * len(rows), f"{', '.join(names)}: {unit}", "")
    parts[0] = parts[0].replace("<svg ", '<svg class="small" ', 1)
    colours = dict(zip(names, (GREY, GREEN), strict=False))
    legend = "".join(f'<tspan fill="{colours[name]}" dx="14">{escape(name)}</tspan>' for name in names)
    parts.append(f'<text x="{left}" y="14">{escape(unit)}{legend}</text>')
    for i, (title, values) in enumerate(rows):
        y = 24 + i * group
        middle = y + thick * len(names) / 2 + 4
        parts.append(f'<text x="{left - 8}" y="{middle:.1f}" text-anchor="end">{escape(title)}</text>')
        for j, (name, value) in enumerate(zip(names, values, strict=True)):
            top, long = y + j * thick, max(1.0, value * scale)
            parts.append(
                f'<rect x="{left}" y="{top}" width="{long:.1f}" height="{thick - 2}" fill="{colours[name]}">'
                f"<title>{escape(title)}, {escape(name)}: {value:.2f}</title></rect>"
                f'<text x="{left + long + 5:.1f}" y="{top + thick - 4}" font-size="11">{value:.2f}</text>'
            )
    return "\n".join([*parts, "</svg>\n"])
