"""How fast the virtual NPU and the evaluation around it are, as ratios taken within one run: ``make bench-vnpu``.

Times are what this machine needs (processor time of user code and of the system, and wall clock), not modelled ones;
a modelled time that is printed says so. Ratios are of processor time, medians of pairs measured in turn, because
machines are shared; with several threads a wall clock says more, so it is printed too.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ascendopt_tune.build import toolkit as toolkits
from ascendopt_tune.build.kernel import kernel_unit
from ascendopt_tune.build.toolkit import Toolkit
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.device.launch import DeviceLaunch
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.protocol import EvaluateRequest, EvaluationResult
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.arguments import numpy_dtype
from ascendopt_tune.sources.registry import load_operator

CHIP = "ascend910b2"
HOST = "op_host/add.cpp"
TILE = "TILE_LENGTH = 2048"
#: What a kernel sees of the standard library: the headers that kernel_operator.h includes.
TRIVIAL = "int main() { return 0; }\n"


@dataclass(frozen=True)
class Cost:
    """What a piece of work took: seconds of wall clock, of user code and of the system, children included."""

    wall: float
    user: float
    system: float

    @property
    def cpu(self) -> float:
        return self.user + self.system


def measured(work: Callable[[], object]) -> Cost:
    def now() -> tuple[float, float, float]:
        own, children = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        user, system = own.ru_utime + children.ru_utime, own.ru_stime + children.ru_stime
        return time.perf_counter(), user, system

    before = now()
    work()
    return Cost(*(b - a for a, b in zip(before, now(), strict=True)))


def in_turn(repeats: int, **works: Callable[[], object]) -> dict[str, list[Cost]]:
    """Costs of each work, measured one after another ``repeats`` times after one round that doesn't count."""
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    for repeat in range(repeats + 1):
        for name, work in works.items():
            cost = measured(work)
            if repeat:
                costs[name].append(cost)
    return costs


def ratio(costs: dict[str, list[Cost]], a: str, b: str) -> float:
    return statistics.median(x.cpu / max(y.cpu, 1e-6) for x, y in zip(costs[a], costs[b], strict=True))


def median(costs: list[Cost], what: str = "cpu") -> float:
    return float(statistics.median(getattr(c, what) for c in costs))


def line(name: str, value: float, unit: str = "x", limit: float | None = None) -> None:
    verdict = "" if limit is None else f"   limit {limit:g}: {'holds' if value <= limit else 'MISSED'}"
    print(f"  {name:<66}{value:10.3f} {unit}{verdict}")


# -- simulation -------------------------------------------------------------------------------------------------------


def built(operator: Operator, case: Case, evaluator: Evaluator) -> EvaluationResult:
    """The baseline, compiled and tiled."""
    request = EvaluateRequest(operator, operator.baseline, case, CHIP, trials=(), measure=False)
    result = evaluator.evaluate(request)
    assert isinstance(result.outcome, Timed), result.outcome
    return result


@dataclass
class Simulation:
    """The baseline of an operator with its inputs on the device, ready to be launched."""

    acl: Acl
    launch: DeviceLaunch
    function: int
    block_dim: int

    def run(self, timing: bool, hazards: bool, threads: int = 1) -> None:
        options = LaunchOptions(CHIP, timing=timing, hazards=hazards, threads=threads)
        self.launch.run(self.function, self.block_dim, options=options)
        self.acl.synchronize()

    def running(self, timing: bool, hazards: bool, threads: int = 1) -> Callable[[], None]:
        def run() -> None:
            self.run(timing, hazards, threads)
            assert self.acl.cores_beside() == (self.block_dim if threads > 1 else 0)

        return run

    def output(self) -> np.ndarray[Any, Any]:
        (found,) = self.launch.outputs()
        assert isinstance(found, np.ndarray)
        return found


@contextmanager
def simulation_of(
    evaluator: Evaluator, name: str, case: Case, names: tuple[tuple[str, ...], tuple[str, ...]], inputs: list[Any]
) -> Iterator[Simulation]:
    result = built(load_operator(name), case, evaluator)
    assert result.tiling is not None
    acl = Acl(evaluator.toolkit)
    with ExitStack() as stack:
        binary = stack.enter_context(acl.load(Path(str(result.binary_path)).read_bytes()))
        launch = DeviceLaunch(acl, case, names, result.tiling.data, result.tiling.workspace_bytes)
        stack.enter_context(launch)
        launch.load(inputs, 0xFF)
        yield Simulation(acl, launch, binary.function(result.entry), result.block_dim)


def simulation(evaluator: Evaluator, dtype: str, side: int, repeats: int, limits: tuple[float, float] | None) -> None:
    """Add on 48 cores against numpy's add of the same arrays."""
    spec = TensorSpec(dtype, (side, side))
    case = Case((spec, spec), (spec,))
    random = np.random.default_rng(0)
    x, y = (random.random((side, side), np.float32).astype(numpy_dtype(dtype)) for _ in range(2))
    out = np.empty_like(x)
    reports: list[dict[str, Any]] = []
    threads = os.cpu_count() or 1
    with simulation_of(evaluator, "add", case, (("x", "y"), ("z",)), [x, y]) as of:
        costs = in_turn(
            repeats,
            add=lambda: x + y,
            add_out=lambda: np.add(x, y, out=out),
            function=of.running(False, False),
            timing=of.running(True, False),
            hazards=of.running(False, True),
            both=of.running(True, True),
            checked_threads=of.running(False, True, threads),
            both_threads=of.running(True, True, threads),
        )
        for chosen in (threads, 1):
            of.run(True, True, chosen)
            reports.append(of.acl.report())
            assert of.output().tobytes() == (x + y).tobytes(), "the simulation computes something else than numpy"
        assert reports[0] == reports[1], "threads change a report"
        cores = of.block_dim
    report = reports[-1]
    print(
        f"\nadd {dtype}[{side},{side}] on {cores} cores, {median(costs['both'], 'wall') * 1e3:.0f} ms",
        end="",
    )
    print(f" (modelled task duration {report['profile']['task_duration_us']:.1f} us)")
    line("function and time, hazards off / numpy x + y", ratio(costs, "timing", "add"), limit=limits and limits[0])
    line("function and time, hazards on  / numpy x + y", ratio(costs, "both", "add"), limit=limits and limits[1])
    line("function and time, hazards off / numpy add into an array at hand", ratio(costs, "timing", "add_out"))
    line("function and time, hazards on  / numpy add into an array at hand", ratio(costs, "both", "add_out"))
    instructions = report["profile"]["counters"]["instructions"]
    line("instructions simulated", instructions / median(costs["both"]) / 1e6, "million/s of processor time")
    total, base = median(costs["both"]), median(costs["function"])
    line("processor time: execution", base * 1e3, "ms")
    line("processor time: hazards", max(0.0, median(costs["hazards"]) - base) * 1e3, "ms")
    line("processor time: timing model", max(0.0, median(costs["timing"]) - base) * 1e3, "ms")
    line("processor time: all", total * 1e3, "ms")
    for name, one, more in (("", "both", "both_threads"), ("time off, ", "hazards", "checked_threads")):
        walls = [a.wall / b.wall for a, b in zip(costs[one], costs[more], strict=True)]
        text = f"{name}hazards on, wall clock: cores on one thread / on {threads}"
        line(text, statistics.median(walls), f"x   processor time {ratio(costs, one, more):.2f} x")


def products(evaluator: Evaluator, side: int, repeats: int, limits: tuple[float, float] | None) -> None:
    """A product of matrices on cube cores against numpy's of float32; processor time, so its threads don't count."""
    spec = TensorSpec("float16", (side, side))
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((side, side), np.float32).astype(np.float16) for _ in range(2))
    wide = a.astype(np.float32), b.astype(np.float32)
    with simulation_of(
        evaluator, "matmul", Case((spec, spec, None), (spec,)), (("a", "b", "bias"), ("c",)), [a, b, None]
    ) as of:
        costs = in_turn(
            repeats,
            numpy=lambda: wide[0] @ wide[1],
            function=of.running(False, False),
            timing=of.running(True, False),
            both=of.running(True, True),
        )
        assert np.allclose(of.output().astype(np.float32), wide[0] @ wide[1], rtol=1e-3, atol=1e-3 * side**0.5)
        print(f"\nmatmul float16[{side},{side}] x [{side},{side}] on {of.block_dim} cube cores", end="")
        print(f", {median(costs['both'], 'wall'):.2f} s")
    line("function / numpy float32 a @ b", ratio(costs, "function", "numpy"))
    text = "function and time, hazards {} / numpy float32 a @ b"
    line(text.format("off"), ratio(costs, "timing", "numpy"), limit=limits and limits[0])
    line(text.format("on "), ratio(costs, "both", "numpy"), limit=limits and limits[1])


def attention(evaluator: Evaluator, keys: int, repeats: int) -> None:
    """Attention of 8 heads on groups of a cube core and two vector cores, with everything that is checked."""
    spec = TensorSpec("float16", (8, keys, 128))
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(spec.shape, np.float32).astype(np.float16) for _ in range(3)]
    case = Case((spec, spec, spec), (spec,), (("causal", True), ("scale", 128**-0.5)))
    with simulation_of(evaluator, "flash_attention", case, (("q", "k", "v"), ("o",)), inputs) as of:
        costs = in_turn(repeats, both=of.running(True, True))
        print(f"\nflash_attention float16[8,{keys},128], causal, on {of.block_dim} groups of cores")
    line("function and time, hazards on", median(costs["both"]), "s of processor time")


# -- building ---------------------------------------------------------------------------------------------------------


def building(toolkit: Toolkit, evaluator: Evaluator, repeats: int) -> None:
    """Compiling a kernel candidate against compiling a program that only includes what it includes."""
    operator = load_operator("add")
    spec = TensorSpec("float32", (1024, 1024))
    case = Case((spec, spec), (spec,))
    kernel = operator.baseline.kernel["op_kernel/add.cpp"]
    headers = standard_headers(toolkit)
    folder, acl = Path(tempfile.mkdtemp()), Acl(toolkit)
    description, tiling = evaluator.describe(operator), built(operator, case, evaluator).tiling
    unit = kernel_unit(
        operator, operator.baseline, description.signature, case, tiling, description.tiling_structs, folder / "kernel"
    )
    numbers = iter(range(1 << 20))

    def candidate() -> None:
        text = kernel.replace("uint32_t tileLength = 0;", f"uint32_t tileLength = {next(numbers)};")
        pair = operator.baseline.with_kernel("op_kernel/add.cpp", text)
        result = evaluator.evaluate(EvaluateRequest(operator, pair, case, CHIP, trials=(), measure=False))
        assert isinstance(result.outcome, Timed), result.outcome
        assert "kernel" not in result.reused

    def compiling() -> None:
        acl.compile(f"{unit.source}// {next(numbers)}\n", unit.name, unit.options)

    def trivial() -> None:
        (folder / "trivial.cpp").write_text("".join(f"#include <{h}>\n" for h in headers) + TRIVIAL)
        command = [toolkits.host_compiler(), "-std=c++17", "-O1", "trivial.cpp", "-o", "trivial"]
        subprocess.run(command, cwd=folder, check=True)

    costs = in_turn(repeats, trivial=trivial, compiling=compiling, candidate=candidate)
    shutil.rmtree(folder)
    print(f"\nbuilding (trivial program: includes {', '.join(headers)})")
    line("g++ -O1 of the trivial program", median(costs["trivial"], "wall") * 1e3, "ms wall")
    line("compiling a kernel", median(costs["compiling"], "wall") * 1e3, "ms wall")
    walls = [c.wall / t.wall for c, t in zip(costs["compiling"], costs["trivial"], strict=True)]
    line("a kernel / the trivial program, wall clock", statistics.median(walls), limit=2)
    line("a kernel / the trivial program, processor time", ratio(costs, "compiling", "trivial"), limit=2)
    walls = [c.wall / t.wall for c, t in zip(costs["candidate"], costs["trivial"], strict=True)]
    line("a whole kernel candidate through the evaluation server, wall clock", statistics.median(walls), limit=2)


def standard_headers(toolkit: Toolkit) -> list[str]:
    """The standard headers that a kernel gets with kernel_operator.h, those it is compiled with."""
    command = [toolkits.host_compiler(), "-std=c++17", "-M", str(toolkit.include / "kernel_operator.h")]
    done = subprocess.run([*command, f"-I{toolkit.include}"], capture_output=True, text=True, check=True)
    found = {Path(w).name for w in done.stdout.split() if "/c++/" in w and Path(w).parent.name.isdigit()}
    return sorted(found)


# -- tuning -----------------------------------------------------------------------------------------------------------


def with_tile(operator: Operator, elements: int) -> Pair:
    text = operator.baseline.tiling[HOST]
    assert TILE in text
    return operator.baseline.with_tiling(HOST, text.replace(TILE, f"TILE_LENGTH = {elements}"))


def with_logic(operator: Operator, number: int) -> Pair:
    text = operator.baseline.tiling[HOST]
    old = "std::min(TILE_LENGTH, ubTileLength)"
    assert old in text
    return operator.baseline.with_tiling(
        HOST, text.replace(old, f"std::min(TILE_LENGTH{' + 8' * number}, ubTileLength)")
    )


def tuning(evaluator: Evaluator, side: int, repeats: int, logic: bool) -> None:
    """What an evaluation costs beyond executing the kernel: numbers changed and, with ``logic``, logic changed.

    Executing the kernel is what happens between handing it to the device and its end, in every launch of the
    evaluation: its instructions, the hazard checker, and in the launch that is measured the timing model. Loading
    inputs, comparing outputs and inputs afterwards, processes and their limits, tiling: all that is beyond it.
    """
    operator = load_operator("add")
    spec = TensorSpec("float32", (side, side))
    gate = Gate(operator, Case((spec, spec), (spec,)), evaluator)
    gate.trials()
    gate.evaluate(operator.baseline)
    print(f"\none evaluation of add float32[{side},{side}], {len(gate.trials())} launches each")
    kinds: dict[str, Callable[[int], Pair]] = {
        "other numbers in the tiling program": lambda i: with_tile(operator, 2048 - 8 * i),
    }
    if logic:
        kinds["other logic in the tiling program"] = lambda i: with_logic(operator, i)
    for name, pair_of in kinds.items():
        rows: list[tuple[float, ...]] = []
        before_all = compiled(evaluator)
        for i in range(1, repeats + 1):
            pair = pair_of(i)
            before = time.perf_counter(), processor_time(evaluator)
            gate.fingerprint(pair)
            ((_, checked),) = gate.evaluate_many({0: pair})
            wall, cpu = time.perf_counter() - before[0], processor_time(evaluator) - before[1]
            assert isinstance(checked.outcome, Timed), checked.outcome
            spent = checked.timings_s
            rows.append((wall, spent["launch"], wall - spent["launch"], cpu, cpu - spent["launch_cpu"]))
        hosts, kernels = (b - a for a, b in zip(before_all, compiled(evaluator), strict=True))
        print(f" {name} ({repeats} evaluations compiled {hosts} host sources and {kernels} kernels)")
        whole, launches, beyond, cpu, cpu_beyond = (
            statistics.median(column) * 1e3 for column in zip(*rows, strict=True)
        )
        line("whole evaluation, wall clock", whole, "ms")
        line("the launches of it, wall clock", launches, "ms")
        line("beyond executing the kernel, wall clock", beyond, "ms")
        line("whole evaluation, processor time", cpu, "ms")
        line("evaluations per second of one worker", 1e3 / whole, "/s wall")
        line("evaluations per second of processor time", 1e3 / cpu, "/s")
        numbers = "numbers" in name
        text = (
            f"{'a change of numbers' if numbers else 'a change of logic'} beyond executing the kernel, processor time"
        )
        line(text, cpu_beyond, "ms", 100 if numbers else None)


def compiled(evaluator: Evaluator) -> tuple[int, int]:
    """How many host sources and kernels have been compiled."""
    folders = evaluator.build_dir / "host" / "objects", evaluator.build_dir / "kernel"
    hosts, kernels = (len(list(folder.glob("*.o"))) for folder in folders)
    return hosts, kernels


def processor_time(evaluator: Evaluator) -> float:
    """Seconds of this process, the evaluation server, those it has started and those they have started and seen end."""
    server = Path(f"/proc/{evaluator.server_pid}")
    ticks = 0
    for pid in (server.name, *(server / "task" / server.name / "children").read_text().split()):
        words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += sum(map(int, words[11:15]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, one repeat: does it run?")
    parser.add_argument("--repeats", type=int, default=7, help="measurements of each (default: %(default)s)")
    options = parser.parse_args(arguments)
    quick = options.quick
    repeats, side = (1, 512) if quick else (options.repeats, 8192)
    toolkit = toolkits.virtual()
    print(f"{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; numpy {np.__version__}")
    with (
        tempfile.TemporaryDirectory() as folder,
        Evaluator(toolkit, CHIP, workers=1, build_dir=Path(folder)) as evaluator,
    ):
        simulation(evaluator, "float32", side, repeats, None if quick else (4, 8))
        simulation(evaluator, "float16", side, repeats, None if quick else (2, 4))
        products(evaluator, side // 4, repeats, None if quick else (10, 20))
        attention(evaluator, side // 8, repeats)
        building(toolkit, evaluator, repeats)
        tuning(evaluator, 64, repeats, logic=quick)
        if not quick:
            tuning(evaluator, 1024, repeats, logic=True)


if __name__ == "__main__":
    main(sys.argv[1:])
