"""The gate of a small operator, for tests that attack it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hostile import DATA, SPEC

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.sources.project import load_project


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "of cann-ops's operators in the battery only each N-th, from the first or from number M (N or N:M)"
    parser.addoption("--each", default="1", metavar="N[:M]", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    step, _, first = config.getoption("--each").partition(":")
    others = [i for i in items if "wrong_variants_of_cann_ops" in i.nodeid]
    dropped = set(others) - set(others[int(first or 0) :: int(step)])
    items[:] = [i for i in items if i not in dropped]


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with Evaluator(
        toolkit.virtual(),
        limits=ProcessLimits(run_s=3, memory_bytes=2 << 30),
        build_dir=tmp_path_factory.mktemp("build"),
    ) as evaluator:
        gate = Gate(load_project(DATA / "twice", ["--cce-auto-sync=off"]), Case((SPEC,), (SPEC,)), evaluator)
        gate.trials()
        yield gate
