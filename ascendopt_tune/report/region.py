"""The evolvable region of a tiling program: the text with markers, and what each marked site is and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..search.mutation import Mutation
from ..search.tiling.slice import EvolvableSite, Template

# Why a site of this purpose is part of the region, and what may be done with it.
_WHY = {
    "core_count": "the number of cores enters here; work is split by it",
    "block_dim": "a number of cores",
    "ub_size": "the size of the Unified Buffer enters here; tiles are cut from it",
    "tile_length": "the length of a tile, in elements or bytes",
    "buffer_num": "how many buffers share the space of one",
    "ub_share": "a share of the Unified Buffer",
    "ub_reserve": "bytes of the Unified Buffer set aside",
    "alignment": "sizes are rounded to this",
    "split": "a count that work is split by",
    "quantity": "computed from the number of cores or the size of the Unified Buffer",
    "branch": "decides a mode, a split or a tiling key",
    "threshold": "a size at which the program decides otherwise",
    "tiling_key": "chooses a variant of the kernel",
    "workspace": "room in global memory",
    "constant": "a number that reaches the launch",
}
_SINKS = {"block_dim": "block dim", "field": "tiling data", "tiling_key": "tiling key", "workspace": "workspace"}


@dataclass(frozen=True)
class MarkedSite:
    """A site with its number in the marked text, its place (line and column from 1), and what rules would do there."""

    number: int
    site: EvolvableSite
    line: int
    column: int
    why: str
    families: tuple[str, ...]
    changes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        s = self.site
        return {
            "number": self.number,
            "id": s.id,
            "role": s.purpose,
            "kind": s.kind,
            "name": s.name,
            "value": s.value,
            "function": s.function,
            "path": s.path,
            "line": self.line,
            "column": self.column,
            "text": s.text,
            "reaches": sorted(s.reach),
            "rank": s.rank,
            "why": self.why,
            "families": list(self.families),
            "changes": list(self.changes),
        }


def marked_sites(template: Template, mutations: Sequence[Mutation]) -> list[MarkedSite]:
    """The template's sites, the worthiest first, each with the mutations that edit there."""
    out = []
    for number, site in enumerate(template.sites, start=1):
        data = template.program.files[site.path].data
        before = data[: site.start].decode("utf-8", "replace")
        here = [
            m
            for m in mutations
            if any(v.site == site.id or v.site.startswith(f"{site.id}:") for v in m.moves) and len(m.moves) == 1
        ]
        families = tuple(dict.fromkeys(v.family for m in here for v in m.moves))
        reaches = ", ".join(_SINKS[kind] for kind in sorted(site.reach) if kind in _SINKS)
        why = (
            f"{_WHY.get(site.purpose, site.purpose)}; reaches the {reaches}"
            if reaches
            else _WHY.get(site.purpose, site.purpose)
        )
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        out.append(MarkedSite(number, site, line, column, why, families, tuple(m.change for m in here)))
    return out


def elsewhere(sites: Sequence[MarkedSite], mutations: Sequence[Mutation]) -> dict[str, list[str]]:
    """By family: single changes that belong to no one site (even tiles, swapped axes, ...)."""
    told = {change for m in sites for change in m.changes}
    out: dict[str, list[str]] = {}
    for mutation in mutations:
        if len(mutation.moves) == 1 and mutation.change not in told:
            out.setdefault(mutation.moves[0].family, []).append(mutation.change)
    return out


def marked_text(template: Template, sites: Sequence[MarkedSite]) -> dict[str, str]:
    """By path: the program's text with ``/*<n role*/ ... /*n>*/`` around every site; still the same program."""
    marks: dict[str, list[tuple[int, int, int, str]]] = {}
    for m in sites:
        s = m.site
        marks.setdefault(s.path, []).append((s.start, 1, -s.end, f"/*<{m.number} {s.purpose}*/"))
        marks[s.path].append((s.end, 0, -s.start, f"/*{m.number}>*/"))
    out = {}
    for path, found in marks.items():
        data, pieces, at = template.program.files[path].data, list[bytes](), 0
        # At one offset, what ends comes before what begins; of two that begin, the longer one is outside.
        for offset, _, _, text in sorted(found):
            pieces += [data[at:offset], text.encode()]
            at = offset
        out[path] = b"".join([*pieces, data[at:]]).decode("utf-8", "replace")
    return out
