"""Rows that are stored together, and rows that are loaded ahead though they are stored as evenly."""

from __future__ import annotations

import pytest
from motif_example import kernel

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

_PATH = "op_kernel/kernel.cpp"
_TURN = "for (uint32_t i = 0; i < total; i++) { CopyIn(place); Compute(tileLength); CopyOut(i * tileLength); }"
_STORE = "DataCopy(yGm[offset], yLocal, tileLength);"


def _found(*changes: tuple[str, str], motif: str = "stored-together", turn: str = _TURN) -> list[str]:
    text = kernel(process=turn)[_PATH]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    program = KernelProgram({_PATH: text})
    return [r.kernel(program)[_PATH] for r in find(motif).optimize(program)]


def test_rows_are_stored_when_the_tensor_is_full_or_the_loop_ends() -> None:
    (text,) = _found()
    assert "StoredTogether<TQue<QuePosition::VECOUT, 1>> outQueue;" in text
    assert "this->outQueue.Begin(2, tileLength * sizeof(T))" in text
    ahead = "this->outQueue.Ahead(static_cast<int64_t>(total) - static_cast<int64_t>(i), tileLength);"
    assert f"{ahead} CopyOut(i * tileLength); }} this->outQueue.Flush();" in " ".join(text.split())
    assert f"if (this->outQueue.Alone(yGm, offset, (tileLength) * sizeof(T))) {{ {_STORE} }}" in text


@pytest.mark.parametrize(
    "store",
    [
        "DataCopyExtParams one{1, 4, 0, 0, 0}; DataCopyPad(yGm[offset], yLocal, one);",
        "if (tileLength % 8 == 0) { DataCopy(yGm[offset], yLocal, tileLength); } else { "
        "DataCopyPad(yGm[offset], yLocal, DataCopyExtParams{1, tileLength * 4, 0, 0, 0}); }",
        "if (total > 1) { DataCopy(yGm[offset], yLocal, tileLength); }",
        "outQueue.EnQue(yLocal); yLocal = outQueue.DeQue<T>(); DataCopy(yGm[offset], yLocal, tileLength);",
    ],
)
def test_ways_to_store_a_row(store: str) -> None:
    if "EnQue" in store:
        made = "LocalTensor<T> yLocal = outQueue.DeQue<T>();"
        (text,) = _found((_STORE, store), (made, "LocalTensor<T> yLocal = outQueue.AllocTensor<T>();"))
    else:
        (text,) = _found((_STORE, store))
    assert text.count("this->outQueue.Alone(") == store.count("DataCopy(yGm") + store.count("DataCopyPad(yGm")


def test_what_another_class_stores_or_another_function_adds_is_no_obstacle() -> None:
    other = "class Other { __aicore__ inline void Copy() { DataCopy(yGm[0], y, 8); } };\n"
    other += "template <typename T>\nclass Kernel"
    adding = "  __aicore__ inline void Last() { SetAtomicAdd<T>(); DataCopy(zGm, z, 8); SetAtomicNone(); }\n private:\n"
    assert _found(("\ntemplate <typename T>\nclass Kernel", other), (" private:\n", adding))
    calling = adding.replace("DataCopy(zGm, z, 8);", "Process();")
    assert not _found((" private:\n", calling))


def test_what_a_function_of_the_kernels_stores() -> None:
    own = """  template <typename U>
  __aicore__ inline void Out(const GlobalTensor<U>& to, const LocalTensor<U>& row, uint32_t count, uint32_t rows = 1) {
    DataCopy(to, row, count);
  }
"""
    (text,) = _found((_STORE, "Out(yGm[offset], yLocal, tileLength);"), (" private:\n", f" private:\n{own}"))
    assert "(tileLength) * sizeof(T))) { Out(yGm[offset], yLocal, tileLength); }" in text


@pytest.mark.parametrize(
    "changes",
    [
        [("CopyOut(i * tileLength)", "CopyOut(xGm.GetValue(i))")],  # where data say
        [("CopyOut(i * tileLength)", "CopyOut(i * i)")],
        [("CopyOut(i * tileLength)", "CopyOut(total)")],  # the same each time
        [("{ CopyIn(place);", "{ if (i + 1 == total) { tileLength = tail; } CopyIn(place);")],  # not of one length
        [(_STORE, "SetAtomicAdd<T>(); DataCopy(yGm[offset], yLocal, tileLength); SetAtomicNone();")],
        [(_STORE, f"{_STORE} Adds(yLocal, yLocal, one, tileLength);")],  # not only stored
        [(_STORE, f"{_STORE} DataCopy(zGm[offset], yLocal, tileLength);")],  # twice
        [(_STORE, f"for (uint32_t k = 0; k < 3; k++) {{ {_STORE.replace('offset', 'offset + k')} }}")],  # again
        [(_STORE, "DataCopy(yGm[offset], yLocal[8], tileLength);")],
        [(_STORE, "DataCopyPad(yGm[offset], yLocal, DataCopyExtParams{2, 32, 0, 0, 0});")],  # two rows already
        [("DataCopy(xLocal, xGm[offset], tileLength);", "DataCopy(xLocal, yGm[offset], tileLength);")],  # read again
        [("CopyIn(place);", "CopyIn(yGm.GetValue(i));")],
        [("CopyIn(place);", "DataCopy(yGm[place], held, 8); CopyIn(place);")],  # stored elsewhere as well
        [("{ CopyIn(place);", "{ SyncAll(); CopyIn(place);")],  # another core waits for it
        [("CopyIn(place);", "if (i > most) { return; } CopyIn(place);")],  # the loop's end is passed by
        [("CopyOut(i * tileLength);", "if (i > 2) CopyOut(i * tileLength);")],  # no block to put a statement into
        [("CopyIn(place);", "Fill(outQueue); CopyIn(place);")],  # given to somebody
        [("CopyIn(place);", "CopyIn(place); Compute(tileLength); CopyOut(i * tileLength);")],  # two rows by turns
        [("    pipe->InitBuffer(outQueue, 2, tileLength * sizeof(T));\n", "")],  # made elsewhere
        [("LocalTensor<T> yLocal = outQueue.DeQue<T>();", "y = outQueue.DeQue<T>(); LocalTensor<T> yLocal = y;")],
    ],
)
def test_what_is_stored_one_by_one(changes: list[tuple[str, str]]) -> None:
    assert not _found(*changes)


def test_a_class_that_is_derived_may_not_store_otherwise() -> None:
    derived = """
template <typename T>
class More : public Kernel<T> {
 public:
  __aicore__ inline void Last() {
    LocalTensor<T> y = this->outQueue.template DeQue<T>();
    Adds(y, y, one, 8);
    this->outQueue.FreeTensor(y);
  }
};
extern "C" __global__"""
    changes = [('extern "C" __global__', derived), ("  Kernel<float> op;", "  More<float> op;\n  op.Last();")]
    assert not _found(*changes)
    kept = derived[: derived.index("    LocalTensor")] + derived[derived.index("  }\n};") :]
    assert _found((changes[0][0], kept), changes[1])


_BOTH = "for (uint32_t i = 0; i < total; i++) { CopyIn(i * tileLength); Compute(tileLength); CopyOut(i * tileLength); }"


def test_rows_that_are_stored_as_evenly_are_loaded_ahead_where_no_turn_of_several_rows_is_offered() -> None:
    assert _found(motif="rows-per-turn", turn=_BOTH)
    assert not _found(motif="loaded-ahead", turn=_BOTH)
    asked = _BOTH.replace("CopyIn(", "factor = fGm.GetValue(i); CopyIn(")
    assert not _found(motif="rows-per-turn", turn=asked)
    (text,) = _found(motif="loaded-ahead", turn=asked)
    assert "inQueue.Ahead(static_cast<int64_t>(total) - static_cast<int64_t>(i), tileLength);" in text
    shorter = asked.replace("{ factor", "{ if (i + 1 == total) { tileLength = tail; } factor")
    assert not _found(motif="loaded-ahead", turn=shorter)


def test_the_type_of_a_row_is_that_of_its_class_tensor() -> None:
    other = "template <typename U>\nclass Another { GlobalTensor<U> yGm, xGm; };\n"
    text = kernel(process=_TURN)[_PATH].replace('extern "C"', f'{other}extern "C"')
    for motif in ("stored-together", "loaded-ahead"):
        turn = text if motif == "stored-together" else text.replace("CopyIn(place)", "CopyIn(i * tileLength)")
        turn = turn.replace("CopyOut(i * tileLength)", "CopyOut(place)") if motif == "loaded-ahead" else turn
        program = KernelProgram({_PATH: turn})
        (changed,) = (r.kernel(program)[_PATH] for r in find(motif).optimize(program))
        assert "(tileLength) * sizeof(T))) {" in changed


def test_a_queue_that_a_derived_class_makes_is_begun_there() -> None:
    turn = _TURN.replace("CopyIn(place)", "CopyIn(i * tileLength)").replace("CopyOut(i * tileLength)", "CopyOut(place)")
    text = kernel(process=turn)[_PATH]
    derived = """
template <typename T>
class More : public Kernel<T> {
 public:
  __aicore__ inline void Begin(TPipe* pipe) { pipe->InitBuffer(this->inQueue, 2, 4096); }
};
extern "C" __global__"""
    text = text.replace('extern "C" __global__', derived).replace(
        "  Kernel<float> op;", "  More<float> op;\n  op.Begin(p);"
    )
    program = KernelProgram({_PATH: text})
    (changed,) = (r.kernel(program)[_PATH] for r in find("loaded-ahead").optimize(program))
    assert changed.count("inQueue.Begin(") == 2
    assert "InitBuffer(this->inQueue" not in changed


@pytest.mark.parametrize("motif", ["stored-together", "loaded-ahead"])
def test_a_specialization_without_the_queue_is_left_alone(motif: str) -> None:
    turn = _TURN if motif == "stored-together" else _TURN.replace("CopyIn(place)", "CopyIn(i * tileLength)")
    turn = turn if motif == "stored-together" else turn.replace("CopyOut(i * tileLength)", "CopyOut(place)")
    text = kernel(process=turn)[_PATH]
    special = f"""
template <>
class Kernel<half> {{
 public:
  __aicore__ inline void Process() {{
    {turn}
  }}
}};
extern "C" __global__"""
    program = KernelProgram({_PATH: text.replace('extern "C" __global__', special)})
    (changed,) = (r.kernel(program)[_PATH] for r in find(motif).optimize(program))
    assert changed.count(".Ahead(") == 1
    assert ".Ahead(" not in changed.partition("class Kernel<half>")[2]
