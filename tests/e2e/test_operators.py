"""Operators of others from the command line: what their folders and kernel files may hold (docs/operators.md)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]
Document = Callable[..., dict[str, Any]]
Refused = Callable[..., str]

ACCUMULATE = Path(__file__).parents[1] / "torch" / "operators" / "accumulate"

TEMPLATE = """#include <iostream>
#include "kernel_operator.h"
#include "factor.h"
using namespace AscendC;
template <typename T, int N>
__global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, T factor) {
  ASSERT(N > 0)
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, N * sizeof(T));
  LocalTensor<T> local = buffer.Get<T>();
  GlobalTensor<T> from, to;
  from.SetGlobalBuffer((__gm__ T*)x);
  to.SetGlobalBuffer((__gm__ T*)y);
  DataCopy(local, from, N);
  PipeBarrier<PIPE_ALL>();
  Muls(local, local, static_cast<T>(factor * FACTOR), N);
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, local, N);
}
int main() { std::cout << "a host program beside it" << std::endl; }
"""

# y[i] = x[index[i]], by the scalar unit, without looking whether the index is inside.
TAKE = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void take(GM_ADDR x, GM_ADDR index, GM_ADDR y) {
  GlobalTensor<float> from, to;
  GlobalTensor<int32_t> where;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)y);
  where.SetGlobalBuffer((__gm__ int32_t*)index);
  for (int i = 0; i < 16; i++) to.SetValue(i, from.GetValue(where.GetValue(i)));
  DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(to);
}
"""


def in_place(folder: Path) -> Path:
    """The operator that accumulates into its input, without an output for that."""
    root = folder / "accumulate"
    for file in ACCUMULATE.rglob("*"):
        if file.suffix in (".cpp", ".h"):
            text = file.read_text().replace(", GM_ADDR result", "").replace("(__gm__ float*)result", "(__gm__ float*)x")
            lines = [line for line in text.splitlines() if 'Output("x")' not in line and "SetInferShape" not in line]
            target = root / file.relative_to(ACCUMULATE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(lines) + "\n")
    return root


CASE = ["--input", "x=float32[8,64]", "--input", "y=float32[8,64]"]


def test_an_input_that_is_changed_without_an_output(document: Document, cli: Cli, tmp_path: Path) -> None:
    root = in_place(tmp_path)
    x, y = (np.random.default_rng(seed).standard_normal((8, 64)).astype(np.float32) for seed in (1, 2))
    np.savez(tmp_path / "in.npz", x=x, y=y)
    arrays = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")]
    cli("run", str(root), *arrays, "--in-place", "x")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["x"], x + y)
    (root / "op.toml").write_text('in_place = ["x"]\n')
    found = document("run", str(root), *CASE)
    assert (found["outcome"], found["case"]["outputs"]) == ("Timed", ["float32[8,64]"])
    assert "compared with itself only: give a reference.py" in cli("run", str(root), *CASE).stdout
    (root / "op.toml").unlink()
    assert "the input x" in document("run", str(root), *CASE, expect=1)["reason"], "changed, and nobody said so"


def test_a_template_is_named_with_its_arguments(cli: Cli, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "scale.cpp").write_text(TEMPLATE)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "factor.h").write_text("#define FACTOR 2\n")
    np.savez(tmp_path / "in.npz", x=np.arange(64, dtype=np.float32))
    kernel = ["--kernel", str(tmp_path / "scale.cpp"), "--block-dim", "1", "-I", str(tmp_path / "include")]
    case = ["--inputs", str(tmp_path / "in.npz"), "--output", "y=float32[64]", "--attr", "factor=1.5"]
    cli("run", *kernel, "--entry", "scale<float, 64>", *case, "--outputs", str(tmp_path / "out.npz"))
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], np.arange(64, dtype=np.float32) * 3)
    assert "scale is a template <typename T, int N>" in refused("run", *kernel, *case)


def test_a_domain_is_hinted_at_and_given(cli: Cli, document: Document, refused: Refused, tmp_path: Path) -> None:
    """The user's own arrays pass, random indices lead outside."""
    (tmp_path / "take.cpp").write_text(TAKE)
    np.savez(tmp_path / "in.npz", x=np.ones(64, np.float32), index=np.arange(16, dtype=np.int32))
    kernel = ["--kernel", str(tmp_path / "take.cpp"), "--entry", "take", "--block-dim", "1"]
    case = [*kernel, "--inputs", str(tmp_path / "in.npz"), "--output", "y=float32[16]"]
    said = cli("run", *case, expect=1)
    assert "your own arrays passed, random ones didn't" in said.stderr
    assert "--domain NAME=LOW:HIGH" in said.stderr
    for domain in ("index=0:63", "index=x:0", f"index={list(range(16))}"):
        assert document("run", *case, "--domain", domain)["outcome"] == "Timed"
    assert "'nothing=0:1' names no input" in refused("run", *case, "--domain", "nothing=0:1")
    assert "index=0:99" in refused("run", *case, "--domain", "index=?")


def test_own_arrays_have_a_format(document: Document, refused: Refused, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((2, 3, 4, 4), np.float32), y=np.ones((2, 3, 4, 4), np.float32))
    case = ["run", "add", "--inputs", str(tmp_path / "in.npz")]
    found = document(*case, "--format", "x=NCHW", "--format", "y=NCHW")
    assert found["case"]["inputs"] == ["float32[2,3,4,4]:NCHW"] * 2
    assert "--format names z" in refused(*case, "--format", "z=NCHW")


def test_a_shape_function_that_needs_values_names_output(refused: Refused, tmp_path: Path) -> None:
    root = in_place(tmp_path)
    host = root / "op_host" / "accumulate.cpp"
    text = host.read_text().replace("*context->GetInputShape(0);", "{-1, 4};")
    more = """    this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
"""
    text = text.replace("    this->AICore()", f"{more}    this->AICore()")
    host.write_text(text)
    said = refused("run", str(root), *CASE)
    assert "the outputs' shapes are unknown" in said
    assert "--output z=DTYPE[...]" in said


def test_a_kernel_that_decides_the_output_s_shape(document: Document, tmp_path: Path) -> None:
    """It has a parameter behind the outputs to tell the shape in: the number of axes and their lengths."""
    root = in_place(tmp_path)
    host, kernel = root / "op_host" / "accumulate.cpp", root / "op_kernel" / "accumulate.cpp"
    output = 'this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).OutputShapeDependOnCompute();'
    host.write_text(host.read_text().replace("    this->AICore()", f"    {output}\n    this->AICore()"))
    text = (
        kernel.read_text()
        .replace("GM_ADDR y,", "GM_ADDR y, GM_ADDR z, GM_ADDR shape,")
        .replace("__gm__ float*)x, data", "__gm__ float*)X, data")
    )
    first, _, last = text.rpartition("(__gm__ float*)X")
    told = "  __gm__ uint64_t* told = (__gm__ uint64_t*)shape;\n  told[0] = 1;\n  told[1] = data.length;\n}"
    kernel.write_text(
        (first + "(__gm__ float*)z" + last).replace("*)X", "*)x").rstrip().removesuffix("}") + told + "\n"
    )
    x, y = (np.random.default_rng(seed).standard_normal((8, 64)).astype(np.float32) for seed in (1, 2))
    np.savez(tmp_path / "in.npz", x=x, y=y)
    case = ["--inputs", str(tmp_path / "in.npz"), "--output", "z=float32[8,64]", "--outputs", str(tmp_path / "out.npz")]
    found = document("run", str(root), *case)
    assert found["outcome"] == "Timed", found["reason"]
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["z"], x + y)


@pytest.mark.parametrize("text", ["colour = 1", "in_place = 3 = 4"])
def test_op_toml_s_keys_are_where_the_error_says(refused: Refused, tmp_path: Path, text: str) -> None:
    root = in_place(tmp_path)
    (root / "op.toml").write_text(f"{text}\n")
    assert "docs/operators.md" in refused("run", str(root), *CASE)
    page = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
    from ascendopt_tune.sources.registry import _KEYS

    assert [key for key in sorted(_KEYS) if key not in page] == []
