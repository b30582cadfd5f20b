"""Marked templates: a tiling program in which somebody has written further decisions as named numbers (T_base).

A mark is a comment behind a constant, with other values that are worth a try:

    constexpr uint64_t ROWS_PER_TURN = 4;  // knob: 2, 8, 16

A marked program is a template of another one if each mark stands on a line with a number that by the data flow decides
the launch, and if, with the numbers as written, it decides what the other one decides. It is in a run's history as a
repetition of that launch that cost nothing; Stage I works on it in place of the program that it began with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from ...nouns.history import History
from ...nouns.trial import Move, Trial
from ..proposer import SearchState
from .merge import merge
from .slice import EvolvableSite, Template

_MARK = re.compile(r"//\s*knob:\s*(\d+(?:\s*,\s*\d+)*)\s*$")
_FAMILY = "template"


def move_of_marks(names: Sequence[str]) -> Move:
    """What tells a marked template's trial from others."""
    return Move(f"{_FAMILY}:{','.join(names)}", _FAMILY, "set", len(names))


def marked_values(template: Template, site: EvolvableSite) -> tuple[int, ...]:
    """Values that the mark behind the site's number proposes; none where there is no mark."""
    data = template.program.files[site.path].data
    end = data.find(b"\n", site.end)
    found = _MARK.search(data[site.end : end if end >= 0 else len(data)].decode("utf-8", "replace"))
    return tuple(int(number) for number in found.group(1).split(",")) if found else ()


def marks(template: Template) -> tuple[list[str], list[str]]:
    """(names of the numbers with a mark, lines whose mark is behind no number that decides the launch)."""
    numbers = [s for s in template.sites if s.kind == "number" and marked_values(template, s)]
    found = {(s.path, _line(template, s)) for s in numbers}
    lost = [
        line.strip()
        for path, file in template.program.files.items()
        for i, line in enumerate(file.data.decode("utf-8", "replace").split("\n"))
        if _MARK.search(line) and (path, i) not in found
    ]
    return list(dict.fromkeys(s.name for s in numbers)), lost


def on_template(state: SearchState, files: Mapping[str, str]) -> Mapping[str, str]:
    """The tiling program ``files`` with the marks of the run's template, where both change different lines."""
    for trial in state.history:
        parent = state.history.parent(trial)
        if parent is not None and trial.duplicate_of is not None and any(m.family == _FAMILY for m in trial.moves):
            return merge(parent.candidate.pair.tiling, files, trial.candidate.pair.tiling) or files
    return files


def start_of(state: SearchState) -> Trial:
    """The trial that Stage I began with: the fastest before its first one, the baseline where no joint move gained."""
    before = list(takewhile(lambda trial: trial.stage != 1, state.history))
    return History(before).fastest_first[0]


def _line(template: Template, site: EvolvableSite) -> int:
    return template.program.files[site.path].data[: site.start].count(b"\n")
