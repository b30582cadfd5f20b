"""Pictures of the results: one that needs nothing (``.svg``), one to look into (``.html``). All times are modelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from .record import RunRecord

_COLOURS = ("#1d4ed8", "#60a5fa", "#b45309", "#16a34a", "#8a94a6", "#6b7280", "#dc2626", "#9333ea", "#0d9488")


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
    """The anytime curves, and each case's speedup by method on the button's other side."""
    out = go.Figure()
    for method, values in curves.items():
        out.add_trace(go.Scatter(x=list(range(1, len(values) + 1)), y=values, name=method, mode="lines"))
    for method in methods:
        of = [r for r in runs if r.method == method]
        out.add_trace(
            go.Box(
                x=[method] * len(of),
                y=[r.speedup for r in of],
                text=[f"{r.operator} {r.size}, seed {r.seed}" for r in of],
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
            ("by case", [False] * n + [True] * m, "method"),
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
