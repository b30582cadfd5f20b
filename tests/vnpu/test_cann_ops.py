"""Operators of cann-ops, unmodified, against formulas written here: the tables of ``cann_ops/``, line by line.

Every case goes through the whole gate: several seeds and distributions, hazards, bounds, poisoned outputs. The sources
are found through ``ASCENDOPT_CANN_OPS``, a checkout of cann-ops; without it these tests are skipped.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import cann_ops
from cann_ops.table import Fault, Row, arguments, in_float64

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Argument, Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator, ParamDef, Signature
from ascendopt_tune.nouns.outcome import Hazard, Timed
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project


def _listed(name: str) -> Iterator[Any]:
    """What the tables hold under this name."""
    for module in pkgutil.iter_modules(cann_ops.__path__):
        yield from getattr(importlib.import_module(f"cann_ops.{module.name}"), name, ())


OPERATORS: dict[str, list[Row]] = {}
for _row in _listed("ROWS"):
    OPERATORS.setdefault(_row.path, []).append(_row)


def _runs() -> Iterator[Any]:
    for path, rows in OPERATORS.items():
        for row in rows:
            for case, dtype in row.runs():
                shape = re.sub(r"\W+", "-", case.split()[0]).strip("-")
                yield pytest.param(row, case, dtype, id=f"{path}-{dtype.replace('/', '-')}-{shape}")


def check(operator: Operator, case: Case, evaluator: Evaluator, signature: Signature) -> None:
    result = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline)
    outcome = result.outcome
    assert isinstance(outcome, Timed), f"{type(outcome).__name__}: {getattr(outcome, 'reason', outcome)}"
    assert result.checks >= 4
    assert outcome.profile.task_duration_us > 0


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    # The chip these operators were written on: several have tables for 40 vector cores and overrun them with more.
    build_dir = tmp_path_factory.mktemp("build")
    with Evaluator(toolkit.virtual(), "ascend910b3", workers=1, build_dir=build_dir) as opened:
        yield opened


def _sources() -> Path:
    root = settings().cann_ops
    if root is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    return root / "src"


def _case(row: Row | Fault, text: str, dtype: str) -> Case:
    tensor, _, scalar = dtype.partition("/")
    inputs, outputs = arguments(text, {"T": tensor, "S": scalar or tensor})
    return Case(inputs, outputs, tuple(sorted(row.attrs.items())))


def _domain(row: Row | Fault, signature: Signature) -> dict[str, dict[str, Any]]:
    domain: dict[str, dict[str, Any]] = {}
    for i, (low, high) in row.domain.items():
        domain[signature.inputs[i].name] = {"low": low, "high": high}
    for i, values in row.values.items():
        domain[signature.inputs[i].name] = {"values": np.ravel(values).tolist()}
    return domain


def settings_of(row: Row, signature: Signature) -> dict[str, Any]:
    """What op.toml would say of the operator."""
    return {
        "domain": _domain(row, signature),
        "in_place": [signature.inputs[i].name for i in row.in_place],
        "initial": {signature.outputs[i].name: value for i, value in row.initial.items()},
        "tolerance": row.tolerance,
    }


@pytest.mark.parametrize(("row", "case", "dtype"), tuple(_runs()))
def test_operator(row: Row, case: str, dtype: str, evaluator: Evaluator) -> None:
    operator = load_project(_sources() / row.path)
    signature = evaluator.describe(operator).signature
    operator = dataclasses.replace(operator, reference=in_float64(row.reference), settings=settings_of(row, signature))
    if row.hazard:
        checked = Gate(operator, _case(row, case, dtype), evaluator, signature=signature).evaluate(operator.baseline)
        assert isinstance(checked.outcome, Hazard)
        assert row.hazard in checked.outcome.reason
        options = (*operator.kernel_options, "--cce-auto-sync=on")
        operator = dataclasses.replace(operator, kernel_options=options)
    check(operator, _case(row, case, dtype), evaluator, signature)


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.path) for fault in _listed("FAULTS")])
def test_an_operator_is_left_out_for_a_fault_of_its_own(fault: Fault, evaluator: Evaluator) -> None:
    assert fault.path not in OPERATORS
    operator = load_project(_sources() / fault.path)
    signature = evaluator.describe(operator).signature
    reference = in_float64(fault.reference) if fault.reference is not None else None
    operator = dataclasses.replace(operator, reference=reference, settings={"domain": _domain(fault, signature)})
    case = _case(fault, fault.case, fault.dtype)
    outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert not isinstance(outcome, Timed)
    assert fault.text in outcome.reason


@pytest.mark.parametrize("path", OPERATORS)
def test_two_cases_at_least(path: str) -> None:
    cases = {(case, tuple(row.attrs.items())) for row in OPERATORS[path] for case, _ in row.runs()}
    assert len(cases) >= 2


def test_the_readme_counts_what_the_tables_hold() -> None:
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    found = re.search(r"\| cann-ops \| (\d+) of \d+ vector operators", readme)
    assert found is not None
    assert int(found.group(1)) == len(OPERATORS)
    with_hazard = {path for path, rows in OPERATORS.items() if any(row.hazard for row in rows)}
    left_out = {fault.path for fault in _listed("FAULTS")}
    assert f"finds a missing synchronization in {len(with_hazard)} of them" in readme
    assert f"{len(left_out)} more have a fault of their own" in readme


def _uses_column(case: Case, signature: Signature, column: int) -> bool:
    def fits(definition: ParamDef, argument: Argument) -> bool:
        tensors = argument if isinstance(argument, tuple) else (argument,)
        dtype = definition.dtypes[column]
        return all(t.dtype == dtype for t in tensors if isinstance(t, TensorSpec))

    pairs = [*zip(signature.inputs, case.inputs, strict=False), *zip(signature.outputs, case.outputs, strict=False)]
    return all(fits(definition, argument) for definition, argument in pairs)


@pytest.mark.parametrize("path", OPERATORS)
def test_every_dtype_column(path: str, evaluator: Evaluator) -> None:
    signature = evaluator.describe(load_project(_sources() / path)).signature
    cases = [_case(row, case, dtype) for row in OPERATORS[path] for case, dtype in row.runs()]
    left_out = {column for row in OPERATORS[path] for column in row.columns_left_out}
    for column in range(len(signature.inputs[0].dtypes)):
        if column not in left_out:
            dtypes = [f"{p.name}: {p.dtypes[column]}" for p in (*signature.inputs, *signature.outputs)]
            assert any(_uses_column(case, signature, column) for case in cases), f"column {column}: {dtypes}"
