"""What the batteries of the gate run on: operators with a case, and a judge of variants.

A variant that the gate accepts is no hole when it does what the original does: the same machine code and tiling, or the
same bits on the inputs of two more seeds, in all trials, compared exactly.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)

from ascendopt_tune.build.elf import read
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Checked, Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import Outcome, Timed
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.project import load_project
from ascendopt_tune.sources.registry import load_operator

_MOST_ELEMENTS = 1 << 17  # of a tensor of cann-ops's cases: hundreds of variants take minutes, not hours
_SEEDS = (1 << 20, 1 << 21)  # of the inputs on which an accepted variant has to give the original's bits


@dataclass(frozen=True)
class Subject:
    """An operator of the registry (``inputs``: its case, as on the command line), or of cann-ops (``row``).

    ``constants``: what in the tiling program makes the case take several loops and tiles per core.
    """

    operator: str
    inputs: str = ""
    constants: tuple[tuple[str, str], ...] = ()
    row: Any = None

    def __str__(self) -> str:
        return f"{self.operator} {self.inputs}"


REGISTRY = (
    Subject("add", "x=float16[5,1003] y=float16[5,1003]", (("TILE_LENGTH = 2048", "TILE_LENGTH = 32"),)),
    Subject("dynamic_quant", "x=float16[401,33]", (("TILE_LENGTH = 4096", "TILE_LENGTH = 128"),)),
    Subject("foreach_mul_scalar", "x.0=float16[3,33] x.1=float16[1] x.2=float16[40,50] scalar=float32[1]",
            (("UB_RESERVED = 4096", "UB_RESERVED = 196000"),)),
    Subject("layer_norm", "x=float16[150,133] gamma=float16[133] beta=float16[133]"),
    Subject("masked_fill", "x=float16[25,1003] mask=bool[25,1003]", (("TILE_LENGTH = 4096", "TILE_LENGTH = 128"),)),
    Subject("moe_gather_rows", "x=float16[50,33] index=int32[150]", (("TILE_BYTES = 16 * 1024", "TILE_BYTES = 64"),)),
    Subject("reduce_sum_last", "x=float32[337,133]",
            (("TILE_LENGTH = 4096", "TILE_LENGTH = 64"), ("ROWS_PER_LOOP = 128", "ROWS_PER_LOOP = 3"))),
    Subject("rms_norm", "x=bfloat16[401,133] gamma=bfloat16[133]", (("PER_LOOP = 4095", "PER_LOOP = 2"),)),
    Subject("rms_norm", "x=float32[4,12301] gamma=float32[12301]"),
    Subject("rope", "x=float16[30,4,50] cos=float16[30,50] sin=float16[30,50]"),
    Subject("silu", "x=float16[5,1003]", (("UB_RESERVED = 8 * 1024", "UB_RESERVED = 191 * 1024"),)),
    Subject("softmax", "x=float16[401,33]", (("TILE_LENGTH = 4096", "TILE_LENGTH = 128"),)),
    Subject("softmax", "x=float32[4,20001]"),
    Subject("swiglu", "x=float16[401,66]", (("TILE_LENGTH = 2048", "TILE_LENGTH = 64"),)),
    Subject("quant_matmul", "a=int8[97,300] b=int8[77,300] scale=int64[77]",
            (("BASE_M = 128", "BASE_M = 32"), ("BASE_N = 256", "BASE_N = 48"), ("BASE_K = 128", "BASE_K = 64"))),
    Subject("matmul_gelu", "a=float16[97,300] b=float16[300,77]",
            (("BASE_M = 128", "BASE_M = 32"), ("BASE_N = 128", "BASE_N = 48"))),
    Subject("grouped_matmul", "a=float16[97,300] b=float16[5,300,77] counts=int64[5]",
            (("BASE_M = 128", "BASE_M = 16"), ("BASE_N = 256", "BASE_N = 48"), ("BASE_K = 64", "BASE_K = 32"))),
    Subject("flash_attention", "q=bfloat16[2,77,40] k=bfloat16[2,133,40] v=bfloat16[2,133,40]",
            (("BLOCK_Q = 128", "BLOCK_Q = 32"),)),
)  # fmt: skip


def cann_ops() -> list[Subject]:
    """Operators of cann-ops with a formula (tests/vnpu/cann_ops), each with its last case: one with a tail."""
    if settings().cann_ops is None:
        return []
    folder = str(Path(__file__).parents[1] / "vnpu")
    if folder not in sys.path:
        sys.path.append(folder)
    tables = importlib.import_module("cann_ops")
    found: dict[str, Subject] = {}
    for module in pkgutil.iter_modules(tables.__path__):
        for row in getattr(importlib.import_module(f"cann_ops.{module.name}"), "ROWS", ()):
            case, dtype = row.runs()[-1]
            if not row.hazard and _elements(case) <= _MOST_ELEMENTS:
                found[row.path] = Subject(row.path, f"{dtype} {case}", row=row)
    return list(found.values())


def _elements(case: str) -> int:
    """Of the largest tensor."""
    shapes = re.findall(r"\[([\d,]+)\]", case)
    return max((math.prod(map(int, s.split(","))) for s in shapes), default=0)


class Bench:
    """The gate of one subject; raises AssertionError when the original doesn't pass it."""

    def __init__(self, subject: Subject, evaluator: Evaluator) -> None:
        self.subject, self._evaluator = subject, evaluator
        self.operator, self.case = self._load()
        signature = evaluator.describe(self.operator).signature
        self.gate = Gate(self.operator, self.case, evaluator, signature=signature)
        self.baseline = self.gate.evaluate(self.operator.baseline)
        assert isinstance(self.baseline.outcome, Timed), self.baseline.outcome

    def _load(self) -> tuple[Operator, Case]:
        subject, evaluator = self.subject, self._evaluator
        if subject.row is None:
            operator = load_operator(subject.operator)
            host = f"op_host/{subject.operator}.cpp"
            text = operator.baseline.tiling[host]
            for old, new in subject.constants:
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            operator = replace(operator, baseline=operator.baseline.with_tiling(host, text))
            signature = evaluator.describe(operator).signature
            return operator, build_case(
                signature, dict(map(parse_tensor, subject.inputs.split())), {}, {},
                lambda inputs, attrs: evaluator.infer_outputs(operator, inputs, attrs),
            )  # fmt: skip
        table = importlib.import_module("cann_ops.table")
        tested = importlib.import_module("test_cann_ops")
        root = settings().cann_ops
        assert root is not None
        operator = load_project(root / "src" / subject.operator)
        signature = evaluator.describe(operator).signature
        case, dtype = subject.row.runs()[-1]
        made: Mapping[str, Any] = tested.settings_of(subject.row, signature)
        operator = replace(operator, reference=table.in_float64(subject.row.reference), settings=made)
        return operator, tested._case(subject.row, case, dtype)

    @property
    def tiling_key(self) -> int | None:
        return self.baseline.tiling.tiling_key if self.baseline.tiling is not None else None

    def judge(self, pairs: Mapping[int, Pair]) -> Iterator[tuple[int, Outcome, str]]:
        """(number, outcome, why an accepted pair isn't wrong)."""
        for number, checked in self.gate.evaluate_many(pairs):
            accepted = isinstance(checked.outcome, Timed)
            yield number, checked.outcome, self._same(pairs[number], checked) if accepted else ""

    def _same(self, pair: Pair, checked: Checked) -> str:
        if self._launch(checked) == self._launch(self.baseline):
            return "the same machine code and tiling"
        outcomes = [gate.evaluate(pair).outcome for gate in self._exact]
        return "the same bits" if all(isinstance(o, Timed) for o in outcomes) else ""

    @cached_property
    def _exact(self) -> list[Gate]:
        exact = {"rtol": 0, "atol": 0, "ratio": 0}
        dtypes = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
        changed = {**self.operator.settings, "tolerance": dict.fromkeys(dtypes, exact)}
        operator = replace(self.operator, reference=None, settings=changed)
        return [Gate(operator, self.case, self._evaluator, signature=self.gate.signature, seed=s) for s in _SEEDS]

    @staticmethod
    def _launch(checked: Checked) -> tuple[object, ...]:
        code = tuple(read(checked.binary).section(name) for name in (".text", ".rodata", ".data"))
        return code, checked.tiling
