"""What tuning many shapes costs: prebuilds with 1, 2 and 4 workers, and what 10,000 shapes come to on more machines.

Shapes don't know each other, so what a shape costs is what counts: seconds of a processor, and of the wall clock with
so many beside it. ``python benchmarks/cluster.py [--docs docs/machines.md]``; best on an idle machine. One worker is a
process, whose time is told; 1, 2 and 4 are those of a Ray cluster that is started here, or processes with ``--no-ray``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.files import write_between

BEGIN, END = "<!-- cost: written by `python benchmarks/cluster.py --docs` -->", "<!-- end of cost -->"
SHAPES, MACHINES, PROCESSORS = 10_000, (1, 16, 256), (2, 32)
WORKERS = (1, 2, 4)
MANIFEST = """
budget = {budget}
target = "virtual"
warm_start = false
[[operator]]
source = "rms_norm"
[[operator.case]]
inputs = {{ x = "float16[64,{{columns}}]", gamma = "float16[{{columns}}]" }}
attrs = {{ epsilon = 1e-6 }}
grid = {{ columns = [1024, 4096] }}
[[operator]]
source = "softmax"
[[operator.case]]
inputs = {{ x = "float16[64,{{columns}}]" }}
grid = {{ columns = [1024, 4096] }}
"""
CASES = 4


@dataclass(frozen=True)
class Measured:
    """A prebuild of the manifest: ``seconds`` of the wall clock, ``cpu`` of processors (None on Ray, whose processes
    are nobody's children), ``load`` of the machine before it, ``size`` of the bundle in bytes."""

    workers: int
    ray: bool
    seconds: float
    cpu: float | None
    load: float
    size: int


def measure(workers: int, ray: bool, budget: int) -> Measured:
    """One prebuild, with an empty cache and the toolkit built."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "manifest.toml").write_text(MANIFEST.format(budget=budget))
        bundle = folder / "bundle"
        words = [sys.executable, "-m", "ascendopt_tune", "prebuild", str(folder / "manifest.toml"), "-o", str(bundle)]
        words += ["--json", "--workers", str(workers), *(["--ray", "local"] if ray else [])]
        environment = {**os.environ, "ASCENDOPT_CACHE_DIR": str(folder / "cache")}
        environment["ASCENDOPT_TOOLKIT_DIR"] = str(virtual().prefix.parent)
        load, began, before = os.getloadavg()[0], time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        assert [e["result"] for e in json.loads(done.stdout)["entries"]] == ["tuned"] * CASES, done.stderr
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        size = sum(p.stat().st_size for p in bundle.rglob("*") if p.is_file())
        return Measured(workers, ray, seconds, None if ray else cpu, load, size)


def hours(machines: int, processors: int, per_shape: float) -> float:
    """Of the wall clock: shapes in waves, as many at a time as there are processors."""
    return math.ceil(SHAPES / (machines * processors)) * per_shape / 3600


def lines(found: list[Measured], budget: int) -> Iterator[str]:
    """The page's part."""
    cpu = next(m.cpu for m in found if m.cpu is not None and m.workers == 1) / CASES
    size = found[0].size / CASES
    yield f"{CASES} shapes (`rms_norm` and `softmax`, float16, 64 rows of 1024 and of 4096), {budget} evaluations each,"
    yield f"with an empty cache and the toolkit built, on a machine with {os.cpu_count()} processors:"
    yield ""
    yield "| workers | as | wall clock, s | shapes an hour | processor time of a shape, s | load before |"
    yield "|---|---|---|---|---|---|"
    for m in found:
        kind, own = "Ray tasks" if m.ray else "processes", f"{m.cpu / CASES:.0f}" if m.cpu is not None else ""
        yield f"| {m.workers} | {kind} | {m.seconds:.0f} | {3600 * CASES / m.seconds:.0f} | {own} | {m.load:.1f} |"
    yield ""
    yield f"A shape takes {cpu:.0f} s of a processor, and its result {size / 1000:.0f} kB. So {SHAPES:,} shapes are"
    yield f"{SHAPES * cpu / 3600:.0f} hours of a processor and {SHAPES * size / 1e9:.2f} GB, however many machines"
    yield "there are. Reckoned from that, with one shape for each processor at a time, they take:"
    yield ""
    yield "| machines | " + " | ".join(f"of {p} processors, hours" for p in PROCESSORS) + " |"
    yield "|---|" + "---|" * len(PROCESSORS)
    for machines in MACHINES:
        yield f"| {machines} | " + " | ".join(f"{hours(machines, p, cpu):.2g}" for p in PROCESSORS) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=40)
    parser.add_argument("--no-ray", action="store_true", help="workers are processes")
    parser.add_argument("--docs", type=Path, help="write the tables into this page")
    given = parser.parse_args()
    found = []
    for workers, ray in [(1, False), *((n, not given.no_ray) for n in WORKERS if n > 1 or not given.no_ray)]:
        found.append(measure(workers, ray, given.budget))
        print(found[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines(found, given.budget))
    if given.docs is not None:
        write_between(given.docs, BEGIN, END, "the cost of many shapes", text)
    print(text)


if __name__ == "__main__":
    main()
