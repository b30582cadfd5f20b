"""What a tuned operator's dispatch costs per call: ``make bench-dispatch``. Microseconds of the host's clock.

An operator written in C++ as a hand-made binding would be (``dispatch.cpp``: allocate the output, launch) is called
bare, and then taken over, with a hit; and in a graph as torch.compile makes them, as a node that calls the operator and
as one that a tuned pair is bound to. Launches do nothing in both, so what is compared is the host's work. Rounds take
turns, and the quickest of each kind counts: a busy machine makes calls slower, never quicker.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ascendopt_tune as aot

import torch  # isort: skip

from ascendopt_tune.build.toolkit import find, host_compiler
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.settings import override
from ascendopt_tune.sources.registry import load_operator
from ascendopt_tune.store.cache import Cache
from ascendopt_tune.torch_ops.device.activate import activate
from ascendopt_tune.torch_ops.serving import binding, fast_path
from ascendopt_tune.torch_ops.serving.bound import bind
from ascendopt_tune.torch_ops.serving.dispatch import Original
from ascendopt_tune.torch_ops.serving.launcher import Launcher, device_of
from ascendopt_tune.torch_ops.serving.resolve import Resolver

SHAPE = (8, 2048)
ROUNDS, CALLS = 300, 100  # short rounds: some of them aren't interrupted
NODES = 10


def build(folder: Path) -> ctypes.CDLL:
    """Compiles and loads the bare operator."""
    include = Path(torch.__file__).parent / "include"
    library = folder / "bench_dispatch.so"
    source = Path(__file__).with_suffix(".cpp")
    command = [host_compiler(), "-std=c++17", "-O2", "-fPIC", "-shared", "-w", f"-I{include}", str(source)]
    libraries = [f"-L{include.parent / 'lib'}", "-ltorch_cpu", "-lc10"]
    subprocess.run([*command, *libraries, "-o", str(library)], check=True)
    torch.ops.load_library(str(library))
    return ctypes.CDLL(str(library))


def launcher_of(resolver: Resolver, op: Any, args: tuple[Any, ...]) -> Launcher:
    """Tunes the case, and makes its launcher, whether or not the tuned pair is another one than the operator's own."""
    resolver.resolve(op, args, {})
    operator = load_operator("add")
    with Evaluator(find(), workers=1) as evaluator:
        signature = evaluator.describe(operator).signature
    plan = binding.plan(signature, binding.bind(binding.parameters_of(op), op._schema, {}, args, {}), op._schema)
    cache = Cache()
    entry = next(e for s in cache.items("add") if (e := cache.get(s.key)) and e.key.case.count("8,2048") == 3)
    return Launcher(device_of(find(), 0), entry, plan, args[0].device)


def per_call_us(call: Callable[[], Any], calls: int = CALLS) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls * 1e6


def graph_of(target: Callable[..., Any]) -> Callable[..., Any]:
    """A graph of NODES calls of ``target`` one after the other, as a compiled model runs it."""
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    results = [graph.call_function(target, (x, y)) for _ in range(NODES)]
    graph.output(results[-1])
    forward: Callable[..., Any] = torch.fx.GraphModule({}, graph).forward
    return forward


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    activate()
    x, y = (torch.ones(SHAPE, dtype=torch.float16).npu() for _ in range(2))
    memory = torch.zeros(1 << 20, dtype=torch.uint8).npu()
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        no_launch = ctypes.cast(library.bench_no_launch, ctypes.c_void_p)
        address = ctypes.c_void_p(memory.data_ptr())
        library.bench_configure(no_launch, None, ctypes.c_uint32(8), address, address)
        op = torch.ops.aot_bench.add.default
        if fast_path.library(wait=True) is None:
            raise SystemExit(f"hits are served in {fast_path.remark()}")
        taken = aot.intercept("aot_bench::add", "add", policy="blocking", budget=3)
        (tuned,) = taken.tuned
        # The bare operator launches nothing, so results can't be compared: the launcher goes into the table by hand.
        launcher = launcher_of(tuned._resolver, op, (x, y))
        launcher.launch = library["bench_no_launch"]
        launcher.launch.argtypes = [ctypes.c_void_p, ctypes.c_uint32, *[ctypes.c_void_p] * 4]
        key = tuned._key((x, y), {})
        function = aot.tune("add")(lambda x, y: x)
        function.tuned.table.choices[function.tuned._key((x, y), {})] = launcher  # type: ignore[attr-defined]

        with override(fast_path=False):
            bound = bind(tuned, op, "aot_bench::add", checked=())
        bound_fast = bind(tuned, op, "aot_bench::add", checked=())
        of_op, of_bound, of_bound_fast = graph_of(op), graph_of(bound), graph_of(bound_fast)

        rows: dict[str, list[float]] = {}

        def measure(kind: str, call: Callable[..., Any], nodes: int = 1) -> None:
            per_call_us(lambda: call(x, y), 10)  # what was just registered has to be met before
            rows.setdefault(kind, []).append(per_call_us(lambda: call(x, y), CALLS // nodes) / nodes)

        for _ in range(ROUNDS):
            taken.suspend()
            measure("bare", op)
            measure("node", of_op, NODES)
            with override(fast_path=False):
                taken.resume()
            tuned.enter_service(key, launcher, (x, y), {})
            measure("hit, in Python", op)
            measure("node, dispatched in Python", of_op, NODES)
            bound(x, y)
            measure("node, bound in Python", of_bound, NODES)
            taken.suspend()
            taken.resume()
            measure("hit, in C++", op)
            measure("node, dispatched in C++", of_op, NODES)
            bound_fast(x, y)
            measure("node, bound in C++", of_bound_fast, NODES)
            tuned.forget()
            tuned.table.choices[key] = Original("misses")
            measure("miss", op)
            measure("hit of a decorated function", function)
        taken.undo()
    best = {name: min(times) for name, times in rows.items()}
    document = {
        "us_per_call": {name: round(value, 2) for name, value in best.items()},
        "added_us": {name: round(value - best[_base(name)], 2) for name, value in best.items() if name != _base(name)},
    }
    if options.json:
        print(json.dumps(document))
        return
    for name, value in best.items():
        added = "" if name == _base(name) else f"   {value - best[_base(name)]:+.2f}"
        print(f"{name:30s} {value:6.2f} us{added}")


def _base(kind: str) -> str:
    """What a kind of call is compared with."""
    return "node" if kind.startswith("node") else "bare"


if __name__ == "__main__":
    with override(check_every=0):  # nothing is computed, which a sampled call would find out
        main()
