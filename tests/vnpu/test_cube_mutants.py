"""The mutation battery over verified kernels with cube cores: the registry's, and samples of asc-devkit as they are.

Two of the registry's run in CI; ``make hazard-battery`` runs all, the samples where ``ASCENDOPT_ASC_DEVKIT`` names a
checkout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import test_cube_units
import test_mixed_units
from hazard_battery import HEADER, Count, OperatorSubject, Subject, judge, table
from test_hazard_mutations import REGISTRY, device

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator

CUBES = ["matmul", "quant_matmul", "grouped_matmul", "matmul_gelu", "flash_attention"]
IN_CI = ["quant_matmul", "matmul_gelu"]
#: Samples in which everything is ordered; those with more accesses than the oracle can judge are only found clean.
SAMPLES = [
    *(("cube", s) for s in test_cube_units.TABLE if not s.hazard),
    *(("mixed", s) for s in test_mixed_units.TABLE if not s.hazards),
]


@pytest.fixture(scope="module", autouse=True)
def logging() -> Iterator[None]:
    with device().with_options(log=True, timing=False, guard=False):  # mutants.h keeps its books in the host's memory
        yield


def judged(name: str, folder: Path) -> Count | None:
    with Evaluator(toolkit.virtual(), "ascend910b3", workers=1, build_dir=folder / "build") as evaluator:
        operator = load_operator(name)
        signature = evaluator.describe(operator).signature
        tensors = dict(map(parse_tensor, REGISTRY[name].split()))
        case = build_case(signature, tensors, {}, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
        built = OperatorSubject(device(), evaluator, operator, case, signature, folder / "kernel")
        try:
            return judge(device(), Subject(name, built.run), folder / "calls")
        finally:
            built.close()


@contextmanager
def launched(text: str, name: str, options: list[str], blocks: int, arguments: list[Any]) -> Iterator[Subject]:
    acl = device()
    binary = acl.load(acl.compile(f'#include "mutants.h"\n{text}', "sample.cpp", options, {"mutants.h": HEADER}))
    arrays = [x for x in arguments if isinstance(x, np.ndarray)]
    places = {id(x): acl.malloc(max(32, x.nbytes)) for x in arrays}

    def run() -> None:
        for x in arrays:
            acl.memcpy_h2d(places[id(x)], x.view(np.uint8))
        acl.launch(binary.function(name), blocks, [places.get(id(x), x) for x in arguments])
        acl.synchronize()

    try:
        yield Subject(name, run)
    finally:
        for place in places.values():
            acl.free(place)
        binary.unload()


def sample_judged(kind: str, sample: Any, checkout: Path, folder: Path) -> Count | None:
    arguments, _ = sample.make()
    if kind == "cube":
        name = "probe"
        text, options = test_cube_units.unit(sample, checkout / test_cube_units.SAMPLES / sample.folder, len(arguments))
    else:
        text, name, options = test_mixed_units.unit(sample, checkout / sample.folder, len(arguments))
    with launched(text, name, options, sample.blocks, arguments) as subject:
        return judge(device(), subject, folder / "calls")


def check(count: Count) -> None:
    assert count.reported_races >= 0.99 * count.races, count.missed
    assert not count.false_reports


@pytest.mark.parametrize("name", [n if n in IN_CI else pytest.param(n, marks=pytest.mark.battery) for n in CUBES])
def test_mutants_of_the_registry(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = judged(name, tmp_path)
    assert count is not None
    with capsys.disabled():
        print(f"\n{name}: {count}", flush=True)
    check(count)
    assert count.races


@pytest.mark.battery
def test_mutants_of_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = settings().asc_devkit
    if checkout is None:
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set")
    counts: dict[str, Count] = {}
    for kind, sample in SAMPLES:
        name = f"{Path(sample.folder).name}/{sample.scenario}/{sample.blocks}"
        count = sample_judged(kind, sample, checkout, tmp_path)
        with capsys.disabled():
            print(f"\n{name}: {count or 'clean; too many accesses for the oracle to judge mutants'}", flush=True)
        if count is not None:
            counts[name] = count
    with capsys.disabled():
        print("\n" + table(counts))
    for count in counts.values():
        check(count)
    assert sum(c.races for c in counts.values()) > 50
