"""From what a user writes to a Case."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.errors import CaseError
from ascendopt_tune.nouns.case import DTYPES, Argument, AttrValue, Case, TensorSpec
from ascendopt_tune.nouns.operator import AttrDef, DirectLaunch, Operator, Pair, ParamDef, Signature
from ascendopt_tune.sources import arguments

F16 = TensorSpec("float16", (4, 8))
FLOATS = ("float16", "float32")
NORM = Signature(
    "Norm",
    (ParamDef("x", FLOATS), ParamDef("mask", ("bool", "bool"), "optional"), ParamDef("more", FLOATS, "dynamic")),
    (ParamDef("y", FLOATS),),
    (
        AttrDef("dim", "int"),
        AttrDef("eps", "float", 1e-6),
        AttrDef("sizes", "list_int", (1, 2)),
        AttrDef("on", "bool", True),
    ),
    has_infer_shape=True,
)


def infer(inputs: tuple[Argument, ...], attrs: tuple[tuple[str, AttrValue], ...]) -> tuple[Argument, ...]:
    return (inputs[0],)


def build(
    inputs: Mapping[str, TensorSpec], attrs: Mapping[str, AttrValue] | None = None, **outputs: TensorSpec
) -> Case:
    return arguments.build_case(NORM, inputs, {"dim": -1} if attrs is None else attrs, outputs, infer)


@pytest.mark.parametrize(
    ("text", "name", "spec"),
    [
        ("x=float16[1024,4096]", "x", TensorSpec("float16", (1024, 4096))),
        (" x = bf16[2, 3] ", "x", TensorSpec("bfloat16", (2, 3))),
        ("x.12=float[7]", "x.12", TensorSpec("float32", (7,))),
        ("scalar=int64[]", "scalar", TensorSpec("int64", ())),
        ("empty=int8[0,5]", "empty", TensorSpec("int8", (0, 5))),
        ("x=half[1,2,3,4]:NHWC", "x", TensorSpec("float16", (1, 2, 3, 4), "NHWC")),
    ],
)
def test_tensor(text: str, name: str, spec: TensorSpec) -> None:
    assert arguments.parse_tensor(text) == (name, spec)


@pytest.mark.parametrize(
    "text",
    ["x", "x=float16", "x=[8]", "x=float16[8", "x=float16[-8]", "x=float16[8,]", "x=float16[1,,2]", "x.a=int8[1]"],
)
def test_a_tensor_that_cannot_be_read_shows_how_to_write_one(text: str) -> None:
    with pytest.raises(CaseError, match=r"x=float16\[1024,4096\]"):
        arguments.parse_tensor(text)


@given(st.sampled_from(sorted(DTYPES)), st.lists(st.integers(0, 10**6), max_size=6), st.sampled_from(["ND", "NHWC"]))
def test_a_spec_is_written_as_it_is_read(dtype: str, shape: list[int], form: str) -> None:
    spec = TensorSpec(dtype, tuple(shape), form)
    assert arguments.parse_tensor(f"x={spec}") == ("x", spec)


def test_inputs_that_change_in_place_end_the_outputs() -> None:
    x, more = TensorSpec("float16", (2, 3)), TensorSpec("float16", (4,))
    inputs = {"x": x, "more.0": more}
    case = arguments.build_case(NORM, inputs, {"dim": 0}, {}, infer, ("more", "x"))
    assert case.outputs == (x, (more,), x)
    with pytest.raises(CaseError, match="in_place names z"):
        arguments.build_case(NORM, inputs, {"dim": 0}, {}, infer, ("z",))


def test_a_name_given_twice() -> None:
    with pytest.raises(CaseError, match="--input x is given twice"):
        arguments.parse_tensors(["x=int8[1]", "x=int8[2]"], "--input")
    with pytest.raises(CaseError, match="--attr dim is given twice"):
        arguments.parse_attrs(["dim=1", "dim=2"], NORM)


@pytest.mark.parametrize(
    ("text", "value"),
    [("dim=-1", -1), ("eps=1e-3", 1e-3), ("eps=inf", float("inf")), ("sizes=3,4", (3, 4)), ("sizes=[5]", (5,)),
     ("sizes=", ()), ("on=false", False), ("on=1", True)],
)  # fmt: skip
def test_attribute(text: str, value: AttrValue) -> None:
    name = text.partition("=")[0]
    assert arguments.parse_attr(text, NORM) == (name, value)
    assert type(arguments.parse_attr(text, NORM)[1]) is type(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dim", "NAME=VALUE"),
        ("dim=1.5", "not of type int"),
        ("on=maybe", "not of type bool"),
        ("axis=1", "Its attributes"),
    ],
)
def test_an_attribute_that_does_not_fit(text: str, says: str) -> None:
    with pytest.raises(CaseError, match=says):
        arguments.parse_attr(text, NORM)


def test_a_case_takes_defaults_and_infers_outputs() -> None:
    case = build({"x": F16, "more.0": F16, "more.1": F16})
    assert case.inputs == (F16, None, (F16, F16))
    assert case.outputs == (F16,)
    assert dict(case.attrs) == {"dim": -1, "eps": 1e-6, "sizes": (1, 2), "on": True}
    given_output = TensorSpec("float32", (4, 8))
    assert build({"x": F16, "more": F16}, y=given_output).outputs == (given_output,)


def test_a_list_may_have_no_tensors() -> None:
    case = build({"x": F16, **arguments.parse_tensors(["more = []"], "--input")})
    assert case.inputs == (F16, None, ())


@pytest.mark.parametrize(
    ("inputs", "attrs", "says"),
    [
        ({"more": F16}, None, "needs the input x"),
        ({"x": F16}, None, "needs the tensor list more"),
        ({"x": F16, "more.1": F16}, None, "gap"),
        ({"x": F16, "more.": F16, "more.0": F16}, None, "is for a list without tensors"),
        ({"x": F16, "x.": F16, "more": F16}, None, "is for a list without tensors"),
        ({"x": F16, "more": F16, "more.0": F16}, None, "both whole and as more.0"),
        ({"x.0": F16, "more": F16}, None, "one tensor, not a list"),
        ({"x": F16, "more": F16, "z": F16}, None, "no input 'z'"),
        ({"x": F16, "more": F16}, {}, "needs the attribute dim"),
        ({"x": F16, "more": F16}, {"dim": 1, "axis": 1}, "no attribute 'axis'"),
    ],
)
def test_a_case_that_does_not_fit(
    inputs: Mapping[str, TensorSpec], attrs: Mapping[str, AttrValue] | None, says: str
) -> None:
    with pytest.raises(CaseError, match=says):
        build(inputs, attrs)


def test_outputs_that_nobody_knows() -> None:
    with pytest.raises(CaseError, match=r"--output y=DTYPE"):
        arguments.build_case(NORM, {"x": F16, "more": F16}, {"dim": 0}, {}, None)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_arrays_come_back_as_they_were_saved(tmp_path: Path, suffix: str) -> None:
    arrays = {"x": np.arange(6, dtype=np.float16).reshape(2, 3).T, "y.0": np.array([], np.int64), "s": np.array(3.0)}
    if suffix == ".safetensors":
        arrays["b"] = np.array([1.5, np.inf], ml_dtypes.bfloat16)
    arguments.save_arrays(tmp_path / f"a{suffix}", arrays)
    loaded = arguments.load_arrays(tmp_path / f"a{suffix}")
    assert loaded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)
    assert [p.name for p in tmp_path.iterdir()] == [f"a{suffix}"], "nothing half-written is left"


def test_a_text_in_an_archive_is_no_array(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.txt", "hello")
    with pytest.raises(CaseError, match=r"x\.txt is no array"):
        arguments.load_arrays(tmp_path / "a.npz")


def test_results_that_cannot_be_written_are_refused_before_the_run(tmp_path: Path) -> None:
    bfloat16 = TensorSpec("bfloat16", (2,))
    arguments.check_output_file(tmp_path / "a.safetensors", [bfloat16])
    for path, says in (
        (tmp_path / "a.npz", "safetensors"),
        (tmp_path / "a.txt", "suffix"),
        (tmp_path / "no/a.npz", "folder"),
    ):
        with pytest.raises(CaseError, match=says):
            arguments.check_output_file(path, [bfloat16])


def test_dtypes_go_both_ways() -> None:
    for name in DTYPES:
        assert arguments.dtype_name(arguments.numpy_dtype(name)) == name
    with pytest.raises(CaseError, match="complex128"):
        arguments.dtype_name(np.dtype(np.complex128))


def direct() -> Operator:
    parameters = (("x", "GM_ADDR"), ("y", "GM_ADDR"), ("workspace", "GM_ADDR"), ("factor", "float"))
    return Operator("k", Path("/"), "k", "k.cpp", Pair({}, {"k.cpp": ""}), direct=DirectLaunch(4, (), parameters))


def test_a_kernel_for_direct_launch_gets_its_signature_from_what_is_given() -> None:
    signature = arguments.direct_signature(direct(), {"x": F16}, {"y": F16}, {"factor": 2})
    assert [p.name for p in signature.inputs] == ["x"]
    assert [p.name for p in signature.outputs] == ["y"]
    assert signature.attrs == (AttrDef("factor", "int"),)
    assert not signature.has_tiling


@pytest.mark.parametrize(
    ("inputs", "attrs", "says"),
    [({"x": F16, "z": F16}, {"factor": 1}, "no parameter 'z'"), ({"x": F16}, {}, "needs factor"),
     ({"x": F16}, {"factor": "two"}, "no number")],
)  # fmt: skip
def test_a_direct_launch_that_does_not_fit(
    inputs: Mapping[str, TensorSpec], attrs: Mapping[str, AttrValue], says: str
) -> None:
    with pytest.raises(CaseError, match=says):
        arguments.direct_signature(direct(), inputs, {"y": F16}, attrs)
