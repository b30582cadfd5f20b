"""The mutation battery: verified kernels, one synchronization at a time left out or moved, judged by the oracle.

A kernel is compiled once with ``kernels/mutants.h`` in front, which lets every synchronization (SetFlag, WaitFlag,
PipeBarrier, SyncAll, CrossCoreSetFlag, CrossCoreWaitFlag, and what EnQue, DeQue, AllocTensor and FreeTensor do) be
listed, left out or moved at run time.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hazard_oracle import unordered

from ascendopt_tune.build.host import TilingStruct
from ascendopt_tune.build.kernel import kernel_unit
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.device.launch import DeviceLaunch
from ascendopt_tune.errors import DeviceError
from ascendopt_tune.evaluate.evaluator import EvaluateRequest, Evaluator
from ascendopt_tune.evaluate.execute import parameter_order
from ascendopt_tune.evaluate.inputs import make_inputs
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Operator, Signature

HEADER = (Path(__file__).resolve().parent / "kernels" / "mutants.h").read_text()
_VARIABLE = "AOT_MUTATION"
_MOST_ACCESSES = 2000  # of a launch that brute force can judge, many times over


@dataclass(frozen=True)
class Subject:
    """A verified kernel: ``run`` launches it on fresh data and raises DeviceError when the launch fails."""

    name: str
    run: Callable[[], None]


@dataclass(frozen=True)
class Call:
    """A synchronization as listed by mutants.h; ``site`` is where in the kernel it is."""

    core: int
    kind: str
    src: int
    dst: int
    id: int
    site: str


@dataclass(frozen=True)
class Mutation:
    """What to do (drop, delay, early) with the calls of which sites."""

    verb: str
    what: str
    sites: tuple[str, ...]


@dataclass
class Count:
    """``unordered``: mutants in which the oracle finds a race, or that break a rule before they get that far."""

    mutants: int = 0
    races: int = 0
    reported_races: int = 0
    refused: int = 0  # the launch failed, with a reason: a flag nobody sets, a queue without buffers
    ordered: int = 0  # something else orders what the synchronization did
    missed: list[str] = field(default_factory=list)
    false_reports: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        for name in ("mutants", "races", "reported_races", "refused", "ordered"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.missed += other.missed
        self.false_reports += other.false_reports

    def __str__(self) -> str:
        share = 100 * self.reported_races / self.races if self.races else 100
        return (
            f"{self.mutants} mutants: {self.races} unordered, {self.reported_races} of them reported ({share:.1f} %); "
            f"{self.refused} refused; {self.ordered} still ordered; {len(self.false_reports)} false reports"
        )


def list_calls(subject: Subject, file: Path) -> list[Call]:
    """Every synchronization of one launch, core by core in program order."""
    file.unlink(missing_ok=True)
    os.environ[_VARIABLE] = f"list {file}"
    try:
        subject.run()
    finally:
        del os.environ[_VARIABLE]
    calls = []
    for line in file.read_text().splitlines() if file.exists() else ():
        core, kind, src, dst, event, site, _ = line.split()
        calls.append(Call(int(core), kind, int(src), int(dst), int(event), site))
    return calls


def mutations(calls: list[Call]) -> Iterator[Mutation]:
    """Each synchronization left out (a flag's two sides together, and its wait alone) or moved to its neighbour."""
    partners = _partners(calls)
    kinds = {c.site: c.kind for c in calls}
    seen = set()
    for site, kind in kinds.items():
        group = tuple(sorted(partners.get(site, {site})))
        what = {"s": "flag", "f": "queue's flag", "w": "flag", "b": "PipeBarrier", "B": "PipeBarrier<ALL>"}
        what |= {"c": "flag between cores", "x": "flag between cores"}
        if kind in "sfwcx":
            if group not in seen:
                seen.add(group)
                yield Mutation("drop", f"{what[kind]} pair", group)
            if kind in "wx":
                yield Mutation("drop", "wait", (site,))
                yield Mutation("delay", "wait", (site,))
            else:
                yield Mutation("early", "set", (site,))
        else:
            yield Mutation("drop", what.get(kind, "SyncAll"), (site,))
            yield Mutation("delay", what.get(kind, "SyncAll"), (site,))


def _partners(calls: list[Call]) -> dict[str, set[str]]:
    """Sites of sets and waits that belong together: dropping some of them leaves flags unmatched."""
    groups: dict[str, set[str]] = {}
    open_sets: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for c in calls:
        key = (c.core, c.id) if c.kind in "cx" else (c.core, c.src, c.dst, c.id)
        if c.kind in "sfc":
            if c.kind != "c" or any((w.kind, w.core, w.id) == ("x", c.core, c.id) for w in calls):
                open_sets[key].append(c.site)
            groups.setdefault(c.site, {c.site})
        elif c.kind in "wx":
            merged = groups.setdefault(c.site, {c.site})
            if open_sets[key]:
                merged = merged | groups[open_sets[key].pop(0)]
            elif c.kind == "x":  # raised by cores of the other kind
                raising = {s.site for s in calls if (s.kind, s.id) == ("c", c.id)}
                merged = merged.union(*(groups.get(s, {s}) for s in raising))
            for site in merged:
                groups[site] = merged
    return groups


def judge(acl: Acl, subject: Subject, file: Path) -> Count | None:
    """Runs every mutant of ``subject``, and ``subject`` itself first, which has to be clean.

    None when a launch has too many accesses for the oracle; that it isn't reported has been checked then.

    Raises:
        AssertionError: the subject itself is reported, or the oracle finds a race in it.
    """
    calls = list_calls(subject, file)
    report = acl.report()
    assert not report["hazards"], f"{subject.name}: a false report: {report['hazards'][0]}"
    log = acl.access_log()
    if sum(len(e["accesses"]) for core in log["cores"] for e in core) > _MOST_ACCESSES:
        return None
    assert not unordered(log), f"{subject.name} has a race"
    count = Count()
    for mutation in mutations(calls):
        words = [mutation.verb, *([str(file)] if mutation.verb == "early" else []), *mutation.sites]
        os.environ[_VARIABLE] = " ".join(words)
        failed = ""
        try:
            subject.run()
        except DeviceError as e:
            failed = str(e)
        finally:
            del os.environ[_VARIABLE]
        count.mutants += 1
        name = f"{subject.name}: {mutation.verb} {mutation.what} {mutation.sites}"
        if failed:
            assert any(e["message"] for e in acl.report()["errors"]), name
            count.refused += 1
            continue
        races, reported = unordered(acl.access_log()), bool(acl.report()["hazards"])
        if races:
            count.races += 1
            count.reported_races += reported
            if not reported:
                count.missed.append(f"{name}: {races[0]}")
        else:
            count.ordered += 1
            if reported:
                count.false_reports.append(f"{name}: {acl.report()['hazards'][0]}")
    return count


def judge_racy(acl: Acl, subject: Subject) -> str:
    """Runs a subject that is known to race as it is; what came of it.

    Raises:
        AssertionError: nothing is reported, or the oracle finds no race.
    """
    subject.run()
    report, log = acl.report(), acl.access_log()
    assert report["hazards"], f"{subject.name} races, and nothing is reported"
    if sum(len(e["accesses"]) for core in log["cores"] for e in core) > _MOST_ACCESSES:
        return "races as it is, reported; too many accesses for the oracle"
    assert unordered(log), f"{subject.name}: a false report: {report['hazards'][0]}"
    return "races as it is: reported, and found by the oracle"


def table(counts: dict[str, Count]) -> str:
    """What the battery prints."""
    total = Count()
    lines = []
    for name, count in counts.items():
        lines.append(f"{name:28s} {count}")
        total.add(count)
    kinds = Counter(bool(c.races or c.refused) for c in counts.values())
    return "\n".join([*lines, f"{len(counts)} kernels ({kinds[True]} with mutants that break): {total}"])


class OperatorSubject:
    """An operator with a tiling program (or a kernel for direct launch) as a subject: one case, built once.

    Raises:
        AscendOptError: it can't be built.
    """

    def __init__(
        self, acl: Acl, evaluator: Evaluator, operator: Operator, case: Case, signature: Signature, folder: Path
    ) -> None:
        self._acl = acl
        pair, direct = operator.baseline, operator.direct
        outputs = (*(p.name for p in signature.outputs), *operator.in_place)
        names = tuple(p.name for p in signature.inputs), outputs
        tiling = None
        structs: tuple[TilingStruct, ...] = ()
        if direct is None:
            description = evaluator.describe(operator)
            structs = description.tiling_structs
            tiling = evaluator.tile(EvaluateRequest(operator, pair, case, evaluator.chip))
        unit = kernel_unit(operator, pair, signature, case, tiling, structs, folder)
        source = f'#include "mutants.h"\n{unit.source}'
        options = [*unit.options, "--cce-auto-sync=off"]
        self._binary = acl.load(acl.compile(source, unit.name, options, {"mutants.h": HEADER}))
        self._function = self._binary.function(unit.entry)
        self._inputs = make_inputs(case, names[0], operator.settings, "normal", 0)
        if tiling is not None:
            self._block_dim = tiling.block_dim
            self._launch = DeviceLaunch(
                acl,
                case,
                names,
                tiling.data,
                tiling.workspace_bytes,
                unlisted=len(operator.in_place),
                initial_values=tiling.initial_values,
            )
        else:
            assert direct is not None
            self._block_dim = direct.block_dim
            self._launch = DeviceLaunch(acl, case, names, order=parameter_order(operator, dict(case.attrs), names))

    def run(self) -> None:
        self._launch.load(self._inputs, 0xA5)
        self._launch.run(self._function, self._block_dim)
        self._acl.synchronize()

    def close(self) -> None:
        self._launch.free()
        self._binary.unload()
