"""Which accesses of a launch nothing orders: brute force over the access log, apart from the virtual NPU's checker.

Every instruction is three moments: the scalar unit *issues* it, its pipe *starts* it, it is *complete*. What the
AscendC reference promises becomes edges between moments; two accesses are ordered when a path leads from the completion
of one to the start of the other. Nothing is clever here, so that it is easy to see that it is right.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any


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


class _Crossing:
    """Flags between cores: who has raised them, and where they have arrived (asc-devkit, CrossCoreSetFlag).

    Cores are numbered group by group, in a group the cube core first. Scopes: 0 all of a kind, 1 the vector cores of
    a group, 2 those of a kind in a group for the others in it, 3 all; 4 to 6 from one core to the cube core, the first
    and the second vector core of its group.
    """

    def __init__(self, log: dict[str, Any]) -> None:
        self.cubes, self.size, self.cores = log["cubes"], log["cubes"] + log["vectors"], len(log["cores"])
        self.raised: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self.arrived: dict[tuple[int, int], list[list[int]]] = defaultdict(list)

    def _cores(self, group: int | None, cube: bool | None) -> list[int]:
        """Of a group or of all, of a kind or of both."""
        return [
            c for c in range(self.cores)
            if group in (None, c // self.size) and cube in (None, c % self.size < self.cubes)
        ]  # fmt: skip

    def _members(self, core: int, scope: int) -> list[int]:
        group, cube = core // self.size, core % self.size < self.cubes
        if scope >= 4:
            return [core]
        return self._cores(None if scope in (0, 3) else group, None if scope == 3 else cube)

    def _targets(self, core: int, scope: int) -> list[int]:
        group, cube = core // self.size, core % self.size < self.cubes
        if scope == 4:
            return [group * self.size]
        if scope > 4:
            return [group * self.size + self.cubes + scope - 5]
        return self._cores(group, not cube) if scope == 2 else self._members(core, scope)

    def raise_flag(self, core: int, scope: int, flag: int, moment: int) -> None:
        mine = self.raised[core, scope, flag]
        mine.append(moment)
        members = [self.raised[m, scope, flag] for m in self._members(core, scope)]
        if all(len(m) >= len(mine) for m in members):  # it was the last one of this round
            for target in self._targets(core, scope):
                self.arrived[target, flag].append([m[len(mine) - 1] for m in members])


class _Core:
    """What the next moments of one core come after, since the last SyncAll, which waits for everything before it.

    Flags don't cross a SyncAll here: what was set before it is complete anyway.
    """

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.entries = entries
        self.at = 0
        self.met = False  # has come to a SyncAll, and waits for the others
        self.numbered: dict[str, list[int]] = defaultdict(list)  # completions on the pipe, from the first on
        self.restart([])

    def restart(self, meeting: list[int]) -> None:
        self.scalar = list(meeting)  # the next issue comes after these
        self.gate: dict[str, list[int]] = defaultdict(lambda: list(meeting))  # the next start on the pipe comes after
        self.done: dict[str, list[int]] = defaultdict(list)  # completions on the pipe
        self.flags: dict[tuple[str, str, int], list[int]] = defaultdict(list)

    def everything(self) -> list[int]:
        return [*self.scalar, *(m for done in self.done.values() for m in done)]


def accesses_and_order(log: dict[str, Any]) -> tuple[list[Access], dict[tuple[int, int], tuple[int, int]], _Graph]:
    """All accesses, (start, complete) of every instruction by (core, entry), and the graph."""
    graph = _Graph()
    moments: dict[tuple[int, int], tuple[int, int]] = {}
    accesses: list[Access] = []
    crossing = _Crossing(log)
    cores = [_Core(entries) for entries in log["cores"]]
    while any(c.at < len(c.entries) for c in cores):
        before = [(c.at, c.met) for c in cores]
        for number, core in enumerate(cores):
            while core.at < len(core.entries) and _step(graph, number, core, crossing, moments, accesses):
                pass
        assert before != [(c.at, c.met) for c in cores], "a launch that waits for ever has no log"
    return accesses, moments, graph


def _between_cores(graph: _Graph, number: int, core: _Core, crossing: _Crossing) -> bool:
    """Adds an entry that other cores take part in; False when it waits for something they still have to do."""
    entry = core.entries[core.at]
    kind, scope, flag = entry["kind"], entry["scope"], entry["id"]
    if kind == "cross_set":  # raised when what the pipe was given before is complete
        pipe = entry["pipe"]
        issue = graph.moment(*core.scalar)
        core.scalar = [issue]
        crossing.raise_flag(number, scope, flag, graph.moment(issue, *core.gate[pipe], *core.done[pipe]))
        return True
    if kind == "sync_all":
        flag = -1 - scope  # no flag of a kernel's own
        if not core.met:
            crossing.raise_flag(number, scope, flag, graph.moment(*core.everything()))
        core.met = True
    arrived = crossing.arrived[number, flag]
    if not arrived:
        return False
    core.met = False
    passed = graph.moment(*core.scalar, *arrived.pop(0))  # nothing is issued before
    if kind == "sync_all":
        core.restart([passed])
    core.scalar = [passed]
    return True


def _step(
    graph: _Graph,
    number: int,
    core: _Core,
    crossing: _Crossing,
    moments: dict[tuple[int, int], tuple[int, int]],
    accesses: list[Access],
) -> bool:
    """Adds a core's next entry; False when it waits for another core."""
    entry = core.entries[core.at]
    kind, pipe, src = entry["kind"], entry["pipe"], entry["src"]
    gate, done, flags, flag = core.gate, core.done, core.flags, entry["id"]
    if kind in ("cross_set", "cross_wait", "sync_all"):
        passed_on = _between_cores(graph, number, core, crossing)
        core.at += passed_on
        return passed_on
    issue = graph.moment(*core.scalar)
    core.scalar = [issue]
    if kind == "instruction":
        held = [core.numbered[other][epoch - 1] for other, epoch in entry["after"]]  # by the hardware itself
        start = graph.moment(issue, *gate[pipe], *held, *(done["S"] if pipe == "S" else []))
        complete = graph.moment(start)
        gate[pipe] = [*gate[pipe], start, *([complete] if entry["in_order"] else [])]  # a pipe starts in order
        done[pipe].append(complete)
        core.numbered[pipe].append(complete)
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
    elif kind == "barrier":
        gate[pipe].append(graph.moment(issue, *done[pipe]))
    else:
        core.scalar = [graph.moment(*core.everything(), issue)]
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
