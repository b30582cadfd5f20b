"""Flow charts in mermaid's language as SVG: boxes in rows, arrows between them; what the pages of docs/ use, no more.

A chart's first line is ``flowchart TD`` or ``flowchart LR``. Rows (columns, for LR) are the longest path from a start,
edges that lead back left out; within a row boxes stand below those that lead to them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

LINE, WIDTH_OF_CHAR, PADDING, GAP, ROW_GAP = 18, 7.0, 12, 28, 58
_NODE = r'(\w+)(?:\["([^"]*)"\]|\[([^\]]*)\])?'
_EDGE = re.compile(rf'^\s*{_NODE}\s*(-->|==>)\s*(?:\|"?([^"|]*)"?\|)?\s*{_NODE}\s*$')


@dataclass
class Box:
    """A node: its lines, its row, its place; a bend of a long edge is one without lines."""

    lines: list[str] = field(default_factory=list)
    row: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max((len(line) for line in self.lines), default=0) * WIDTH_OF_CHAR + 2 * PADDING if self.lines else 8

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + PADDING if self.lines else 0


@dataclass
class Arrow:
    """An edge with its label; ``path``: boxes and bends from its start to its end."""

    start: str
    end: str
    label: str
    thick: bool
    path: list[str] = field(default_factory=list)


def read(chart: str) -> tuple[bool, dict[str, Box], list[Arrow]]:
    """Whether it runs from left to right, its boxes, its arrows. Raises ValueError for a line it doesn't know."""
    first, *rest = chart.strip().splitlines()
    boxes: dict[str, Box] = {}
    arrows = []
    for line in filter(str.strip, rest):
        match = _EDGE.match(line)
        if match is None:
            raise ValueError(f"not a line of a flow chart: {line}")
        start, quoted, bare, arrow, label, end, end_quoted, end_bare = match.groups()
        for name, text in ((start, quoted or bare), (end, end_quoted or end_bare)):
            box = boxes.setdefault(name, Box([name]))
            if text:
                box.lines = text.split("<br/>")
        arrows.append(Arrow(start, end, (label or "").replace("<br/>", " "), arrow == "==>"))
    return first.split()[1] == "LR", boxes, arrows


def _rows(boxes: dict[str, Box], arrows: list[Arrow]) -> None:
    """Longest path from the first box; an arrow to a box that stood in the text before its start leads back."""
    order = {name: i for i, name in enumerate(boxes)}
    forward = [a for a in arrows if order[a.start] < order[a.end]]
    for _ in boxes:
        for arrow in forward:
            boxes[arrow.end].row = max(boxes[arrow.end].row, boxes[arrow.start].row + 1)


def _bends(boxes: dict[str, Box], arrows: list[Arrow]) -> list[list[str]]:
    """The rows' boxes, with bends where an arrow passes a row; each arrow's path through them."""
    rows: dict[int, list[str]] = defaultdict(list)
    for name, box in boxes.items():
        rows[box.row].append(name)
    for number, arrow in enumerate(arrows):
        first, last = boxes[arrow.start].row, boxes[arrow.end].row
        step = 1 if last >= first else -1
        between = [f"{number}.{row}" for row in range(first + step, last, step)]
        for name, row in zip(between, range(first + step, last, step), strict=True):
            boxes[name] = Box(row=row)
            rows[row].append(name)
        arrow.path = [arrow.start, *between, arrow.end]
    return [rows[i] for i in range(len(rows))]


def _place(boxes: dict[str, Box], arrows: list[Arrow], rows: list[list[str]], across: bool) -> None:
    """``x`` along a row, ``y`` from row to row: middles of boxes. Rows are ordered by where their neighbours stand."""
    near: dict[str, set[str]] = defaultdict(set)
    for arrow in arrows:
        for one, other in pairwise(arrow.path):
            near[one].add(other)
            near[other].add(one)
    extent = (lambda b: b.height + GAP / 2) if across else (lambda b: b.width + GAP)
    for sweep in range(12):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {
                n: _middle([boxes[o].x for o in near[n] if boxes[o].row != boxes[n].row], boxes[n].x) for n in row
            }
            if sweep < 8:
                row.sort(key=wanted.__getitem__)
            _spread(boxes, row, wanted, extent)
    room = defaultdict(float)
    for arrow in arrows:
        between = min(boxes[name].row for name in _labelled(arrow, boxes))
        room[between] = max(room[between], len(arrow.label) * 6.8 + 24)
    y = 0.0
    for number, row in enumerate(rows):
        deep = max((boxes[n].width if across else boxes[n].height) for n in row)
        for name in row:
            boxes[name].y = y + deep / 2
        y += deep + (max(room[number], 36) if across else ROW_GAP if room[number] else 40)


def _middle(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _spread(boxes: dict[str, Box], row: list[str], wanted: dict[str, float], extent: object) -> None:
    """Boxes of a row near where they want to be, without overlap: pushed right, then all moved by the mean error."""
    end = float("-inf")
    for name in row:
        half = extent(boxes[name]) / 2  # type: ignore[operator]
        boxes[name].x = max(wanted[name], end + half)
        end = boxes[name].x + half
    off = _middle([boxes[n].x - wanted[n] for n in row], 0.0)
    for name in row:
        boxes[name].x -= off


def svg(chart: str) -> str:
    """The chart as an ``<svg>`` in the colours of the page around it. Raises ValueError for a line it doesn't know."""
    across, boxes, arrows = read(chart)
    _rows(boxes, arrows)
    rows = _bends(boxes, arrows)
    _place(boxes, arrows, rows, across)
    if across:
        for box in boxes.values():
            box.x, box.y = box.y, box.x
    sides = [(b.x, b.width) for b in boxes.values()]
    sides += [(_label_at(a, boxes)[0], len(a.label) * 6.8) for a in arrows]
    left = min(x - wide / 2 for x, wide in sides) - 4
    top = min(b.y - b.height / 2 for b in boxes.values()) - 12
    width = max(x + wide / 2 for x, wide in sides) + 4 - left
    height = max(b.y + b.height / 2 for b in boxes.values()) + 12 - top
    drawn = [_drawn(arrow, boxes, across) for arrow in arrows]
    drawn += [_box(box) for box in boxes.values() if box.lines]
    drawn += [_label(arrow, boxes) for arrow in arrows if arrow.label]
    words = escape("; ".join(f"{' '.join(boxes[a.start].lines)} to {' '.join(boxes[a.end].lines)}" for a in arrows))
    return (
        f'<div class="chart"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'width="{width:.0f}" style="min-width:{max(min(width, 480), 0.75 * width):.0f}px" '
        f'viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}"><title>{words}</title>'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="currentColor"/></marker></defs>{"".join(drawn)}</svg></div>'
    )


def _box(box: Box) -> str:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    lines = "".join(
        f'<tspan x="{box.x:.0f}" y="{y + PADDING / 2 + LINE * (i + 0.72):.0f}">{escape(line)}</tspan>'
        for i, line in enumerate(box.lines)
    )
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="5"/>'
        f'<text text-anchor="middle">{lines}</text>'
    )


def _border(box: Box, across: bool, ahead: float) -> tuple[float, float]:
    """Where an arrow meets a box: in the middle of the side it comes from or leaves by."""
    if across:
        return box.x + ahead * box.width / 2 if box.lines else box.x, box.y
    return box.x, box.y + ahead * box.height / 2


def _drawn(arrow: Arrow, boxes: dict[str, Box], across: bool) -> str:
    path = [boxes[name] for name in arrow.path]
    along = [b.x if across else b.y for b in path]
    ahead = 1 if along[-1] >= along[0] else -1
    points = [_border(path[0], across, ahead), *((b.x, b.y) for b in path[1:-1]), _border(path[-1], across, -ahead)]
    text = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        mid = (x0 + x1) / 2 if across else (y0 + y1) / 2
        text += f"C{mid:.0f} {y0:.0f} {mid:.0f} {y1:.0f}" if across else f"C{x0:.0f} {mid:.0f} {x1:.0f} {mid:.0f}"
        text += f" {x1:.0f} {y1:.0f}"
    return f'<path class="arrow" d="{text}" stroke-width="{2.6 if arrow.thick else 1.3}" marker-end="url(#tip)"/>'


def _labelled(arrow: Arrow, boxes: dict[str, Box]) -> tuple[str, str]:
    """The piece of an arrow that has its label: the first, or the last of one that leads back."""
    back = boxes[arrow.end].row < boxes[arrow.start].row
    return (arrow.path[-2], arrow.path[-1]) if back else (arrow.path[0], arrow.path[1])


def _label_at(arrow: Arrow, boxes: dict[str, Box]) -> tuple[float, float]:
    """The middle between the two boxes' borders."""
    one, other = (boxes[name] for name in _labelled(arrow, boxes))
    x, y = (one.x + other.x) / 2, (one.y + other.y) / 2
    if one.y != other.y:
        sign = 1 if other.y > one.y else -1
        y = (one.y + sign * one.height / 2 + other.y - sign * other.height / 2) / 2
    if one.x != other.x:
        sign = 1 if other.x > one.x else -1
        if abs(other.x - one.x) > (one.width + other.width) / 2:
            x = (one.x + sign * one.width / 2 + other.x - sign * other.width / 2) / 2
    return x, y


def _label(arrow: Arrow, boxes: dict[str, Box]) -> str:
    x, y = _label_at(arrow, boxes)
    return f'<text class="label" text-anchor="middle" x="{x:.0f}" y="{y + 4:.0f}">{escape(arrow.label)}</text>'
