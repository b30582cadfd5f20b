"""The mutation battery over verified kernels built without automatic synchronization; see hazard_battery.py.

``make hazard-battery`` runs it with everything, CI with the kernels of ``kernels/mutants_*.cpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
from cann_ops.table import arguments
from direct_launch import direct_case
from hazard_battery import HEADER, Count, OperatorSubject, Subject, judge, judge_racy, table
from test_cann_ops import OPERATORS, settings_of
from test_direct_launch import KERNELS as DEVKIT_KERNELS

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl, Binary
from ascendopt_tune.errors import DeviceError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.nouns.case import Case, flatten
from ascendopt_tune.nouns.operator import Operator, Signature
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.project import load_project
from ascendopt_tune.sources.registry import load_operator, operator_names

FOLDER = Path(__file__).resolve().parent / "kernels"
SOURCES = sorted(FOLDER.glob("mutants_*.cpp"))
Array = np.ndarray[Any, Any]
_OFF = "--cce-auto-sync=off"
N = 256
COUNT = 4096

X = (np.random.default_rng(7).permutation(COUNT).astype(np.float32) + 1) / 512  # distinct and positive


def _tiles(f: Callable[[Array], Array], n: int) -> Callable[[Array], Array]:
    return lambda x: f(x[: n * N])


def _rows(x: Array) -> Array:
    rows = x[:512].reshape(8, 64)
    return (rows - rows.sum(1, keepdims=True)).reshape(-1)


def _exchange(cores: int) -> Callable[[Array], Array]:
    return lambda x: np.roll(x[: cores * N].reshape(cores, N), -1, 0).reshape(-1)


def _parts(x: Array) -> Array:
    return x[:128] + 1 + x[128:256] + 2


def _strides(x: Array) -> Array:
    return (x[:64].reshape(4, 2, 8) + np.array([1, 2], np.float32)[:, None]).reshape(-1)


def _two_stores(x: Array) -> Array:
    return np.concatenate([x[:128], x[256:512]])


#: Kernel -> (cores, what the first floats of y are).
KERNELS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "flags_once": (1, _tiles(lambda x: 2 * x, 1)),
    "flags_loop": (1, _tiles(lambda x: x + 1, 3)),
    "flags_ping_pong": (1, _tiles(lambda x: 3 * x, 4)),
    "flags_two_inputs": (1, lambda x: np.exp(x[:N]) + x[N : 2 * N]),
    "flags_between_copies": (1, _tiles(lambda x: x, 2)),
    "flags_by_id": (1, _tiles(np.abs, 1)),
    "flags_sync_class": (1, _tiles(lambda x: np.maximum(x, 0.5), 1)),
    "flags_transitive": (1, lambda x: np.concatenate([x[:N], x[:N] + 2])),
    "barrier_all": (1, _tiles(lambda x: 2 * x, 1)),
    "barrier_chain": (1, _tiles(lambda x: ((x + 1) ** 2 - x) / 2, 1)),
    "barrier_in_place": (1, _tiles(lambda x: np.log(np.exp(x) + 1), 1)),
    "barrier_loads": (1, lambda x: np.concatenate([x[:128], x[256:384]])),
    "barrier_stores": (1, _two_stores),
    "barrier_atomic": (1, _tiles(lambda x: 1 + 2 * x, 1)),
    "barrier_parts": (1, _parts),
    "queue_single": (1, _tiles(lambda x: 2 * x, 3)),
    "queue_double": (1, _tiles(lambda x: 2 * x, 5)),
    "queue_two_inputs": (1, lambda x: x[: 2 * N] - x[4 * N : 6 * N]),
    "queue_preload": (1, lambda x: x[: 4 * N].reshape(2, 2, N).max(1).reshape(-1)),
    "queue_with_buffer": (1, _tiles(lambda x: np.sqrt(x * x + 1), 2)),
    "queue_bound": (1, _tiles(lambda x: x, 3)),
    "queue_chain": (1, lambda x: (x[: 2 * N].reshape(2, N) + x[: 2 * N : N, None]).reshape(-1)),
    "queue_tails": (1, lambda x: x[: 2 * N + 37]),
    "scalar_fill": (1, lambda x: np.arange(16, dtype=np.float32)),
    "scalar_to_vector": (1, lambda x: np.concatenate([x[:3], x[4:5], x[4:N]])),
    "scalar_from_vector": (1, lambda x: x[:N] - x[:64].max()),
    "scalar_register": (1, lambda x: x[:64].max(keepdims=True)),
    "scalar_neighbours": (1, lambda x: np.array([3, 1, 1, 1], np.float32)),
    "vector_cast": (1, _tiles(lambda x: (x.astype(np.float16) * np.float16(2)).astype(np.float32), 1)),
    "vector_select": (1, lambda x: np.minimum(x[:N], x[N : 2 * N])),
    "vector_gather": (1, lambda x: x[7::-1]),
    "vector_strides": (1, _strides),
    "vector_rows": (1, _rows),
    "vector_sort": (1, lambda x: np.sort(x[:32])[::-1]),
    "local_copies": (1, _tiles(lambda x: 2 * x, 1)),
    "through_global": (1, lambda x: x[8:N]),
    "cores_apart": (3, _tiles(lambda x: 2 * x, 3)),
    "cores_exchange": (3, _exchange(3)),
    "cores_rounds": (2, lambda x: x[: 2 * N] + 2),
    "cores_flag": (3, _exchange(3)),
    "cores_flag_rounds": (2, lambda x: x[: 2 * N] + 2),
    "cores_sum": (3, lambda x: np.stack([x[c * N : (c + 1) * N].reshape(4, 64).max(1)[0] for c in range(3)])),
    "cores_atomic": (3, _tiles(lambda x: 3 * x, 1)),
}


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def binary(source: Path) -> Binary:
    headers = {"mutants.h": HEADER, "mutant_kernels.h": (FOLDER / "mutant_kernels.h").read_text()}
    return device().load(device().compile(source.read_text(), source.name, [_OFF], headers))


def function(name: str) -> int:
    (source,) = (s for s in SOURCES if f"KERNEL({name})" in s.read_text())
    return binary(source).function(name)


@pytest.fixture(scope="module", autouse=True)
def logging() -> Iterator[None]:
    with device().with_options(log=True, timing=False, guard=False):  # mutants.h keeps its books in the host's memory
        yield


def run(name: str) -> Array:
    acl = device()
    pointers = [acl.malloc(4 * COUNT) for _ in range(3)]
    y = np.zeros(COUNT, np.float32)
    try:
        for pointer in pointers:
            acl.memcpy_h2d(pointer, X if pointer == pointers[0] else y)
        acl.launch(function(name), KERNELS[name][0], [*pointers])
        acl.memcpy_d2h(y, pointers[1])
    finally:
        for pointer in pointers:
            acl.free(pointer)
    return y


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernels_are_right(name: str) -> None:
    expected = KERNELS[name][1](X)
    got = run(name)[: expected.size]
    if name == "cores_sum":
        got = run(name)[: 3 * 8 : 8]
    np.testing.assert_allclose(got, expected, rtol=1e-4)
    assert not device().report()["unwritten"]


def check(counts: dict[str, Count], capsys: pytest.CaptureFixture[str]) -> Count:
    total = Count()
    for count in counts.values():
        total.add(count)
    with capsys.disabled():
        print(f"\n{table(counts)}")
    assert not total.false_reports, "\n".join(total.false_reports)
    assert total.reported_races >= 0.99 * total.races, "\n".join(total.missed)
    return total


def test_mutants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts: dict[str, Count] = {}
    for name in KERNELS:
        count = judge(device(), Subject(name, lambda n=name: run(n)), tmp_path / "calls")
        assert count is not None
        counts[name] = count
    total = check(counts, capsys)
    assert len(counts) >= 30
    assert total.races >= 100


#: Operators of the registry that are built without automatic synchronization, with a case of a few tiles.
REGISTRY = {
    "add": "x=float32[3,33] y=float32[3,33]",
    "dynamic_quant": "x=float16[2,3,33]",
    "flash_attention": "q=float16[2,17,20] k=float16[2,150,20] v=float16[2,150,20]",
    "grouped_matmul": "a=float16[33,40] b=float16[2,40,20] counts=int64[2]",
    "matmul": "a=float16[33,300] b=float16[300,20] bias=float16[20]",
    "matmul_gelu": "a=float16[33,40] b=float16[40,20]",
    "quant_matmul": "a=int8[33,600] b=int8[20,600] scale=int64[20]",
    "rms_norm": "x=float32[2,3,33] gamma=float32[33]",
    "rope": "x=float16[2,3,50] cos=float16[2,50] sin=float16[2,50]",
    "softmax": "x=float32[3,33]",
    "swiglu": "x=float32[3,66]",
}


def _operators(evaluator: Evaluator) -> Iterator[tuple[str, Operator, Case, Signature, bool]]:
    """Operators built without automatic synchronization, each with a small case, and whether it is known to race."""
    for name in operator_names():
        operator = load_operator(name)
        if _OFF in operator.kernel_options:
            signature = evaluator.describe(operator).signature
            tensors = dict(map(parse_tensor, REGISTRY[name].split()))
            case = build_case(signature, tensors, {}, {}, lambda i, a, o=operator: evaluator.infer_outputs(o, i, a))
            yield f"registry/{name}", operator, case, signature, False
    root = settings().cann_ops
    for path, rows in OPERATORS.items() if root is not None else ():
        assert root is not None
        operator = load_project(root / "src" / path)
        if _OFF in operator.kernel_options:
            signature = evaluator.describe(operator).signature
            runs = ((r, *run) for r in rows for run in r.runs())
            row, text, dtype = min(runs, key=lambda r: (bool(r[0].hazard), _elements(r[1])))
            tensor, _, scalar = dtype.partition("/")
            inputs, outputs = arguments(text, {"T": tensor, "S": scalar or tensor})
            case = Case(inputs, outputs, tuple(sorted(row.attrs.items())))
            yield path, replace(operator, settings=settings_of(row, signature)), case, signature, bool(row.hazard)
    devkit = settings().asc_devkit
    for kernel in DEVKIT_KERNELS if devkit is not None else ():
        assert devkit is not None
        yield kernel.entry, *direct_case(kernel, devkit), False


def _elements(text: str) -> int:
    return sum(t.nbytes for t in flatten(arguments(text, {"T": "float32", "S": "float32"})[0]))


@pytest.mark.battery
def test_mutants_of_operators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts: dict[str, Count] = {}
    wrong: list[str] = []
    with Evaluator(toolkit.virtual(), "ascend910b3", workers=1, build_dir=tmp_path / "build") as evaluator:
        for i, (name, operator, case, signature, races) in enumerate(_operators(evaluator)):
            built = OperatorSubject(device(), evaluator, operator, case, signature, tmp_path / f"k{i}")
            subject = Subject(name, built.run)
            told, count = "clean; too many accesses for the oracle to judge mutants", None
            try:
                if races:
                    told = judge_racy(device(), subject)
                else:
                    count = judge(device(), subject, tmp_path / f"calls{i}")
            except (AssertionError, DeviceError) as e:
                wrong.append(told := str(e))
            finally:
                built.close()
            if count is not None:
                counts[name] = count
            with capsys.disabled():
                print(f"\n{name}: {told if count is None else count}", flush=True)
    check(counts, capsys)
    assert not wrong, "\n".join(wrong)
    assert len(counts) >= 3
