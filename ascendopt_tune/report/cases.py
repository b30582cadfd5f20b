"""The pages of many cases at once: a warm-up, a prebuild, one pair for several cases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..nouns.case import Case
from ..nouns.clocks import Interval
from ..nouns.places import without_paths
from .charts import bars
from .page import Card, DataTable, Figure, FigurePage, write_figures
from .text import counts_text

_SHOWN = 20  # cases with bars


@dataclass(frozen=True)
class CaseLine:
    """A case as a page shows it; times in us, None where none is known; ``more``: the columns of its kind of page."""

    name: str
    before_us: float | None
    after_us: float | None
    interval: Interval | None
    more: Sequence[str]

    @property
    def speedup(self) -> float | None:
        """None where a time isn't known."""
        return self.before_us / self.after_us if self.before_us and self.after_us else None

    def cells(self) -> list[str]:
        """The row of the table."""
        speedup = "-" if self.speedup is None else f"{self.speedup:.2f}x"
        if self.interval is not None:
            speedup += f" ({self.interval.low:.2f} to {self.interval.high:.2f})"
        times = ("-" if us is None else f"{us:.2f}" for us in (self.before_us, self.after_us))
        return [self.name, *times, speedup, *self.more]


def write_warmup(path: Path, document: Mapping[str, Any]) -> None:
    """The page of a warm-up's record (``WarmupReport.save``). Raises as :func:`write_prebuild`."""
    word = document["time"]
    lines = [
        CaseLine(
            f"{c['operator']} {c['case']}",
            c["before_us"],
            c["after_us"],
            Interval.from_json(c),
            [
                str(c["calls"]),
                "-" if c["share"] is None else f"{100 * c['share']:.1f} %",
                c["source"] + ("" if c["finished"] else f", {c['search']}"),
            ],
        )
        for c in document["cases"]
    ]
    before, after = document["model_us_before"], document["model_us_after"]
    both = document["cases"] and all(case["share"] is not None for case in document["cases"])
    untimed = document["untimed"]
    figures = _cases(lines, word, ["calls", f"share of {document['shares_of']}", "served by"])
    if untimed:
        rows = [[u["operator"], str(u["calls"]), f"{u['bytes'] / 1e6:.3f}"] for u in untimed]
        table = DataTable(["torch operator", "calls", "MB"], rows, search=True, open=len(rows) <= _SHOWN)
        note = "Calls of torch's own operators are no part of the model's time here: nothing is known of theirs."
        figures.append(Figure("Without a time", note, tables=[table]))
    cards = [
        Card(f"model before, {word}", f"{before:.1f} us" if both else "-", "" if both else "originals without a time"),
        Card(f"model after, {word}", f"{after:.1f} us"),
        *([Card("speedup", f"{before / after:.2f}x", win=before > after)] if both and after else []),
        Card("warmed up in", f"{document['seconds']:.0f} s"),
    ]
    write_figures(
        path, FigurePage("Warm-up", "What a model calls, and what serves it.", cards, figures, word == "modelled")
    )


def write_prebuild(path: Path, document: Mapping[str, Any]) -> None:
    """The page of a prebuild's record (``prebuild --record``).

    Raises:
        OSError: it can't be written.
        KeyError, TypeError, ValueError: the document is none.
    """
    word, entries = document.get("time", "modelled"), document["entries"]
    lines = [
        CaseLine(
            f"{Path(e['operator']).name} {e['case']}".strip(),
            None if e["result"] == "failed" else e["baseline_us"],
            None if e["result"] == "failed" else e["best_us"],
            Interval.from_json(e),
            [e["chip"], e["result"], without_paths(e["reason"])],
        )
        for e in entries
    ]
    about = (
        f"The bundle {document['bundle']}, {'signed' if document['signed'] else 'not signed'}; {document['digest']}."
    )
    cards = [
        Card("in the bundle", str(sum(e["result"] != "failed" for e in entries)), f"of {len(entries)} asked for"),
        *_mean(lines, word),
        Card("results", counts_text(Counter(e["result"] for e in entries))),
    ]
    page = FigurePage("Prebuild", about, cards, _cases(lines, word, ["chip", "result", "reason"]), word == "modelled")
    write_figures(path, page)


def write_together(path: Path, document: Mapping[str, Any]) -> None:
    """The page of one pair for several cases (``tune --cases --record``). Raises as :func:`write_prebuild`."""
    cases = document["cases"]
    word = "modelled" if cases[0]["target"] == "virtual" else "measured"
    lines = [
        CaseLine(
            str(Case.from_json(c["case"])),
            c["baseline"]["task_duration_us"],
            c["best"]["task_duration_us"],
            Interval.from_json(c),
            [f"{c['weight']:g}", "common" if c["common_pair"] else "as written"],
        )
        for c in cases
    ]
    changes: list[str] = next((c["changes"] for c in cases if c["changes"]), [])
    tried = [
        [
            str(t["id"]),
            "" if t["parent"] is None else str(t["parent"]),
            t["change"],
            t["outcome"],
            without_paths(t.get("reason", "")),
        ]
        for t in document["history"]
    ]
    figures = [
        Figure("What was changed", "; ".join(changes) or "Nothing: no pair was faster.",),
        *_cases(lines, word, ["weight", "pair"]),
        Figure("What was tried", "Every candidate, on all cases.",
               tables=[DataTable(["#", "from", "change", "outcome", "reason"], tried, search=True)]),
    ]  # fmt: skip
    cards = [Card("mean of the relative times", f"{document['mean_relative_time']:.3f}", word), *_mean(lines, word)]
    title = f"{document['operator']}: one pair for {len(cases)} cases"
    about = f"Chip {cases[0]['chip']}, target {cases[0]['target']}."
    write_figures(path, FigurePage(title, about, cards, figures, word == "modelled"))


def _mean(lines: Sequence[CaseLine], word: str) -> list[Card]:
    found = [line.speedup for line in lines if line.speedup is not None]
    if not found:
        return []
    mean = math.exp(sum(map(math.log, found)) / len(found))
    return [Card(f"geometric mean of the speedups, {word}", f"{mean:.3f}x", f"{len(found)} cases", mean > 1)]


def _cases(lines: Sequence[CaseLine], word: str, heads: Sequence[str]) -> list[Figure]:
    timed = [line for line in lines if line.speedup is not None]
    longest = sorted(timed, key=lambda line: -(line.before_us or 0.0))[:_SHOWN]
    rows = [(_short(line.name), (line.before_us or 0.0, line.after_us or 0.0)) for line in longest]
    note = f"One call of each case as written and as it is served now, {word}."
    if len(timed) > len(longest):
        note += f" The {len(longest)} with the longest time; the table has all."
    columns = ["case", f"as written ({word} us)", f"now ({word} us)", "speedup (over plausible clocks)", *heads]
    table = DataTable(columns, [line.cells() for line in lines], search=True, open=True, title="All cases")
    svg = bars(rows, ("as written", "now"), f"{word} time (us)") if rows else ""
    return [Figure("Cases", note, svg, [table])]


def _short(name: str) -> str:
    return name if len(name) <= 30 else f"{name[:29]}…"
