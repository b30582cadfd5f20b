"""Motifs that move data otherwise: rows that are loaded ahead."""

from __future__ import annotations

import pytest

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

_SCATTERED = """
class Rows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) { pipe->InitBuffer(queue, 2, room); }
  __aicore__ inline void Process() {
    for (int64_t i = begin; i < end; i++) {
      int64_t place = order.GetValue(i);
      TURN
    }
  }
  __aicore__ inline void CopyIn(int64_t at, int64_t n) {
    LocalTensor<half> a = queue.AllocTensor<half>();
    DataCopy(a, xGm[at * pitch + skipped], n);
    queue.EnQue(a);
  }
  __aicore__ inline void CopyOut(int64_t at) {
    LocalTensor<half> a = queue.DeQue<half>();
    DataCopy(yGm[at * pitch], a, pitch);
    queue.FreeTensor(a);
  }
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 1> queue;
  GlobalTensor<half> xGm, yGm;
  GlobalTensor<int64_t> order;
  int64_t begin, end, pitch, skipped, room, seen;
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Rows op;
  op.Init(x, y, &pipe);
  op.Process();
}
"""


def _found(turn: str, *changes: tuple[str, str]) -> list[str]:
    text = _SCATTERED.replace("TURN", turn)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    before = KernelProgram({"op_kernel/kernel.cpp": text})
    return [r.kernel(before)["op_kernel/kernel.cpp"] for r in find("loaded-ahead").optimize(before)]


@pytest.mark.parametrize(
    ("turn", "step"),
    [
        ("CopyIn(i, pitch); CopyOut(place);", "pitch"),
        (
            "const int64_t row = i - begin; if (place < 0) { continue; } CopyIn(2 * row, pitch); CopyOut(place);",
            "pitch",
        ),
        ("CopyIn(seen, pitch); CopyOut(place); seen += 3;", "(pitch) * (3)"),
        ("CopyIn(i, pitch); CopyOut(i);", "pitch"),  # stored as evenly, and no turn of several rows
    ],
)
def test_rows_that_are_scattered_are_loaded_several_at_a_time(turn: str, step: str) -> None:
    (text,) = _found(turn)
    assert "this->queue.Ahead(static_cast<int64_t>(end) - static_cast<int64_t>(i), " in text
    assert step in text.partition("this->queue.Ahead(")[2].partition(");")[0]
    place = "at * pitch + skipped"
    assert f"if (queue.Wants(a, xGm, {place}, (n) * sizeof(half))) {{ DataCopy(a, xGm[{place}], n); }}" in text


@pytest.mark.parametrize(
    ("turn", "changes"),
    [
        ("CopyIn(place, pitch); CopyOut(i);", ()),  # gathered: no two follow each other
        ("CopyIn(i, pitch * i); CopyOut(i);", ()),  # stored as evenly, and no two of a length
        ("if (place > 0) CopyIn(i, pitch); CopyOut(i);", ()),
        ("CopyIn(i * i, pitch); CopyOut(place);", ()),
        ("CopyIn(begin, pitch); CopyOut(place);", ()),  # the same each time
        ("CopyIn(i, pitch); CopyOut(place);", [("DataCopy(yGm[", "DataCopy(xGm[")]),  # written meanwhile
        ("if (place > 0) { seen += 3; } CopyIn(seen, pitch); CopyOut(place);", ()),
        ("CopyIn(i, pitch); CopyOut(place);", [("DataCopy(a, xGm", "Duplicate(a, one, n); DataCopy(a, xGm")]),
    ],
)
def test_what_does_not_go_on_evenly_is_loaded_by_itself(turn: str, changes: list[tuple[str, str]]) -> None:
    assert not _found(turn, *changes)


_LOAD = "DataCopy(a, xGm[at * pitch + skipped], n);"


def test_a_load_into_the_upper_part_of_a_tensor_leaves_room_for_the_lower_one() -> None:
    branches = f"if constexpr (WIDE) {{ {_LOAD} }} else {{ {_LOAD.replace('(a,', '(a[half_],')} }}"
    (text,) = _found("CopyIn(i, pitch); CopyOut(place);", (_LOAD, branches))
    assert "Wants(a, xGm, at * pitch + skipped, (n) * sizeof(half)))" in text
    assert "Wants(a, xGm, at * pitch + skipped, (n) * sizeof(half), half_))" in text


@pytest.mark.parametrize(
    "loads",
    [
        f"if (n > 0) {{ {_LOAD} }}",  # what is there else?
        f"{_LOAD} {_LOAD.replace('(a,', '(a[half_],')}",  # two rows in one tensor
        _LOAD.replace("(a,", "(a[half_],") + " Adds(a, a, one, n); " + _LOAD,
    ],
)
def test_tensors_that_are_not_filled_by_one_load_are_left_alone(loads: str) -> None:
    assert not _found("CopyIn(i, pitch); CopyOut(place);", (_LOAD, loads))


def test_a_row_of_one_piece_is_a_turn_of_the_loop_over_rows() -> None:
    pieces = "for (int32_t k = 0; k < pieces; k++) { CopyIn(i + k * skip, pitch); CopyOut(place + k); }"
    (text,) = _found(pieces)
    assert "this->queue.Ahead(static_cast<int64_t>(pieces) == 0 + 1 ? static_cast<int64_t>(end)" in text


def test_rows_of_a_class_that_is_derived_from_the_queues() -> None:
    begin, end = (_SCATTERED.index(f"  __aicore__ inline void {name}") for name in ("Process", "CopyIn"))
    process = _SCATTERED[begin:end]
    derived = f"class Sorted : public Rows {{\n public:\n{process}}};\n"
    turn = "CopyIn(i, pitch); CopyOut(place);"
    in_base = process.replace("TURN", turn)
    moved = [
        (in_base, ""),
        ('extern "C"', derived.replace("TURN", turn) + 'extern "C"'),
        ("  Rows op;", "  Sorted op;"),
    ]
    (text,) = _found(turn, *moved)
    assert text.count("this->queue.Ahead(") == 1


def test_tiles_whose_last_one_is_handled_behind_the_loop_are_no_rows() -> None:
    rows = "for (int64_t k = 0; k < tiles; k++) { CopyIn(k, pitch); Sum(); }"
    summed = ("  TQueBind", "  __aicore__ inline void Sum() { Add(sum, sum, queue.DeQue<half>(), n); }\n  TQueBind")
    assert len(_found(rows, summed)) == 1
    assert not _found(rows.replace("k < tiles", "k < tiles - 1"), summed)
