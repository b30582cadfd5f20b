"""Which accesses of a launch nothing orders: brute force over the access log, apart from the virtual NPU's checker.

Every instruction is three moments: the scalar unit *issues* it, its pipe *starts* it, it is *complete*. What the
AscendC reference promises becomes edges between moments; two accesses are ordered when a path leads from the completion
of one to the start of the other. Nothing is clever here, so that it is easy to see that it is right.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

PIPES = ("S", "V", "MTE2", "MTE3")


@dataclass(frozen=True)
class Access:
    """One instruction's access: ``pieces`` are (first byte, end) in ``memory``."""

    core: int
    entry: int
    pipe: str
    api: str
    memory: str
    pieces: tuple[tuple[int, int], ...]
    write: bool
    atomic: bool


class _Graph:
    """Moments are numbered as they are made, and every edge leads forward, so one sweep finds who comes before whom."""

    def __init__(self) -> None:
        self.before: list[int] = []  # bit k of before[n]: moment k comes before moment n (or is it)

    def moment(self, *after: int) -> int:
        n = len(self.before)
        reached = 1 << n
        for k in after:
            reached |= self.before[k]
        self.before.append(reached)
        return n

    def comes_before(self, a: int, b: int) -> bool:
        return bool(self.before[b] >> a & 1)


class _Core:
    """What the next moments of one core come after, since the last SyncAll, which waits for everything before it.

    Flags don't cross a SyncAll here: what was set before it is complete anyway.
    """

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.entries = entries
        self.at = 0
        self.raised: dict[int, list[int]] = defaultdict(list)  # moments of CrossCoreSetFlag, by flag
        self.awaited: dict[int, int] = defaultdict(int)  # how often it has waited for each
        self.restart([])

    def restart(self, meeting: list[int]) -> None:
        self.scalar = list(meeting)  # the next issue comes after these
        self.gate: dict[str, list[int]] = {p: list(meeting) for p in PIPES}  # the next start on the pipe comes after
        self.done: dict[str, list[int]] = defaultdict(list)  # completions on the pipe
        self.flags: dict[tuple[str, str, int], list[int]] = defaultdict(list)

    def everything(self) -> list[int]:
        return [*self.scalar, *(m for p in PIPES for m in self.done[p])]

    def next_kind(self) -> str:
        return str(self.entries[self.at]["kind"]) if self.at < len(self.entries) else "end"


def accesses_and_order(log: dict[str, Any]) -> tuple[list[Access], dict[tuple[int, int], tuple[int, int]], _Graph]:
    """All accesses, (start, complete) of every instruction by (core, entry), and the graph."""
    graph = _Graph()
    moments: dict[tuple[int, int], tuple[int, int]] = {}
    accesses: list[Access] = []
    cores = [_Core(entries) for entries in log["cores"]]
    while any(c.next_kind() != "end" for c in cores):
        before = [c.at for c in cores]
        for number, core in enumerate(cores):
            while core.next_kind() not in ("sync_all", "end") and _step(graph, number, cores, moments, accesses):
                pass
        if before != [c.at for c in cores]:
            continue
        assert all(c.next_kind() in ("sync_all", "end") for c in cores), "a launch that waits for ever has no log"
        meeting = graph.moment(*(m for c in cores for m in c.everything()))
        for core in cores:
            core.restart([meeting])
            core.at += core.next_kind() == "sync_all"
    return accesses, moments, graph


def _step(
    graph: _Graph,
    number: int,
    cores: list[_Core],
    moments: dict[tuple[int, int], tuple[int, int]],
    accesses: list[Access],
) -> bool:
    """Adds one core's next entry; False when it waits for a flag that another core still has to raise."""
    core = cores[number]
    entry = core.entries[core.at]
    kind, pipe, src = entry["kind"], entry["pipe"], entry["src"]
    gate, done, flags, flag = core.gate, core.done, core.flags, entry["id"]
    if kind == "cross_wait" and any(len(c.raised[flag]) <= core.awaited[flag] for c in cores):
        return False
    issue = graph.moment(*core.scalar)
    core.scalar = [issue]
    if kind == "instruction":
        start = graph.moment(issue, *gate[pipe], *(done["S"] if pipe == "S" else []))
        complete = graph.moment(start)
        gate[pipe] = [*gate[pipe], start]  # a pipe starts in order
        done[pipe].append(complete)
        if pipe == "S" and not any(a[5] for a in entry["accesses"]):
            core.scalar.append(complete)  # the scalar unit has what it loads before it goes on
        moments[number, core.at] = (start, complete)
        for memory, begin, size, pieces, stride, write, atomic in entry["accesses"]:
            spans = tuple((begin + i * stride, begin + i * stride + size) for i in range(pieces))
            access = (number, core.at, pipe, entry["api"], memory, spans, bool(write), bool(atomic))
            accesses.append(Access(*access))
    elif kind == "set":
        flags[src, pipe, flag].append(graph.moment(issue, *gate[src], *done[src]))
    elif kind == "wait":
        waiting = flags[src, pipe, flag]
        passed = graph.moment(issue, *([waiting.pop(0)] if waiting else []))
        gate[pipe].append(passed)
        if pipe == "S":
            core.scalar.append(passed)
    elif kind == "cross_set":  # raised for all cores when what the pipe was given before is complete
        core.raised[flag].append(graph.moment(issue, *gate[pipe], *done[pipe]))
    elif kind == "cross_wait":  # nothing is issued before every core has raised it as often
        nth = core.awaited[flag]
        core.awaited[flag] += 1
        core.scalar = [graph.moment(issue, *(c.raised[flag][nth] for c in cores))]
    elif kind == "barrier":
        gate[pipe].append(graph.moment(issue, *done[pipe]))
    else:
        core.scalar = [graph.moment(issue, *(m for p in PIPES for m in done[p]))]
    core.at += 1
    return True


def _meet(a: Access, b: Access) -> bool:
    return a.memory == b.memory and any(p[0] < q[1] and q[0] < p[1] for p in a.pieces for q in b.pieces)


def unordered(log: dict[str, Any]) -> list[tuple[Access, Access]]:
    """Pairs of accesses that touch a byte in common, one of them writing, with nothing that orders them."""
    accesses, moments, graph = accesses_and_order(log)
    groups: dict[object, list[Access]] = defaultdict(list)  # who can meet at all: local memory is a core's own
    for access in accesses:
        groups["GM" if access.memory == "GM" else access.core].append(access)
    found = []
    for group in groups.values():
        for i, b in enumerate(group):
            found += [(a, b) for a in group[:i] if _race(log, moments, graph, a, b)]
    return found


def _race(
    log: dict[str, Any], moments: dict[tuple[int, int], tuple[int, int]], graph: _Graph, a: Access, b: Access
) -> bool:
    if (a.core, a.entry) == (b.core, b.entry) or not (a.write or b.write) or (a.atomic and b.atomic):
        return False
    if not _meet(a, b):
        return False
    if a.memory == "UB" and a.pieces[0][0] >= log["ub_bytes"] and a.pipe == b.pipe:
        return False  # registers: instructions of one pipe leave their results in order
    (start_a, complete_a), (start_b, complete_b) = moments[a.core, a.entry], moments[b.core, b.entry]
    # A pipe's later write can't overtake its own earlier read: instructions start in order.
    if a.core == b.core and a.pipe == b.pipe and not a.write and graph.comes_before(start_a, start_b):
        return False
    if graph.comes_before(complete_a, start_b):
        return False
    return a.core == b.core or not graph.comes_before(complete_b, start_a)
