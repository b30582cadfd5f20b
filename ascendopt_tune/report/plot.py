"""A plot's frame as SVG: axes with round numbers, and what is drawn between them.

Lines and texts have the page's text colour, so that a plot is right in light and dark; as a file of its own it brings a
white ground.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

GREY = "#8a94a6"
#: Told apart in light and dark; the first is what the page is about.
COLOURS = ("#3b82f6", "#d97706", "#059669", "#a855f7", "#dc2626", "#0891b2", "#84702f", "#db2777", "#64748b", "#65a30d")
_TICKS = 8
WIDTH, _LEFT, _TOP, _BOTTOM = 760, 62, 14, 44


@dataclass(frozen=True)
class Scale:
    """The values from ``low`` to ``high`` that an axis shows, evenly or by their logarithm (then above 0)."""

    title: str
    low: float
    high: float
    log: bool = False
    digits: str = "g"

    def share(self, value: float) -> float:
        """Where a value lies: 0 at ``low``, 1 at ``high``; beyond for what lies outside."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values between the ends, at most eight where they are evenly spaced."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            decades = math.log10(self.high / self.low)
            of = (1, 1.1, 1.2, 1.5, 2, 3, 5, 7) if decades < 1 else (1, 2, 5) if decades < 3 else (1,)
            found = [n * 10.0**power for power in range(first, last + 1) for n in of]
        else:
            rough = (self.high - self.low) / _TICKS
            power = 10.0 ** math.floor(math.log10(rough))
            step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough * (1 - 1e-9))
            found = [
                i * step for i in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)
            ]
        return [value for value in found if -1e-9 <= self.share(value) <= 1 + 1e-9]

    @staticmethod
    def around(title: str, values: Iterable[float], *, log: bool = False, digits: str = "g") -> Scale:
        """A scale that shows all ``values``, with a little room."""
        known = list(values)
        low, high = min(known), max(known)
        if log:
            return Scale(title, low / 1.3, high * 1.3, True, digits)
        room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
        return Scale(title, low - room, high + room, False, digits)


class Plot:
    """An SVG picture of 760 units' width that grows by what is drawn; :meth:`svg` closes it.

    Args:
        label: what it shows, for who can't see it.
        right: room beside the frame, for a legend.
        ground: a colour behind everything; none: the page's.
    """

    def __init__(self, label: str, x: Scale, y: Scale, *, height: int = 340, right: int = 16, ground: str = "") -> None:
        self.x, self.y, self._height, self._right = x, y, height, right
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
            f'font-size="12" fill="currentColor" role="img" aria-label="{escape(label)}">'
        ]
        if ground:
            self._parts.append(f'<rect width="{WIDTH}" height="{height}" fill="{ground}"/>')
        self._frame()

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Units of the picture."""
        wide, high = WIDTH - _LEFT - self._right, self._height - _TOP - _BOTTOM
        return _LEFT + wide * self.x.share(x), self._height - _BOTTOM - high * self.y.share(y)

    def _frame(self) -> None:
        end, bottom = WIDTH - self._right, self._height - _BOTTOM
        for value in self.y.ticks():
            _, y = self.at(self.x.low, value)
            self._parts.append(f'<path d="M{_LEFT} {y:.1f}H{end}" stroke="{GREY}" opacity="0.35"/>')
            self._parts.append(
                f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:{self.y.digits}}</text>'
            )
        for value in self.x.ticks():
            x, _ = self.at(value, self.y.low)
            self._parts.append(f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="{GREY}" opacity="0.2"/>')
            self._parts.append(
                f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:{self.x.digits}}</text>'
            )
        middle = (_LEFT + end) / 2
        self._parts.append(
            f'<text x="{middle:.0f}" y="{self._height - 8}" text-anchor="middle">{escape(self.x.title)}</text>'
            f'<text transform="translate(13 {(_TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.y.title)}</text>"
        )

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, *, width: float = 1.6, dash: str = "", title: str = ""
    ) -> None:
        """A line through the points."""
        at = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        about = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes}>{about}</polyline>'
        )

    def steps(self, points: Sequence[tuple[float, float]], colour: str, *, width: float = 1.6, title: str = "") -> None:
        """A line that goes right, then up, from each point to the next."""
        corners = [(x, y) for before, (x, y_after) in itertools.pairwise(points)
                   for y in (before[1], y_after)]  # fmt: skip
        self.line([points[0], *corners], colour, width=width, title=title)

    def dots(self, points: Iterable[tuple[float, float, str]], colour: str, *, radius: float = 4) -> None:
        """A dot for each (x, y, what it is), in one group."""
        marks = []
        for x, y, title in points:
            px, py = self.at(x, y)
            marks.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{radius:g}"><title>{escape(title)}</title></circle>')
        self._parts.append(f'<g fill="{colour}" fill-opacity="0.75">{"".join(marks)}</g>')

    def whiskers(self, lines: Iterable[tuple[float, float, float]], colour: str) -> None:
        """An upright line for each (x, from y, to y)."""
        path = ""
        for x, low, high in lines:
            (px, bottom), (_, top) = self.at(x, low), self.at(x, high)
            path += f"M{px:.1f} {bottom:.1f}V{top:.1f}"
        self._parts.append(f'<path d="{path}" stroke="{colour}" opacity="0.55" fill="none"/>')

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> None:
        """A text beside a point."""
        px, py = self.at(x, y)
        self._parts.append(
            f'<text x="{px:.1f}" y="{py:.1f}" text-anchor="{anchor}" font-size="11" font-weight="{weight}">'
            f"{escape(text)}</text>"
        )

    def legend(self, names: Mapping[str, str]) -> None:
        """Names and their colours, one below the other, in the room beside the frame."""
        for i, (name, colour) in enumerate(names.items()):
            y = _TOP + 12 + 18 * i
            x = WIDTH - self._right + 10
            self._parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
            self._parts.append(f'<text x="{x + 15}" y="{y}">{escape(name)}</text>')

    def svg(self) -> str:
        """The whole picture."""
        return "\n".join([*self._parts, "</svg>\n"])


def stacks(
    label: str, rows: Sequence[tuple[str, Mapping[str, float]]], colours: Mapping[str, str], *, left: int = 150
) -> str:
    """A bar for each row, divided into shares; ``colours`` has the names of the parts in their order.

    Args:
        rows: (title, part -> amount, of the same unit within a row).
    """
    thick, gap, per_line = 16, 8, 6
    head = 18 * -(-len(colours) // per_line) + 6
    height = head + (thick + gap) * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" fill="currentColor" role="img" aria-label="{escape(label)}">'
    ]
    for i, (name, colour) in enumerate(colours.items()):
        at, y = left + 100 * (i % per_line), 12 + 18 * (i // per_line)
        parts.append(f'<rect x="{at}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{at + 14}" y="{y}" font-size="11">{escape(name)}</text>')
    for i, (title, amounts) in enumerate(rows):
        y, x = head + i * (thick + gap), float(left)
        total = sum(amounts.values()) or 1.0
        parts.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(title)}</text>')
        for name, colour in colours.items():
            if amounts.get(name):
                share = amounts[name] / total
                long = share * (WIDTH - left - 16)
                about = f"<title>{escape(title)}, {escape(name)}: {100 * share:.1f} %</title>"
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{long:.1f}" height="{thick}" fill="{colour}">{about}</rect>'
                )
                x += long
    return "\n".join([*parts, "</svg>\n"])
