"""Host programs: compile, describe, infer shapes, tile; what is refused and how it is told."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from host_examples import HOST_CPP, write_operator, write_shared_tiling

from ascendopt_tune.build import host
from ascendopt_tune.build.host import HostProgram, compile_host, dtype_column
from ascendopt_tune.build.host_signature import attribute_values
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.errors import CaseError, HostProgramError
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import Chip, load_chip
from ascendopt_tune.nouns.operator import AttrDef, Operator, Signature
from ascendopt_tune.sources.project import load_project

X = TensorSpec("float32", (4, 8))
K = TensorSpec("int64", (2,))


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return load_project(write_operator(tmp_path_factory.mktemp("op")))


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def program(operator: Operator, out_dir: Path) -> Iterator[HostProgram]:
    program = compile_host(operator, operator.baseline, virtual(), out_dir)
    yield program
    program.close()


@pytest.fixture(scope="module")
def chip() -> Chip:
    return load_chip("ascend910b2")


def test_describe_gives_the_definition(program: HostProgram) -> None:
    signature = program.describe().signature
    assert signature.to_text() == (
        "ScaleRows(x: float32|float16, k?: int64, more[]: float32, *, scale: float = 0.1, axes: list_int) -> y"
    )
    assert [p.value_depend for p in signature.inputs] == [False, True, False]
    assert signature.outputs[0].dtypes == ("float32", "bfloat16")
    assert signature.has_infer_shape
    assert signature.has_tiling


def test_tiling_data_of_a_shared_header_are_the_pairs(tmp_path: Path, out_dir: Path) -> None:
    """Though the header lies where it lies: a list that the pair makes shorter is shorter for kernel and host."""
    operator = load_project(write_shared_tiling(tmp_path)[0])
    header = "shared/rows/more/data.h"
    text = operator.baseline.tiling[header]
    shorter = operator.baseline.with_tiling(header, text.replace("(uint32_t, 3, list)", "(uint32_t, 2, list)"))
    for pair, count in ((operator.baseline, 3), (shorter, 2)):
        with closing(compile_host(operator, pair, virtual(), out_dir)) as program:
            (found,) = [s for s in program.describe().tiling_structs if s.name == "ScaleRowsTilingData"]
            assert {f.name: f.count for f in found.fields}["list"] == count


def test_tiling_structs_are_laid_out_as_the_kernel_reads_them(program: HostProgram) -> None:
    description = program.describe()
    by_name = {s.name: s for s in description.tiling_structs}
    layout = [(f.name, f.c_type, f.count, f.offset) for f in by_name["ScaleRowsTilingData"].fields]
    assert layout == [
        ("first", "uint8_t", 0, 0),
        ("rowsPH", "uint8_t", 7, 1),
        ("rows", "uint64_t", 0, 8),
        ("half", "uint16_t", 0, 16),
        ("listPH", "uint8_t", 2, 18),
        ("list", "uint32_t", 3, 20),
        ("scale", "float", 0, 32),
        ("innerPH", "uint8_t", 4, 36),
        ("inner", "Inner", 0, 40),
        ("last", "int16_t", 0, 48),
        ("ScaleRowsTilingDataPH", "uint8_t", 6, 50),
    ]
    assert (by_name["Inner"].nested, by_name["Inner"].size) == (True, 8)
    assert (by_name["SevenTilingData"].key, by_name["SevenTilingData"].size) == (7, 8)
    assert description.default_struct == by_name["ScaleRowsTilingData"]
    order = [s.name for s in description.tiling_structs]
    assert order.index("Inner") < order.index("ScaleRowsTilingData")


def test_tiling_returns_the_decisions_and_the_bytes(program: HostProgram, chip: Chip) -> None:
    case = Case((X, None, (X, X)), (X,), (("axes", (5, 6)),))
    result = program.tiling(case, chip)
    assert (result.block_dim, result.tiling_key, result.workspace_bytes, result.schedule_mode) == (48, 0, 96, 0)
    half = (196608 - 256) // 256  # the unified buffer as tiling functions see it
    expected = struct.pack("<B7xQH2x3If4xB3xIh6x", 1, 4, half, 1, 2, 9, np.float32(0.1), 0, 205, -1)
    assert result.data == expected


def test_values_reach_the_tiling_function(program: HostProgram, chip: Chip) -> None:
    case = Case((TensorSpec("float16", (4, 8)), K, ()), (TensorSpec("bfloat16", (4, 8)),), (("axes", (1,)),))
    result = program.tiling(case, chip, {1: np.array([10, 11], dtype=np.int64)})
    assert result.tiling_key == 7
    assert struct.unpack_from("<h", result.data, 48) == (11,)


def test_infer_shape_uses_the_operators_function_and_the_dtype_column(program: HostProgram) -> None:
    inputs = (TensorSpec("float16", (4, 8)), None, ())
    assert program.infer_shape(inputs, {"axes": (1,)}) == (TensorSpec("bfloat16", (4, 8, 2)),)


def test_dtype_column(program: HostProgram) -> None:
    signature = program.describe().signature
    assert dtype_column(signature, (TensorSpec("float16", (1,)), None, ())) == 1
    with pytest.raises(CaseError, match="no version for x: int8"):
        dtype_column(signature, (TensorSpec("int8", (1,)), None, ()))
    with pytest.raises(CaseError, match="takes 3 inputs, 1 were given"):
        dtype_column(signature, (X,))


@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ({}, "needs attribute axes"),
        ({"axes": (1,), "dim": 1}, "no attribute 'dim'"),
        ({"axes": (1.5,)}, "not of type list_int"),
        ({"axes": (1,), "scale": "x"}, "not of type float"),
    ],
)
def test_wrong_attributes(program: HostProgram, chip: Chip, attrs: dict[str, object], text: str) -> None:
    with pytest.raises(CaseError, match=text):
        program.tiling(Case((X, None, ()), (X,), tuple(attrs.items())), chip)  # type: ignore[arg-type]


def test_an_attribute_whose_definition_names_no_type() -> None:
    """ops-transformer's block_sparse_attention_grad: what it is given says what it is."""
    signature = Signature("Op", (), (), (AttrDef("layout", "", ()), AttrDef("sizes", "", ())))
    assert attribute_values(signature, {"layout": "BNSD", "sizes": (1, 2)}) == [("str", "BNSD"), ("list_int", (1, 2))]
    with pytest.raises(CaseError, match="needs attribute layout"):
        attribute_values(signature, {"sizes": (1,)})


def test_a_refusal_carries_what_the_program_printed(
    program: HostProgram, chip: Chip, capfd: pytest.CaptureFixture[str]
) -> None:
    x = TensorSpec("float32", (13, 8))
    with pytest.raises(HostProgramError, match=r"refuses .*float32\[13,8\].*: thirteen rows are not supported"):
        program.tiling(Case((x, None, ()), (x,), (("axes", (1,)),)), chip)
    assert capfd.readouterr().out == ""


def test_a_compile_error_names_the_users_file_and_line(operator: Operator, out_dir: Path) -> None:
    broken = HOST_CPP.replace("data.set_first(1);", "data.set_frist(1);")
    line = 1 + broken[: broken.index("set_frist")].count("\n")
    pair = operator.baseline.with_tiling("op_host/scale_rows.cpp", broken)
    file = operator.root / "op_host" / "scale_rows.cpp"
    with pytest.raises(HostProgramError, match=rf"doesn't compile: {file}:{line}: .*set_frist"):
        compile_host(operator, pair, virtual(), out_dir)


def test_a_missing_header_is_named(operator: Operator, out_dir: Path) -> None:
    pair = operator.baseline.with_tiling("op_host/scale_rows.cpp", '#include "no/such.h"\n')
    with pytest.raises(HostProgramError, match=r"includes 'no/such.h' \(.*scale_rows.cpp:1\)"):
        compile_host(operator, pair, virtual(), out_dir)


def test_an_undefined_function_is_named(operator: Operator, out_dir: Path) -> None:
    text = HOST_CPP.replace("static ge::graphStatus Parse", "int Elsewhere();\nstatic ge::graphStatus Parse", 1)
    text = text.replace("data.set_first(1);", "data.set_first(Elsewhere());")
    pair = operator.baseline.with_tiling("op_host/scale_rows.cpp", text)
    with pytest.raises(HostProgramError, match="none of its sources defines: optiling::Elsewhere"):
        compile_host(operator, pair, virtual(), out_dir)


def test_an_exception_in_the_tiling_function_is_a_refusal(operator: Operator, out_dir: Path, chip: Chip) -> None:
    text = HOST_CPP.replace("ScaleRowsTilingData data;", 'throw std::runtime_error("boom"); ScaleRowsTilingData data;')
    program = compile_host(operator, operator.baseline.with_tiling("op_host/scale_rows.cpp", text), virtual(), out_dir)
    with pytest.raises(HostProgramError, match="exception: boom"):
        program.tiling(Case((X, None, ()), (X,), (("axes", (1,)),)), chip)


def test_initial_values_count_when_the_tiling_function_asks_for_them(
    operator: Operator, out_dir: Path, chip: Chip
) -> None:
    case = Case((TensorSpec("float16", (4, 8)), None, ()), (TensorSpec("bfloat16", (4, 8)),), (("axes", (1,)),))
    values = "InitValue({{ScalarType::FLOAT32, 0}, {ScalarType::FLOAT32, 1.5}})"
    defined = HOST_CPP.replace('this->Output("y")', f'this->Output("y").{values}')
    asked = defined.replace("context->SetBlockDim(", "context->SetNeedAtomic(true);\n  context->SetBlockDim(", 1)
    for text, expected in ((HOST_CPP, ()), (defined, ()), (asked, (1.5,))):
        pair = operator.baseline.with_tiling("op_host/scale_rows.cpp", text)
        program = compile_host(operator, pair, virtual(), out_dir)
        assert program.tiling(case, chip).initial_values == expected


@pytest.mark.parametrize(
    ("function", "elements", "bytes_each", "most", "least"),
    [
        ("Tanh", 1000, 2, 8000, 1024),
        ("Tanh", 1000, 4, 4000, 256),
        ("Sin", 1000, 4, 12000, 768),
        ("Erfc", 10, 2, 4096, 4096),
        ("Floor", 1000, 4, 0, 0),
    ],
)
def test_temporary_sizes(
    operator: Operator, out_dir: Path, chip: Chip, function: str, elements: int, bytes_each: int, most: int, least: int
) -> None:
    call = f"AscendC::Get{function}MaxMinTmpSize(ge::Shape({{{elements}}}), {bytes_each}, false, most, least);"
    text = HOST_CPP.replace(
        "ScaleRowsTilingData data;", f"uint32_t most = 1, least = 1; {call} ScaleRowsTilingData data;"
    )
    text = text.replace("[0] = 64", "[0] = most").replace("[1] = 32", "[1] = 100000 * least")
    program = compile_host(operator, operator.baseline.with_tiling("op_host/scale_rows.cpp", text), virtual(), out_dir)
    result = program.tiling(Case((X, None, ()), (X,), (("axes", (1,)),)), chip)
    assert result.workspace_bytes == most + 100000 * least


def test_a_support_check_may_ask_the_graph_engine(operator: Operator, out_dir: Path) -> None:
    check = """
static ge::graphStatus Check(const ge::Operator& op, ge::AscendString& result) {
  int64_t axis = 0;
  ge::Tensor values;
  if (op.GetAttr("axis", axis) != ge::GRAPH_SUCCESS) return ge::GRAPH_FAILED;
  const bool known = op.GetInputConstData("k", values) == ge::GRAPH_SUCCESS;
  result = known && op.GetInputDescByName("x").GetShape().GetDim(axis) > 0 ? "yes" : "no";
  return ge::GRAPH_SUCCESS;
}
"""
    text = HOST_CPP.replace("static ge::graphStatus Parse", f"{check}static ge::graphStatus Parse", 1)
    text = text.replace("SetTiling(optiling::Tiling)", "SetTiling(optiling::Tiling).SetCheckSupport(optiling::Check)")
    pair = operator.baseline.with_tiling("op_host/scale_rows.cpp", text)
    assert compile_host(operator, pair, virtual(), out_dir).describe().signature.op_type == "ScaleRows"


def test_without_tiling_or_shape_function(operator: Operator, out_dir: Path, chip: Chip) -> None:
    text = HOST_CPP.replace("IMPL_OP_OPTILING(ScaleRows).Tiling(Tiling).TilingParse<CompileInfo>(Parse);", "")
    text = text.replace("SetTiling(optiling::Tiling).", "").replace("this->SetInferShape(optiling::InferShape);", "")
    program = compile_host(operator, operator.baseline.with_tiling("op_host/scale_rows.cpp", text), virtual(), out_dir)
    with pytest.raises(HostProgramError, match="has no tiling function"):
        program.tiling(Case((X, None, ()), (X,), (("axes", (1,)),)), chip)
    with pytest.raises(HostProgramError, match=r"has no shape function.*--output"):
        program.infer_shape((X, None, ()), {"axes": (1,)})


def test_only_what_changed_is_compiled_again(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_operator(tmp_path)
    (root / "op_host" / "second.cpp").write_text("int unrelated() { return 1; }\n")
    operator = load_project(root)
    commands: list[list[str]] = []
    run = host._Build._run

    def counting(self: host._Build, command: list[str]) -> None:
        commands.append(command)
        run(self, command)

    monkeypatch.setattr(host._Build, "_run", counting)
    first = compile_host(operator, operator.baseline, virtual(), tmp_path / "out")
    assert len(commands) == 3  # two objects, one link
    assert compile_host(operator, operator.baseline, virtual(), tmp_path / "out").path == first.path
    assert len(commands) == 3
    pair = operator.baseline.with_tiling("op_host/second.cpp", "int unrelated() { return 2 - 1; }\n")
    assert compile_host(operator, pair, virtual(), tmp_path / "out").path != first.path
    assert len(commands) == 5


def test_a_changed_shared_header_is_noticed(tmp_path: Path) -> None:
    root = write_operator(tmp_path)
    shared = tmp_path / "shared.h"
    shared.write_text("#define CORES 3\n")
    source = root / "op_host" / "scale_rows.cpp"
    text = HOST_CPP.replace("SetBlockDim(info->cores)", "SetBlockDim(CORES)")
    source.write_text('#include "../../shared.h"\n' + text)
    operator = load_project(root)
    case = Case((X, None, ()), (X,), (("axes", (1,)),))
    for cores in (3, 4):
        shared.write_text(f"#define CORES {cores}\n")
        program = compile_host(operator, operator.baseline, virtual(), tmp_path / "out")
        assert program.tiling(case, load_chip("ascend910b2")).block_dim == cores


def test_a_candidates_header_is_used_wherever_it_is_included_from(tmp_path: Path) -> None:
    root = write_operator(tmp_path)
    (root / "op_host" / "cores.h").write_text("#define CORES 3\n")
    (root / "op_host" / "inner").mkdir()
    text = HOST_CPP.replace("SetBlockDim(info->cores)", "SetBlockDim(CORES)")
    (root / "op_host" / "scale_rows.cpp").unlink()
    (root / "op_host" / "inner" / "scale_rows.cpp").write_text('#include "cores.h"\n' + text)
    operator = load_project(root)
    pair = operator.baseline.with_tiling("op_host/cores.h", "#define CORES 5\n")
    program = compile_host(operator, pair, virtual(), tmp_path / "out")
    assert program.tiling(Case((X, None, ()), (X,), (("axes", (1,)),)), load_chip("ascend910b2")).block_dim == 5


def test_an_unknown_format_is_refused(program: HostProgram, chip: Chip) -> None:
    x = TensorSpec("float32", (4, 8), "NCWH")
    with pytest.raises(CaseError, match="unknown storage format 'NCWH'"):
        program.tiling(Case((x, None, ()), (x,), (("axes", (1,)),)), chip)
