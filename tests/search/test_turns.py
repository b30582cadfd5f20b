"""Loops whose turns are one instruction with strides: what is recognized and what not; right and faster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import one_core
import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.motifs import Rewrite, find
from ascendopt_tune.search.kernel.reading.affine import AffinePlace, affine
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.project import load_project


@pytest.mark.parametrize(
    ("operand", "names", "place"),
    [
        ("x[i * n]", {}, AffinePlace("x", "0", "n")),
        ("this->x[base + (i + 1) * (n + 2)]", {}, AffinePlace("this->x", "base + (((1)) * ((n + 2)))", "(n + 2)")),
        ("x[off]", {"off": "a * 4 + i * w * h"}, AffinePlace("x", "(a * 4)", "(w) * h")),
        ("x[n - i]", {}, AffinePlace("x", "n", "-(1)")),
        ("x[(int64_t)i * n + k]", {}, AffinePlace("x", "k", "(static_cast<int64_t>(1)) * n")),
        ("x[i * i]", {}, None),
        ("x[i % n]", {}, None),
        ("x[order.GetValue(i)]", {}, None),
        ("x[n]", {}, None),
        ("x[i][0]", {}, None),
        ("x", {}, None),
    ],
)
def test_places_that_move_evenly(operand: str, names: dict[str, str], place: AffinePlace | None) -> None:
    assert affine(operand, "i", "0", names) == place


def test_a_counter_that_begins_elsewhere_moves_the_start() -> None:
    assert affine("x[i * n + 3]", "i", "first", {}) == AffinePlace("x", "3 + (first) * (n)", "n")


COPY = """\
    for (uint32_t i = 0; i < ROWS; i++) {
      uint32_t from = offset + i * COLUMNS;
      DataCopyPad(x[i * PADDED], xGm[from], params, pad);
    }
"""
COMPUTE = """\
    for (uint32_t i = 0; i < ROWS; i++) {
      Add(y[i * PADDED], x[i * PADDED], bias, COLUMNS);
    }
"""
COPY_OUT = """\
    for (uint32_t i = 0; i < ROWS; i++) {
      DataCopyPad(yGm[offset + i * COLUMNS], y[i * PADDED], params);
    }
"""


def kernel(copy: str = COPY, compute: str = COMPUTE, copy_out: str = COPY_OUT) -> str:
    """Tiles of 32 rows of 41 floats, 48 apart in UB, to each of which the first row of all is added."""
    text = one_core.kernel()
    text = text.replace("TILE_LENGTH = 512;", "ROWS = 32, COLUMNS = 41, PADDED = 48;").replace(
        "TILE_LENGTH *", "ROWS * PADDED *"
    )
    text = text[: text.index("  __aicore__ inline void Process")]
    return f"""{text}
  __aicore__ inline void Process() {{
    pipe->InitBuffer(biasBuf, PADDED * sizeof(float));
    DataCopyExtParams params{{1, COLUMNS * sizeof(float), 0, 0, 0}};
    DataCopyPadExtParams<float> pad{{false, 0, 0, 0}};
    LocalTensor<float> bias = biasBuf.Get<float>();
    DataCopyPad(bias, xGm, params, pad);
    for (uint32_t tile = 0; tile < tiles; tile++) {{
      Tile(tile * ROWS * COLUMNS, params, pad, bias);
    }}
  }}
  __aicore__ inline void Tile(uint32_t offset, const DataCopyExtParams& params, const DataCopyPadExtParams<float>& pad,
                              LocalTensor<float>& bias) {{
    LocalTensor<float> x = inQueue.AllocTensor<float>();
{copy}    inQueue.EnQue(x);
    x = inQueue.DeQue<float>();
    LocalTensor<float> y = outQueue.AllocTensor<float>();
{compute}    outQueue.EnQue(y);
    inQueue.FreeTensor(x);
    y = outQueue.DeQue<float>();
{copy_out}    outQueue.FreeTensor(y);
  }}
  TPipe* pipe;
  TBuf<QuePosition::VECCALC> biasBuf;
  TQue<QuePosition::VECIN, 1> inQueue;
  TQue<QuePosition::VECOUT, 1> outQueue;
  GlobalTensor<float> xGm, yGm;
  uint32_t tiles, tileLength, lastLength;
}};
extern "C" __global__ __aicore__ void grow_scale(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {{
  GET_TILING_DATA(data, tiling);
  TPipe pipe;
  KernelGrowScale op;
  op.pipe = &pipe;
  op.Init(x, y, data, &pipe);
  op.Process();
}}
"""


def found(motif: str, text: str) -> list[Rewrite]:
    return list(find(motif).optimize(KernelProgram({"k.cpp": text})))


def test_copies_and_instructions_a_row_are_found_once() -> None:
    program = KernelProgram({"k.cpp": kernel()})
    for motif, number in (("strided-copy", 2), ("merged-rows", 1)):
        rewrites = list(find(motif).optimize(program))
        assert len(rewrites) == number
        for rewrite in rewrites:
            after = rewrite.kernel(program)["k.cpp"]
            assert len(found(motif, after)) == number - 1


@pytest.mark.parametrize(
    "compute",
    [
        COMPUTE.replace("x[i * PADDED]", "y[i * PADDED + 8]"),  # a row that reads the next one
        COMPUTE.replace("y[i * PADDED]", "y"),  # all rows into one
        COMPUTE.replace("COLUMNS);", "i);"),  # rows of their own length
        COMPUTE.replace("Add(", "Muls(").replace("bias", "(float)i"),  # factors of their own
        COMPUTE.replace("i++", "i += 2"),
    ],
)
def test_rows_that_differ_or_depend_are_left_alone(compute: str) -> None:
    assert found("merged-rows", kernel(compute=compute)) == []


@pytest.mark.parametrize(
    "copy",
    [
        COPY.replace("offset + i *", "offset + order[i] *"),
        COPY.replace("x[i * PADDED]", "x"),
    ],
)
def test_copies_to_uneven_places_are_left_alone(copy: str) -> None:
    assert len(found("strided-copy", kernel(copy=copy))) == 1  # the one out


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b4", workers=1) as opened:
        yield opened


@pytest.mark.parametrize("columns", [41, 48])
def test_rows_at_once_are_right_and_faster_where_they_are_adjacent(
    tmp_path: Path, evaluator: Evaluator, columns: int
) -> None:
    root = one_core.write(tmp_path)
    (root / "op_kernel/grow_scale.cpp").write_text(kernel().replace("COLUMNS = 41", f"COLUMNS = {columns}"))
    host = (root / "op_host/grow_scale.cpp").read_text()
    tile = "tile = tile < TILE_LENGTH ? tile : TILE_LENGTH;"
    (root / "op_host/grow_scale.cpp").write_text(host.replace(tile, f"tile = {32 * columns};"))
    operator = load_project(root)
    signature = evaluator.describe(operator).signature
    inputs = dict([parse_tensor(f"x=float32[128,{columns}]")])
    case = build_case(signature, inputs, {}, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    base = operator.baseline
    program = KernelProgram(base.kernel, base.tiling, None, operator.auto_sync)
    rewrites = [*find("strided-copy").optimize(program), *find("merged-rows").optimize(program)]
    pairs = {0: base, **{i: replace(base, kernel=r.kernel(program)) for i, r in enumerate(rewrites, start=1)}}
    times = {}
    gate = Gate(operator, case, evaluator, signature=signature)
    for number, checked in gate.evaluate_many(pairs):
        assert isinstance(checked.outcome, Timed), checked.outcome.reason
        times[number] = checked.outcome.profile.task_duration_us
    assert len(times) == 4
    assert times[3] < times[0]
    if columns == 48:  # copies of adjacent rows are one block; those with gaps pay for each row, whoever asks for it
        assert max(times[1], times[2]) < times[0], times
