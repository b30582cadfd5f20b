"""What kernels for direct launch take besides tensors: numbers, structs, null pointers."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from ascendopt_tune.build.kernel import without_launches
from ascendopt_tune.errors import CaseError, OperatorError
from ascendopt_tune.evaluate.execute import parameter_order
from ascendopt_tune.nouns.case import TensorSpec
from ascendopt_tune.sources.arguments import direct_signature, parse_attrs
from ascendopt_tune.sources.by_value import by_value
from ascendopt_tune.sources.kernels import kernels_in
from ascendopt_tune.sources.project import load_direct

_STRUCT = """
struct Tiling {
    int32_t rows;      // how many; all of them
    uint8_t kind = 0;
    float scale{1.0f};
    int64_t steps[2];
};
"""
_KERNEL = """
#include "kernel_operator.h"
#include "tiling.h"
extern "C" __global__ __aicore__ void scale(GM_ADDR x, __gm__ uint8_t* bias, GM_ADDR y, const Tiling tiling
#if WITH_COUNT >= 1
    , int32_t count
#endif
) {}
"""


def test_a_struct_has_the_layout_of_its_fields() -> None:
    made = by_value("tiling", "const Tiling", (3, 1, 0.5, 7, 8), [_STRUCT])
    assert isinstance(made, ctypes.Structure)
    assert bytes(made) == (
        bytes(ctypes.c_int32(3))
        + b"\1\0\0\0"
        + bytes(ctypes.c_float(0.5))
        + b"\0" * 4
        + bytes((ctypes.c_int64 * 2)(7, 8))
    )


@pytest.mark.parametrize(
    ("c_type", "value", "said"),
    [
        ("Tiling", (3, 1), "a Tiling of 5 numbers (rows, kind, scale, steps[2]); 2 are given"),
        ("Other", 3, "can't be passed by value"),
        ("int32_t", (1, 2), "can't be passed by value"),
    ],
)
def test_what_cant_be_passed_is_said(c_type: str, value: int | tuple[int, ...], said: str) -> None:
    with pytest.raises(CaseError) as error:
        by_value("tiling", c_type, value, [_STRUCT])
    assert said in error.value.message


@pytest.mark.parametrize("body", ["half x;", "std::vector<int> x;", "int32_t x; int32_t twice() { return x; }"])
def test_structs_that_hold_more_than_numbers_are_not_read(body: str) -> None:
    with pytest.raises(CaseError, match="can't be passed by value"):
        by_value("t", "T", (1,), [f"struct T {{ {body} }};"])


def _files(folder: Path) -> Path:
    (folder / "tiling.h").write_text(_STRUCT)
    (folder / "scale.cpp").write_text(_KERNEL)
    return folder / "scale.cpp"


def test_parameters_hang_on_macros_that_are_given(tmp_path: Path) -> None:
    file = _files(tmp_path)
    with pytest.raises(OperatorError, match="hangs on whether WITH_COUNT >= 1"):
        load_direct(file, "scale", 1)
    names = [[n for n, _ in load_direct(file, "scale", 1, [("WITH_COUNT", v)]).direct.parameters] for v in "01"]  # type: ignore[union-attr]
    assert names == [["x", "bias", "y", "tiling"], ["x", "bias", "y", "tiling", "count"]]


def test_parameters_hang_on_macros_of_the_kernels_headers(tmp_path: Path) -> None:
    file = _files(tmp_path)
    (tmp_path / "tiling.h").write_text(f"#define WITH_COUNT 1\n{_STRUCT}")
    direct = load_direct(file, "scale", 1).direct
    assert direct is not None
    assert direct.parameters[-1] == ("count", "int32_t")


def test_null_pointers_and_structs_are_attributes(tmp_path: Path) -> None:
    operator = load_direct(_files(tmp_path), "scale", 1, [("WITH_COUNT", "0")])
    spec = TensorSpec("float32", (8,))
    attrs = parse_attrs(["bias=0", "tiling=3,1,0.5,7,8"], None)
    signature = direct_signature(operator, {"x": spec}, {"y": spec}, attrs)
    assert [(a.name, a.type) for a in signature.attrs] == [("bias", "int"), ("tiling", "list_float")]
    order = parameter_order(operator, attrs, (("x",), ("y",)))
    assert (order[0], order[2]) == ("x", "y")
    assert isinstance(order[1], ctypes.c_uint64)
    assert order[1].value == 0
    assert isinstance(order[3], ctypes.Structure)


def test_headers_by_a_path_out_of_the_folder_may_be_read(tmp_path: Path) -> None:
    for folder in ("op_kernel", "op_host", "common", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "op_kernel" / "fill.cpp").write_text(
        '#include "../op_host/tiling.h"\n#include "../none.h"\n'
        'extern "C" __global__ __aicore__ void fill(GM_ADDR y) {}\n'
    )
    (tmp_path / "op_host" / "tiling.h").write_text('#include "../common/sizes.h"\n#include "more.h"\n')
    (tmp_path / "op_host" / "more.h").write_text("// nothing\n")
    (tmp_path / "common" / "sizes.h").write_text("// nothing\n")
    operator = load_direct(tmp_path / "op_kernel" / "fill.cpp", "fill", 1)
    assert operator.kernel_include_dirs[0] == tmp_path / "op_kernel"
    assert set(operator.kernel_include_dirs[1:]) == {tmp_path / "op_host", tmp_path / "common"}


def test_kernels_that_a_macro_of_several_parameters_defines(tmp_path: Path) -> None:
    file = tmp_path / "pad.cpp"
    file.write_text(
        "#define PAD(name, dtype, process) \\\n"
        '  extern "C" __global__ __aicore__ void pad_##name##_of(GM_ADDR x, dtype value) { process(x); }\n'
        "PAD(small, int32_t, Small)\nPAD(large, float, Large)\n"
    )
    assert list(kernels_in(file)) == ["pad_small_of", "pad_large_of"]
    direct = load_direct(file, "pad_large_of", 2).direct
    assert direct is not None
    assert direct.parameters == (("x", "GM_ADDR"), ("value", "float"))


def test_launches_of_pasted_names_in_macros_are_left_out() -> None:
    text = "#define RUN(name) \\\n  run_##name##_of<<<8, \\\n    nullptr, stream>>>(x)\nint after;\n"
    left = without_launches(text)
    assert left == "#define RUN(name) \\\n  AOT_HOST_LAUNCH\\\n(x)\nint after;\n"
