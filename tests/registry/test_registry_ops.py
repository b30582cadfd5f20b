"""The registry's operators: what they compute, on aligned, unaligned, tiny and long shapes of every dtype.

Every row of the table is one evaluation in the confined worker: compiled, launched twice on random inputs with poisoned
outputs, hazards and memory checked, outputs compared with the operator's reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.device.launch import Arrays, DeviceLaunch
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.errors import HostProgramError
from ascendopt_tune.evaluate.evaluator import EvaluateRequest, EvaluationResult, Evaluator, GateTrial
from ascendopt_tune.evaluate.inputs import make_inputs
from ascendopt_tune.evaluate.protocol import ArrayArgument, save_array
from ascendopt_tune.evaluate.reference import expected_outputs
from ascendopt_tune.nouns.case import AttrValue, Case
from ascendopt_tune.nouns.chip import DEFAULT_CHIP, load_chip
from ascendopt_tune.nouns.clocks import plausible
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.arguments import build_case, collect, parse_tensor
from ascendopt_tune.sources.registry import load_operator, operator_names

CHIP = load_chip(DEFAULT_CHIP)
_TRIALS = (("normal", 0xFF), ("uniform", 0xA5))  # distribution of the inputs, byte that outputs hold before the launch


@dataclass(frozen=True)
class Row:
    """One case: ``inputs`` as ``name=dtype[shape]``, separated by blanks."""

    op: str
    inputs: str
    attrs: Mapping[str, AttrValue] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.op} {self.inputs}"


def _rows(op: str, dtypes: Sequence[str], *inputs: str, **attrs: AttrValue) -> list[Row]:
    """Every dtype with every text of inputs; ``T`` stands for the dtype."""
    return [Row(op, text.replace("T[", f"{dtype}["), attrs) for dtype in dtypes for text in inputs]


_HALF_FLOAT = ("float16", "float32")
_FLOATS = ("float16", "float32", "bfloat16")
_TABLE = [
    *_rows("add", (*_HALF_FLOAT, "int32"), "x=T[4,64] y=T[4,64]", "x=T[3,33] y=T[3,33]", "x=T[1] y=T[1]"),
    *_rows("silu", _FLOATS, "x=T[4,64]", "x=T[3,33]", "x=T[1]"),
    *_rows("swiglu", _FLOATS, "x=T[4,128]", "x=T[3,66]", "x=T[1,2]", "x=T[2,8200]"),
    *_rows(
        "rms_norm", _FLOATS, "x=T[4,64] gamma=T[64]", "x=T[2,3,33] gamma=T[33]", "x=T[1,1] gamma=T[1]", epsilon=1e-5
    ),
    *_rows("rms_norm", _FLOATS, "x=T[2,12301] gamma=T[12301]"),
    *_rows("layer_norm", _HALF_FLOAT, "x=T[4,64] gamma=T[64] beta=T[64]", "x=T[3,33] gamma=T[33] beta=T[33]"),
    *_rows("layer_norm", _HALF_FLOAT, "x=T[1,1] gamma=T[1] beta=T[1]", epsilon=1e-3),
    *_rows("softmax", _HALF_FLOAT, "x=T[4,64]", "x=T[3,33]", "x=T[1,1]", "x=T[2,20001]"),
    *_rows("reduce_sum_last", _HALF_FLOAT, "x=T[4,64]", "x=T[3,5,33]", "x=T[1]", "x=T[2,9001]"),
    *_rows("dynamic_quant", ("float16", "bfloat16"), "x=T[4,64]", "x=T[2,3,33]", "x=T[1,1]", "x=T[2,9001]"),
    *_rows("foreach_mul_scalar", _HALF_FLOAT, "x.0=T[4,64] x.1=T[128] scalar=float32[1]", "x.0=T[1] scalar=float32[1]"),
    *_rows("foreach_mul_scalar", _HALF_FLOAT, "x.0=T[3,33] x.1=T[1] x.2=T[2,2,7] scalar=float32[1]"),
    *_rows("rope", _FLOATS, "x=T[3,4,64] cos=T[3,64] sin=T[3,64]", "x=T[2,3,50] cos=T[2,50] sin=T[2,50]"),
    *_rows("rope", _FLOATS, "x=T[1,1,2] cos=T[1,2] sin=T[1,2]"),
    *_rows("moe_gather_rows", _FLOATS, "x=T[8,64] index=int32[12]", "x=T[5,33] index=int32[7]"),
    *_rows("moe_gather_rows", _FLOATS, "x=T[1,1] index=int32[1]", "x=T[3,9001] index=int32[4]"),
    *_rows("masked_fill", _HALF_FLOAT, "x=T[4,64] mask=bool[4,64]", "x=T[3,33] mask=bool[3,33]", value=-3.5),
    *_rows("masked_fill", _HALF_FLOAT, "x=T[1] mask=bool[1]"),
    *_rows(
        "matmul", ("float16", "bfloat16"), "a=T[160,96] b=T[96,288]", "a=T[33,300] b=T[300,17]", "a=T[1,1] b=T[1,1]"
    ),
    *_rows("matmul", ("float16",), "a=T[160,96] b=T[96,288] bias=T[288]", "a=T[33,300] b=T[300,17] bias=T[17]"),
    *_rows("matmul", ("bfloat16",), "a=T[20,40] b=T[40,517] bias=float32[517]", "a=T[1,1] b=T[1,1] bias=float32[1]"),
    *_rows("matmul", ("float16", "bfloat16"), "a=T[33,300] b=T[277,300]", "a=T[1,1] b=T[1,1]", transpose_b=True),
    *_rows("matmul", ("float16",), "a=T[160,96] b=T[517,96] bias=T[517]", transpose_b=True),
    *_rows("matmul", ("bfloat16",), "a=T[33,70] b=T[17,70] bias=float32[17]", transpose_b=True),
    *_rows(
        "matmul_gelu",
        ("float16", "bfloat16"),
        "a=T[160,96] b=T[96,288]",
        "a=T[33,300] b=T[300,17]",
        "a=T[1,1] b=T[1,1]",
    ),
    *_rows(
        "flash_attention",
        ("float16", "bfloat16"),
        "q=T[3,150,40] k=T[3,200,40] v=T[3,200,40]",
        "q=T[2,1,64] k=T[2,261,64] v=T[2,261,64]",
        scale=0.15,
        causal=True,
    ),
    *_rows("flash_attention", ("float16", "bfloat16"), "q=T[2,33,17] k=T[2,7,17] v=T[2,7,17]", scale=0.25),
    *_rows("flash_attention", ("float16", "bfloat16"), "q=T[1,1,1] k=T[1,1,1] v=T[1,1,1]"),
    *_rows("quant_matmul", ("int8",), "a=T[160,96] b=T[288,96] scale=int64[288]", "a=T[1,1] b=T[1,1] scale=int64[1]"),
    *_rows("quant_matmul", ("int8",), "a=T[33,700] b=T[17,700] scale=int64[17]"),
    *_rows("grouped_matmul", ("float16", "bfloat16"), "a=T[160,96] b=T[4,96,288] counts=int64[4]"),
    *_rows("grouped_matmul", ("float16", "bfloat16"), "a=T[33,300] b=T[5,300,17] counts=int64[5]"),
    *_rows("grouped_matmul", ("float16", "bfloat16"), "a=T[1,1] b=T[1,1,1] counts=int64[1]"),
]


@dataclass
class Bench:
    """One evaluator for all tests of this file; operators are loaded once."""

    evaluator: Evaluator
    operators: dict[str, Operator] = field(default_factory=dict)

    def operator(self, name: str) -> Operator:
        if name not in self.operators:
            self.operators[name] = load_operator(name)
        return self.operators[name]

    def case(self, row: Row) -> Case:
        operator = self.operator(row.op)
        signature = self.evaluator.describe(operator).signature
        tensors = dict(map(parse_tensor, row.inputs.split()))
        return build_case(
            signature, tensors, dict(row.attrs), {}, lambda i, a: self.evaluator.infer_outputs(operator, i, a)
        )

    def submit(self, row: Row, pair: Pair | None = None) -> Future[EvaluationResult]:
        """Starts the evaluation of ``pair`` (default: the baseline) on the row's case."""
        operator, case = self.operator(row.op), self.case(row)
        names = tuple(p.name for p in self.evaluator.describe(operator).signature.inputs)
        trials = []
        for seed, (distribution, poison) in enumerate(_TRIALS):
            inputs = make_inputs(case, names, operator.settings, distribution, seed)
            expected = expected_outputs(operator, case, inputs)
            trials.append(GateTrial(seed, distribution, self._save(inputs), self._save(expected), poison))
        pair = pair or operator.baseline
        request = EvaluateRequest(operator, pair, case, DEFAULT_CHIP, trials=tuple(trials), measure=False)
        return self.evaluator.submit(request)

    def _save(self, arguments: Sequence[Arrays]) -> tuple[ArrayArgument, ...]:
        folder = self.evaluator.folder
        count = len(list(folder.iterdir()))

        def one(i: int, arrays: Arrays) -> ArrayArgument:
            if isinstance(arrays, tuple):
                return tuple(save_array(folder / f"a{count}.{i}.{k}", a) for k, a in enumerate(arrays))
            return None if arrays is None else save_array(folder / f"a{count}.{i}", arrays)

        return tuple(one(i, a) for i, a in enumerate(arguments))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    build_dir = tmp_path_factory.mktemp("build")
    with Evaluator(toolkit.find("virtual"), build_dir=build_dir) as evaluator:
        yield Bench(evaluator)


@pytest.fixture(scope="module")
def started(bench: Bench, request: pytest.FixtureRequest) -> dict[Row, Future[EvaluationResult]]:
    """The rows of the selected tests, all started at once, so that no worker of the evaluator is ever idle."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    selected = {str(p["row"]) for p in parameters if "row" in p}
    return {row: bench.submit(row) for row in _TABLE if str(row) in selected}


@pytest.mark.parametrize("row", _TABLE, ids=str)
def test_results_match_the_reference(row: Row, started: dict[Row, Future[EvaluationResult]]) -> None:
    result = started[row].result()
    assert isinstance(result.outcome, Timed), result.outcome
    assert not result.hazards
    assert result.habits.slack == {}


#: Of every operator the first row, which runs on several cores.
_FIRST = [next(row for row in _TABLE if row.op == name) for name in operator_names()]


@pytest.mark.parametrize("row", _FIRST, ids=str)
def test_cores_on_several_threads_leave_what_they_leave_in_turn(
    row: Row, started: dict[Row, Future[EvaluationResult]], bench: Bench
) -> None:
    built, operator, case = started[row].result(), bench.operator(row.op), bench.case(row)
    signature, acl = bench.evaluator.describe(operator).signature, Acl(bench.evaluator.toolkit)
    names = tuple(p.name for p in signature.inputs), tuple(p.name for p in signature.outputs)
    inputs = make_inputs(case, names[0], operator.settings, "normal", 0)
    assert built.tiling is not None
    assert built.binary_path is not None
    seen = []
    for threads in (1, 2):
        with (
            acl.load(Path(built.binary_path).read_bytes()) as binary,
            DeviceLaunch(acl, case, names, built.tiling.data, built.tiling.workspace_bytes) as launch,
        ):
            launch.load(inputs, 0xFF)
            launch.run(binary.function(built.entry), built.block_dim, options=LaunchOptions(threads=threads))
            acl.synchronize()
            report = acl.report()
            in_groups = {"aic_time_us", "aiv_time_us"} <= report["profile"].keys()  # those run on one thread
            beside = threads > 1 and built.block_dim > 1 and not in_groups
            assert acl.cores_beside() == (built.block_dim if beside else 0)
            assert not launch.damage(inputs)
            outputs = [b.tobytes() for a in launch.outputs() for b in (a if isinstance(a, tuple) else (a,))]
            seen.append((outputs, report))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", operator_names())
def test_checks_change_neither_results_nor_times(name: str, bench: Bench) -> None:
    """In the operator's own first case, built as it is built: with automatic synchronization where it asks for that."""
    operator = bench.operator(name)
    example = operator.settings["case"][0]
    inputs = " ".join(f"{k}={v}" for k, v in example["inputs"].items())
    case = bench.case(Row(name, inputs, example.get("attrs", {})))
    built = bench.evaluator.evaluate(EvaluateRequest(operator, operator.baseline, case, DEFAULT_CHIP))
    signature, acl = bench.evaluator.describe(operator).signature, Acl(bench.evaluator.toolkit)
    names = tuple(p.name for p in signature.inputs), tuple(p.name for p in signature.outputs)
    given = make_inputs(case, names[0], operator.settings, "normal", 0)
    assert built.tiling is not None
    assert built.binary_path is not None
    seen = []
    with (
        acl.load(Path(built.binary_path).read_bytes()) as binary,
        DeviceLaunch(acl, case, names, built.tiling.data, built.tiling.workspace_bytes) as launch,
    ):
        for checks in (True, False):
            launch.load(given, 0xFF)
            launch.run(binary.function(built.entry), built.block_dim, options=LaunchOptions(hazards=checks))
            acl.synchronize()
            outputs = [b.tobytes() for a in launch.outputs() for b in (a if isinstance(a, tuple) else (a,))]
            profile = acl.report()["profile"]
            assert acl.replay([{}]) == [pytest.approx(profile["task_duration_us"], rel=1e-9)]
            seen.append((outputs, json.dumps(profile, sort_keys=True), acl.replay(plausible(CHIP, 3))))
    assert seen[0] == seen[1]


def test_the_table_has_every_operator_in_every_dtype(bench: Bench) -> None:
    """An operator or dtype column that is added has to be added here."""
    tested = {(row.op, parse_tensor(row.inputs.split()[0])[1].dtype) for row in _TABLE}
    assert len(operator_names()) >= 10
    for name in operator_names():
        first = bench.evaluator.describe(bench.operator(name)).signature.inputs[0]
        assert {(name, dtype) for dtype in first.dtypes} <= tested


@pytest.mark.parametrize("name", operator_names())
def test_op_toml_agrees_with_the_definition(name: str, bench: Bench) -> None:
    """Names, domains and example cases of ``op.toml`` fit the operator; its folder is complete."""
    operator = bench.operator(name)
    signature = bench.evaluator.describe(operator).signature
    assert operator.settings["name"] == operator.name == name
    assert operator.settings["entry"] == operator.entry
    assert operator.settings["torch_op"] == f"ascendopt::{name}"
    assert operator.settings["summary"]
    assert operator.reference is not None
    assert (operator.root / "README.md").read_text().startswith(f"# {name}\n")
    assert set(operator.settings.get("domain", {})) <= {p.name for p in signature.inputs}
    dtypes = {dtype for p in signature.outputs for dtype in p.dtypes}
    assert set(operator.settings["tolerance"]) <= dtypes
    assert operator.settings["case"]
    for example in operator.settings["case"]:
        inputs = " ".join(f"{k}={v}" for k, v in example["inputs"].items())
        assert all(bench.case(Row(name, inputs, example.get("attrs", {}))).outputs)


_LONG_LIST = " ".join(f"x.{i}=float16[1]" for i in range(65))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Row("add", "x=float16[4,8] y=float16[4,9]"), "x has 32 elements and y has 36"),
        (Row("swiglu", "x=float16[4,9]"), "last axis of x has 9 elements"),
        (Row("rms_norm", "x=float16[4,8] gamma=float16[9]"), "gamma has 9 elements"),
        (Row("layer_norm", "x=float32[1,9000] gamma=float32[9000] beta=float32[9000]"), "a row of 9000 elements needs"),
        (Row("dynamic_quant", "x=float16[1,30000]"), "a row of 30000 elements needs"),
        (Row("foreach_mul_scalar", f"{_LONG_LIST} scalar=float32[1]"), "more than 64 tensors"),
        (Row("rope", "x=float16[4,2,9] cos=float16[4,9] sin=float16[4,9]"), "even D"),
        (Row("rope", "x=float16[4,2,8] cos=float16[3,8] sin=float16[4,8]"), "have to be [4, 8]"),
    ],
    ids=lambda value: value.op if isinstance(value, Row) else None,
)
def test_tiling_refuses_what_the_kernel_cant_do(row: Row, reason: str, bench: Bench) -> None:
    operator = bench.operator(row.op)
    signature = bench.evaluator.describe(operator).signature
    inputs = tuple(collect(signature.inputs, dict(map(parse_tensor, row.inputs.split())), "input", signature.op_type))
    # The shape functions don't check what the tiling function does, so the outputs are as the first input.
    outputs = tuple(inputs[0] for _ in signature.outputs)
    attrs = tuple((a.name, a.default) for a in signature.attrs if a.default is not None)
    request = EvaluateRequest(operator, operator.baseline, Case(inputs, outputs, attrs), DEFAULT_CHIP)
    with pytest.raises(HostProgramError, match=re.escape(reason)):
        bench.evaluator.tile(request)


@pytest.mark.parametrize(
    ("row", "old", "new"),
    [
        (Row("add", "x=float16[64,512] y=float16[64,512]"), "BUFFER_NUM = 2", "BUFFER_NUM = 1"),
        (Row("softmax", "x=float32[96,40]"), "TILE_LENGTH = 4096", "TILE_LENGTH = 80"),
        (Row("rms_norm", "x=float16[96,72] gamma=float16[72]"), "BLOCK_BYTES = 32", "BLOCK_BYTES = 512"),
    ],
    ids=lambda value: value.op if isinstance(value, Row) else value,
)
def test_the_tiling_program_alone_changes_the_launch(row: Row, old: str, new: str, bench: Bench) -> None:
    """What Stage I relies on: another constant makes other tiling data, and the same kernel stays right with it."""
    operator = bench.operator(row.op)
    path = f"op_host/{row.op}.cpp"
    text = operator.baseline.tiling[path]
    assert old in text
    changed = operator.baseline.with_tiling(path, text.replace(old, new))
    before, after = bench.submit(row).result(), bench.submit(row, changed).result()
    assert isinstance(after.outcome, Timed), after.outcome
    assert before.tiling is not None
    assert after.tiling is not None
    assert before.tiling.data != after.tiling.data
    assert "kernel" in after.reused
