"""Meetings of all cores: one that nothing needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...reading.kernel_program import ApiCall, KernelProgram, neighbour
from ..motif import Change, Motif


def _meetings(kernel: KernelProgram) -> list[ApiCall]:
    return [c for c in kernel.named("SyncAll") if c.statement is not None]


def _apart(kernel: KernelProgram, meetings: Sequence[ApiCall], change: str, site: str) -> Change:
    """Without these meetings, but with the barrier of all pipes that each core has in one."""
    edits = [
        kernel.replace(c.path, c.statement, f"{c.spelled('PipeBarrier<PIPE_ALL>')};")
        for c in meetings
        if c.statement is not None
    ]
    return Change(site, change, tuple(edits))


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    found = _meetings(kernel)
    if len(found) > 1:
        yield _apart(kernel, found, f"none of {len(found)} meetings of all cores", "all")
    for c in found:
        assert c.statement is not None
        site = kernel.site(c.function, c.statement)
        yield _apart(kernel, [c], f"no meeting of all cores in {c.function.name}", site)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for c in _meetings(kernel):
        if c.statement is None or _follows(kernel, c):
            continue
        again = kernel.after(c.path, c.statement, kernel.text(c.path, c.statement))
        yield Change(kernel.site(c.function, c.statement), f"all cores meet twice in {c.function.name}", (again,))


def _follows(kernel: KernelProgram, meeting: ApiCall) -> bool:
    """Is there another meeting right behind it?"""
    assert meeting.statement is not None
    following = kernel.call_of(meeting.function, neighbour(meeting.statement, 1))
    return following is not None and following.name == "SyncAll"


NEEDLESS_MEETING = Motif(
    name="needless-meeting",
    title="No meeting of cores that share nothing",
    description="SyncAll holds every core until the last one is there. Where no core reads or adds to what another one "
    "wrote before it, each may go on when it is ready; its own pipes still wait for each other.",
    bottlenecks=("synchronization", "imbalance", "waits between cores", "no overlap"),
    preconditions="At this case's sizes no core touches what another one wrote on the other side of the meeting.",
    faster=_faster,
    slower=_slower,
    together="no",
)
