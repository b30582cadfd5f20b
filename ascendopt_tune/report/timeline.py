"""What the first cores of a launch did when, small enough for a page: from the timeline that ``run --trace`` writes.

The whole timeline is for Perfetto. Here are the first two cores alone, each with a lane for every pipe; where a lane
has more stretches than a page can show, neighbours become one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from .plot import COLOURS, GREY

CORES = 2
_MOST = 200  # stretches of a lane
_HIGH = 16  # of a lane, in pixels
_BUSY = ("instruction", "scalar")


def first_cores(path: Path) -> dict[str, Any]:
    """The first cores of a timeline in the Chrome trace format: ``end_us`` of the task, and ``lanes``.

    A lane has ``core``, ``pipe``, ``busy`` (name -> [begin, length] of each stretch) and ``waits``, both in
    microseconds of modelled time from the start of the task.
    """
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    cores = sorted({e["pid"] for e in events if e.get("cat") == "block"})[:CORES]
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e["pid"] in cores and e["cat"] in (*_BUSY, "wait"):
            found[e["pid"], e["tid"]].append(e)
    end = max(e["ts"] + e["dur"] for e in events if e.get("cat") in ("task", "block"))
    return {
        "end_us": end,
        "lanes": [
            {"core": cores.index(pid), "pipe": named[pid, tid], **_lane(of, end)}
            for (pid, tid), of in sorted(found.items())
        ],
    }


def _lane(events: Sequence[Mapping[str, Any]], end: float) -> dict[str, Any]:
    busy = sorted((e["ts"], e["dur"], e["name"]) for e in events if e["cat"] in _BUSY)
    waits = sorted((e["ts"], e["dur"], "") for e in events if e["cat"] == "wait")
    names: dict[str, list[list[float]]] = defaultdict(list)
    for begin, long, name in _fewer(busy, end):
        names[name].append([round(begin, 3), round(long, 3)])
    return {"busy": names, "waits": [[round(b, 3), round(n, 3)] for b, n, _ in _fewer(waits, end)]}


def _fewer(spans: Sequence[tuple[float, float, str]], end: float) -> list[tuple[float, float, str]]:
    """At most so many stretches: neighbours of one name that lie closest become one."""
    gap, out = end / 4000, list(spans)
    while len(out) > _MOST:
        merged: list[tuple[float, float, str]] = []
        for begin, long, name in out:
            if merged and begin - (merged[-1][0] + merged[-1][1]) <= gap:
                first, _, before = merged[-1]
                merged[-1] = (first, begin + long - first, before if before == name else "several")
            else:
                merged.append((begin, long, name))
        out, gap = merged, gap * 2
    return out


def colours_of(timelines: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Name of an instruction -> its colour, the same on every core and in every launch."""
    names = dict.fromkeys(name for t in timelines for lane in t["lanes"] for name in lane["busy"])
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def lanes_svg(timeline: Mapping[str, Any], colours: Mapping[str, str], label: str) -> str:
    """The lanes of one launch, the lanes' names left out: a picture that is stretched to the time that is shown.

    Its ``viewBox`` is as wide as the task in nanoseconds.
    """
    lanes = timeline["lanes"]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {timeline["end_us"] * 1e3:.0f} {_HIGH * len(lanes)}" '
        f'preserveAspectRatio="none" style="height:{_HIGH * len(lanes)}px" role="img" aria-label="{escape(label)}" '
        f'fill="none" stroke-width="{_HIGH - 4}">'
    ]
    for i, lane in enumerate(lanes):
        y = _HIGH * i + _HIGH / 2
        parts.append(f'<path stroke="{GREY}" opacity="0.3" d="{_path(lane["waits"], y)}"><title>waits</title></path>')
        for name, spans in lane["busy"].items():
            total = sum(long for _, long in spans)
            about = f"{name}: {total:.2f} us of {lane['pipe']} on core {lane['core']}"
            parts.append(f'<path stroke="{colours[name]}" d="{_path(spans, y)}"><title>{escape(about)}</title></path>')
    return "".join([*parts, "</svg>"])


def _path(spans: Sequence[Sequence[float]], y: float) -> str:
    return "".join(f"M{1e3 * begin:.0f} {y:.0f}h{max(1.0, 1e3 * long):.0f}" for begin, long in spans)
