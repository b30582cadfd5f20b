"""Places that motifs find in other people's spelling, each with a twin where the same would be wrong or useless."""

from __future__ import annotations

import re

import pytest

from ascendopt_tune.search.kernel.motifs import KernelProgram, find

_PAIR = """event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::{0}));
    SetFlag<HardEvent::{0}>(id); WaitFlag<HardEvent::{0}>(id);"""


def after(motif: str, code: str, auto_sync: bool = False) -> list[str]:
    """The kernel with each of the motif's rewrites."""
    before = KernelProgram({"k.cpp": code}, {}, None, auto_sync)
    return [r.kernel(before)["k.cpp"] for r in find(motif).optimize(before)]


# -- flags in functions of their own -----------------------------------------------------------------------------------

SYNC = """struct K {{
  void Sync() {{ {body} }}
  template <HardEvent event> void SetWait(HardEvent evt) {{
    event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(evt)); SetFlag<event>(id); WaitFlag<event>(id);
  }}
  void Run() {{
    for (int i = 0; i < turns; i++) {{
      LocalTensor<float> x = q.DeQue<float>();
      Exp(x, x, n);
      DataCopy(outGm[i * n], x, n);
      q.FreeTensor(x);
      {call};
    }}
  }}
  GlobalTensor<float> outGm;
}};"""


@pytest.mark.parametrize(
    ("body", "call", "found"),
    [
        (_PAIR.format("V_S"), "Sync()", True),
        (_PAIR.format("V_S"), "this->Sync()", True),
        (_PAIR.format("V_S"), "SetWait<HardEvent::V_S>(HardEvent::V_S)", True),
        (_PAIR.format("V_S"), "SetWait<HardEvent::V_MTE3>(HardEvent::V_MTE3)", False),  # costs nothing
        (_PAIR.format("V_S") + " count++;", "Sync()", False),  # does something else, too
        ("SetFlag<HardEvent::V_S>(ready);", "Sync()", False),  # whoever waits
    ],
)
def test_a_call_of_a_function_that_only_waits_is_a_wait(body: str, call: str, found: bool) -> None:
    rewritten = after("flag-pair", SYNC.format(body=body, call=call))
    assert any(f"{call};" not in text and "WaitFlag<" in text for text in rewritten) is found


@pytest.mark.parametrize(("event", "found"), [("MTE3_MTE2", 1), ("V_S", 0)])
def test_a_store_that_a_function_waits_for_is_waited_for_one_turn_later(event: str, found: int) -> None:
    rewritten = after("deferred-wait", SYNC.format(body="", call=f"SetWait<HardEvent::{event}>(HardEvent::{event})"))
    assert len(rewritten) == found
    for text in rewritten:
        assert f"SetWait<HardEvent::{event}>(HardEvent::{event});" not in text
        assert text.count("AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(storeDone[storesUnderWay % 2]);") == 1


# -- barriers of loops -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turn", "found"),
    [
        ("Sub(y[i * n], x[i * n], m, n);", True),
        ("Sub(y[i * n], x[i * n], y, n);", False),  # reads what the first turn wrote
        ("Max(m, m, x[i * n], n);", False),  # each turn needs the one before
        ("Sub(y[i * n], x[i * n], m, n); Help(i);", False),  # whatever that does
    ],
)
def test_a_barrier_of_each_turn_is_one_behind_a_loop_over_rows(turn: str, found: bool) -> None:
    code = f"void f() {{ for (int i = 0; i < rows; i++) {{ {turn} PipeBarrier<PIPE_V>(); }} Exp(y, y, all); }}"
    rewritten = after("vector-barrier", code)
    assert any("n); }\nPipeBarrier<PIPE_V>(); Exp" in t.replace("  }", " }") for t in rewritten) is found


@pytest.mark.parametrize(
    ("before", "end", "found"),
    [
        ("PipeBarrier<PIPE_V>();", "PipeBarrier<PIPE_V>();", True),
        ("", "PipeBarrier<PIPE_V>();", False),  # no turn, no barrier
        ("PipeBarrier<PIPE_V>();", "", False),
    ],
)
def test_a_barrier_behind_a_loop_that_ends_with_one_is_needless(before: str, end: str, found: bool) -> None:
    loop = f"for (int i = 1; i < rows; i++) {{ Max(m, m, x[i * n], n); {end} }}"
    code = f"void f() {{ DataCopy(m, x, n); {before} {loop} PipeBarrier<PIPE_V>(); Exp(m, m, n); }}"
    rewritten = after("vector-barrier", code)
    assert any(t.endswith("}  Exp(m, m, n); }") and end in t.split("Max")[1] for t in rewritten) is found


# -- products and sums that don't stand side by side -------------------------------------------------------------------

SUM = "void f(LocalTensor<{kind}>& y) {{ for (;;) {{ {made} {between} Add(y, y, x, n); {behind} }} }}"
SCALED = "if (scaled) { Muls(x, x, s, n); }"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({"made": SCALED}, "if (scaled) { Axpy(y, x, s, n); } else { Add(y, y, x, n); }"),
        ({"made": SCALED, "between": "PipeBarrier<PIPE_V>(); q.FreeTensor(z);", "behind": "q.FreeTensor(x);"}, "Axpy"),
        ({"made": "if (scaled) { Mul(x, x, w, n); }"}, "if (scaled) { MulAddDst(y, x, w, n); } else"),
        ({"made": "Muls(x, z, s, n);", "between": "Muls(a, b, s, n);"}, "Axpy(y, z, s, n);"),
        ({"made": SCALED, "behind": "Exp(a, x, n);"}, ""),  # the product is needed
        ({"made": "if (scaled) { Muls(x, z, s, n); }"}, ""),  # what x is otherwise
        ({"made": "if (scaled) { Muls(x, x, s, n); } else { Exp(x, x, n); }"}, ""),
        ({"made": "if (scaled) { Muls(x, x, s, m); }"}, ""),  # of another length
        ({"made": "Muls(x, z, s, n);", "between": "Exp(z, b, n);"}, ""),  # what it is made of has changed
        ({"made": "Muls(x, z, s, n);", "between": "Help(x);"}, ""),
        ({"made": SCALED, "kind": "int32_t"}, ""),  # there is no such instruction
    ],
)
def test_a_product_in_front_of_a_sum_is_made_with_it(holes: dict[str, str], found: str) -> None:
    code = SUM.format(**{"kind": "float", "between": "", "behind": "", **holes})
    rewritten = after("fused-multiply-add", code)
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


@pytest.mark.parametrize(
    ("turn", "found"),
    [
        ("Muls(x, z, s, n); Sub(y, y, x, n);", "Axpy(y, z, -(s), n);"),
        ("Muls(x, z, s, n); Sub(y, x, y, n);", ""),  # the product is what is left
        ("Muls(x, y, s, n); Sub(y, y, x, n);", ""),
        ("Mul(x, z, w, n); Sub(y, y, x, n);", ""),  # there is no such instruction
    ],
)
def test_a_product_that_is_taken_off_is_added_with_the_other_sign(turn: str, found: str) -> None:
    rewritten = after("fused-multiply-add", f"void f(LocalTensor<float>& y) {{ {turn} }}")
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


@pytest.mark.parametrize(("given", "found"), [("half", 1), ("int16_t", 0)])
def test_products_and_sums_of_integers_stay_two(given: str, found: int) -> None:
    code = f"""template <typename T> class K {{
      void Run(LocalTensor<T>& y) {{ Muls(x, z, s, n); Add(y, y, x, n); }}
    }};
    void f() {{ K<float> a; a.Run(y); K<{given}> b; b.Run(y); }}"""
    assert len(after("fused-multiply-add", code)) == found
    of_types = code.replace("Muls(x", "if constexpr (IsFloat<T>::value) { Muls(x").replace("x, n); }", "x, n); } }")
    assert len(after("fused-multiply-add", of_types)) == 1
    members = """template <typename T> class Other { LocalTensor<T> x, y; };
    template <typename T> class K { void Run() { Muls(x, z, s, n); Add(y, y, x, n); }  LocalTensor<T> z, x, y; };"""
    run = f"void f() {{ Other<float> o; K<float> a; a.Run(); K<{given}> b; b.Run(); }}"
    assert len(after("fused-multiply-add", members + run)) == found
    assert (
        len(after("fused-multiply-add", members.replace("Other", "Ints").replace("<T> x, y", f"<{given}> x, y")))
        == found
    )


POLYNOMIAL = """constexpr float A = 2.0f, B = 3.0f;
const float C = -0.5f;
class K {{
  void Run(LocalTensor<{kind}>& y, {parameters}int n) {{ Exp(y, x, n); {turn} }}
}};"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({"turn": "Mul(y, y, x, n); Adds(y, y, 1.0f, n);"}, "PlusScalar(y, x, fusedScalars0.Kept(y, 0, 1.0f), n);"),
        ({"turn": "Mul(y, x, y, n); Adds(y, y, C, n);"}, "PlusScalar(y, x, fusedScalars0.Kept(y, 0, C), n);"),
        (
            {"turn": "Muls(y, y, 2, n); Adds(y, y, -C, n);"},
            "ScaleAndAdd(y, fusedScalars0.Kept(y, 0, 2), fusedScalars0.Kept(y, 1, -C), n);",
        ),
        ({"turn": "Muls(y, y, s, n); Add(y, x, y, n);"}, "TimesScalar(y, fusedScalars0.Anew(y, 0, s), x, n);"),
        ({"turn": "Muls(y, y, 2, n); Sub(y, x, y, n);"}, "TimesScalar(y, fusedScalars0.Kept(y, 0, -(2)), x, n);"),
        ({"turn": "Muls(y, y, 2, n); Sub(y, y, x, n);"}, ""),
        ({"turn": "const float C = s; Mul(y, y, x, n); Adds(y, y, C, n);"}, "Anew(y, 0, C)"),
        ({"turn": "Mul(y, y, x, n); Adds(y, y, C, n);", "parameters": "float C, "}, "Anew(y, 0, C)"),
        ({"turn": "LocalTensor<float>& z = y; Mul(z, y, x, n); Adds(y, z, 1.0f, n);"}, "PlusScalar(z, x, "),
        ({"turn": "Mul(z, y, x, n); Adds(y, z, 1.0f, n);"}, ""),  # the product is somewhere else
        ({"turn": "Mul(y, y, y, n); Adds(y, y, 1.0f, n);"}, ""),  # the factor is overwritten
        ({"turn": "Muls(y, y, s, n); Add(y, y, y, n);"}, ""),
        ({"turn": "Mul(y, y, x, n); Adds(y, y, 1.0f, m);"}, ""),  # of another length
        ({"turn": "Mul(y, y, x, n); Adds(y, y, 1, n);", "kind": "int32_t"}, ""),  # there is no such instruction
    ],
)
def test_scalars_of_products_and_sums_are_blocks(holes: dict[str, str], found: str) -> None:
    code = POLYNOMIAL.format(**{"kind": "float", "parameters": "", **holes})
    rewritten = after("fused-scalars", code)
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


def test_blocks_of_scalars_have_room_made_for_them() -> None:
    code = POLYNOMIAL.format(kind="float", parameters="", turn="Mul(y, y, x, n); Adds(y, y, 1.0f, n);")
    host = "void Tiling() { uint64_t ub; platform.GetCoreMemSize(CoreMemType::UB, ub); }"
    before = KernelProgram({"k.cpp": code}, {"t.cpp": host}, None, False)
    plain, shorter = find("fused-scalars").optimize(before)
    assert plain.tiling(before) == {"t.cpp": host}
    assert "UB, ub); ub -= 1024;" in shorter.tiling(before)["t.cpp"]
    assert shorter.kernel(before) == plain.kernel(before)


def test_a_constant_of_a_block_is_one_of_that_block() -> None:
    turn = "{{ const float D = {}; Mul(y, y, x, n); Adds(y, y, D, n); }}"
    code = POLYNOMIAL.format(kind="float", parameters="", turn=turn.format(1.0) + turn.format(2.0))
    (rewritten,) = after("fused-scalars", code)
    assert "Kept(y, 0, D)" in rewritten
    assert "Kept(y, 1, D)" in rewritten
    assert "FusedScalars<2> fusedScalars0;" in rewritten


# -- rows a turn -------------------------------------------------------------------------------------------------------

ROW = """template <typename T> struct K {{
  void Init() {{ {made} }}
  void Run() {{
    for (int32_t i = 0; i < this->rows; i++) {{ {turn} }}
    {behind}
  }}
  void CopyIn(int32_t progress) {{
    LocalTensor<T> x = in.AllocTensor<T>();
    DataCopy(x, xGm[{source}], this->width);
    in.EnQue(x);
  }}
  void Compute(int32_t progress, uint32_t n) {{
    LocalTensor<T> x = in.DeQue<T>();
    LocalTensor<T> y = out.AllocTensor<T>();
    {compute}
    out.EnQue<T>(y);
    in.FreeTensor(x);
  }}
  void CopyOut(int32_t progress) {{
    LocalTensor<T> y = out.template DeQue<T>();
    {store}
    out.FreeTensor(y);
  }}
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  GlobalTensor<T> xGm, yGm;
}};"""
ROW_A_TURN = {
    "made": "pipe.InitBuffer(in, 2, width * sizeof(T)); pipe.InitBuffer(out, 2, width * sizeof(T));",
    "turn": "CopyIn(i); Compute(i, width); CopyOut(i);",
    "behind": "CopyIn(this->rows); Compute(rows, tail); CopyOut(rows);",
    "source": "progress * this->width",
    "compute": "Muls(y, x, factors.GetValue(progress), n);",
    "store": "DataCopy(yGm[progress * width], y, width);",
}


# -- single values that are stored -------------------------------------------------------------------------------------

SLOTS = """class K {{
  void Run() {{
    LocalTensor<int32_t> one = q.AllocTensor<int32_t>();
    DataCopyExtParams params{{{params}}};
    for (int i = 0; i < n; i++) {{ {turn} }}
    q.FreeTensor(one);
  }}
  template <HardEvent event> void SetWait(HardEvent evt) {{
    event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(evt)); SetFlag<event>(id); WaitFlag<event>(id);
  }}
  GlobalTensor<int32_t> outGm;
}};"""
SINGLE = "1, static_cast<uint32_t>(sizeof(int32_t)), 0, 0, 0"
PUT = "storesOfValues.Put(outGm[to[i]], i * n);"


@pytest.mark.parametrize(
    ("params", "turn", "found"),
    [
        (SINGLE, "one.SetValue(0, i * n); DataCopyPad(outGm[to[i]], one, params);", PUT),
        (
            SINGLE,
            "one.SetValue(0, i * n); SetWait<HardEvent::S_MTE3>(HardEvent::S_MTE3); "
            "DataCopyPad(outGm[to[i]], one, params); SetWait<HardEvent::MTE3_S>(HardEvent::MTE3_S);",
            PUT,
        ),
        (SINGLE, "one.SetValue(0, i * n); SetAtomicAdd<int>(); DataCopyPad(outGm[to[i]], one, params);", PUT),
        ("2, sizeof(int32_t), 0, 0, 0", "one.SetValue(0, i); DataCopyPad(outGm[to[i]], one, params);", ""),
        (SINGLE, "one.SetValue(1, i); DataCopyPad(outGm[to[i]], one, params);", ""),  # another element
        (SINGLE, "one.SetValue(0, i); DataCopyPad(outGm[i], one, params); Adds(x, one, 1, 8);", ""),  # needed again
        (SINGLE, "one.SetValue(0, i); Help(i); DataCopyPad(outGm[i], one, params);", ""),  # whatever that does
        (SINGLE, "one.SetValue(0, i); if (i > n) { DataCopyPad(outGm[i], one, params); }", ""),  # not in each turn
    ],
)
def test_single_values_are_stored_from_slots(params: str, turn: str, found: str) -> None:
    rewritten = after("single-store", SLOTS.format(params=params, turn=turn))
    assert len(rewritten) == bool(found)
    for text in rewritten:
        assert found in text
        assert "StoresOfValues storesOfValues;" in text
        assert "SetWait<HardEvent::" not in text


STORED = "DataCopyExtParams p{1, (uint32_t)(width * sizeof(T)), 0, 0, 0}; DataCopyPad(yGm[progress * width], y, p);"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "out.Row(rowInTurn);\n        Compute((i + rowInTurn), width);\n      }"),
        (
            {"source": "(uint64_t)progress * width"},
            "DataCopy(x, xGm[(uint64_t)progress * width], in.Rows() * (this->width));",
        ),
        ({"source": "start + width * progress"}, "out.Begin(2, 8 * ((width * sizeof(T) + 31) / 32 * 32));"),
        (
            {"store": STORED},
            "DataCopyExtParams p{static_cast<uint16_t>(out.Rows()), (uint32_t)(width * sizeof(T)), 0, 0, 0};",
        ),
        ({"store": STORED.replace("0, 0, 0", "0, 8, 0")}, ""),  # rows are apart
        ({"source": "progress * 2 * width"}, ""),
        ({"source": "progress"}, ""),  # they overlap
        ({"turn": "CopyIn(i); Compute(i, width); CopyOut(i); done = i;"}, ""),  # a turn is more than three calls
        ({"turn": "CopyIn(i); Compute(i, width); CopyOut(0);"}, ""),  # all rows go to one place
        ({"turn": "const uint32_t size = width; CopyIn(i); Compute(i, size); CopyOut(i);"}, ""),
        ({"store": "if (progress > 0) { DataCopy(yGm[progress * width], y, width); }"}, ""),
        ({"store": "DataCopy(yGm[progress * width], y, 8);"}, ""),  # a part of each row
        ({"made": "pipe.InitBuffer(in, 2, width * sizeof(T));"}, ""),  # the other queue is made elsewhere
    ],
)
def test_rows_that_follow_each_other_come_and_go_together(holes: dict[str, str], found: str) -> None:
    rewritten = after("rows-per-turn", ROW.format(**{**ROW_A_TURN, **holes}))
    assert len(rewritten) == (3 if found else 0)  # 8, 4 and 16 rows
    for text in rewritten[:1]:
        assert found in text
        assert "i < this->rows; i += 8) {" in text
        assert re.search(r"out\.Turn\(1, [^;]*\);\n    CopyIn\(this->rows\);", text)


def test_each_loop_over_rows_keeps_what_it_calls_with() -> None:
    more = "for (int32_t r = 0; r < last; r++) { CopyIn(r); Compute(r, tail); CopyOut(r); }"
    text = after("rows-per-turn", ROW.format(**{**ROW_A_TURN, "behind": more}))[0]
    assert "Compute((i + rowInTurn), width);" in text
    assert "Compute((r + rowInTurn), tail);" in text
    assert text.count("rowsOfTurn = ") == 2


def test_queues_of_one_name_in_two_classes_are_told_apart() -> None:
    one = ROW.format(**ROW_A_TURN)
    texts = after("rows-per-turn", one + "\n" + one.replace("struct K", "struct Other"))
    assert len(texts) == 6  # three ways for each class
    assert all(text.count("QueueOfRows<TQue") == 2 for text in texts)


def test_a_meeting_of_cores_leaves_the_barrier_of_each() -> None:
    turns = "for (int i = 0; i < n; i++) { DataCopy(yGm[i * m], y, m); }"
    code = f"void f() {{ {turns} SyncAll(); {turns} AscendC::SyncAll(); }}"
    texts = after("needless-meeting", code)
    assert [text.count("SyncAll") for text in texts] == [0, 1, 1]
    assert texts[0].count("PipeBarrier<PIPE_ALL>();") == 2
    assert " AscendC::PipeBarrier<PIPE_ALL>();" in texts[2]


# -- values, constants, rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "found"),
    [
        ("if (x.GetValue(0) > most) { most = x.GetValue(0); }", "if (value0 > most) { most = value0; }"),
        ("if (x.GetValue(i) > most) { i++; most = x.GetValue(i); }", ""),  # another one
        ("if (x.GetValue(0) > most) { Exp(x, x, n); most = x.GetValue(0); }", ""),  # changed since
        ("if (x.GetValue(0) > most) { most = y.GetValue(0); }", ""),
        ("if (n > 0 && x.GetValue(0) > most) { most = x.GetValue(0); }", ""),  # there may be none
    ],
)
def test_a_value_that_decides_is_read_once(decision: str, found: str) -> None:
    rewritten = after("kept-value", f"void f() {{ for (int i = 0; i < n; i++) {{ {decision} }} }}")
    assert len(rewritten) == bool(found)
    assert all(found in text and "const auto value0 = x.GetValue(0);" in text for text in rewritten)


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        ("Duplicate(c, (T)0, n); Adds(c, c, size, n);", "Muls(y, y, 1 / (size), n);"),
        (
            "Duplicate(c, static_cast<T>(0), n); PipeBarrier<PIPE_V>(); Adds(c, c, size, n);",
            "Muls(y, y, 1 / (size), n)",
        ),
        ("Duplicate(c, 1.0f, n); Muls(c, c, size, n);", "Muls(y, y, 1 / (size), n);"),
        ("Duplicate(c, 2.0f, n); Muls(c, c, size, n);", ""),  # another number
        ("Duplicate(c, (T)0, n); Adds(c, c, size, n / 2);", ""),  # of a part
        ("Duplicate(c, (T)0, n); Adds(c, x, size, n);", ""),
    ],
)
def test_a_number_added_to_zeros_is_a_constant_tensor(fill: str, found: str) -> None:
    rewritten = after("scalar-operand", f"void f() {{ {fill} Div(y, y, c, n); }}")
    assert len(rewritten) == bool(found)
    assert all(found in text and "Duplicate" not in text for text in rewritten)


COPIES = """void f(LocalTensor<half>& to) {{
  for (int32_t i = 0; i < rows; i++) {{
    const int64_t from = static_cast<int64_t>(first) * width + {index} * width + column;
    DataCopy(to[(start + i) * 512], gm[from], n);
  }}
}}
GlobalTensor<half> gm;"""


@pytest.mark.parametrize(
    ("index", "found"),
    [
        ("static_cast<int64_t>(i)", "gm[(static_cast<int64_t>(first) * width + (column))]"),
        ("int64_t(i)", "gm["),
        ("static_cast<int64_t>(start + i)", "static_cast<int64_t>((start))"),  # still of 64 bits
        ("Slot(i)", ""),
        ("static_cast<int64_t>(i * i)", ""),
    ],
)
def test_rows_are_found_behind_casts(index: str, found: str) -> None:
    rewritten = after("strided-copy", COPIES.format(index=index))
    assert len(rewritten) == bool(found)
    assert all(found in text and "(static_cast<int64_t>(1)) * width" in text for text in rewritten)


COPIED_ROWS = """void f(LocalTensor<T>& to, uint32_t one) {{
  int64_t from = first, at = 0;
  DataCopyExtParams one{{1, n * sizeof(T), 0, 0, 0}};
  DataCopyParams many{{rows, 4, 0, 0}};
  for (uint32_t i = begin; i < end; ++i) {{ {turn} }}
}}
GlobalTensor<T> gm;"""


@pytest.mark.parametrize(
    ("turn", "found"),
    [
        (
            "DataCopy(to[at], gm[from], n); from += width; at += 64;",
            ["to[((at))], gm[((from))], AscendC", "from += rowsAtOnce * (width);", "at += rowsAtOnce * (64);"],
        ),
        (
            "DataCopy(to[i * 64], gm[from], n); from += width;",
            ["to[(begin) * (64)], gm[((from))]", "from += rowsAtOnce"],
        ),
        ("DataCopy(to[i * 64], gm[from + i], n); from += width;", []),  # by the counter and by itself
        ("pipe_barrier(PIPE_MTE3); DataCopy(gm[i * width], to[i * 64], n);", ["{ DataCopyPad(gm[(begin) * (width)]"]),
        ("DataCopy(gm[i * width], to[i * 64], {1, 4, 0, 0});", ["static_cast<int64_t>((4) * 32)"]),
        ("DataCopyParams some{1, 4, 0, 0}; DataCopy(gm[i * width], to[i * 64], some);", ["some.blockLen * 32"]),
        (
            "DataCopyExtParams p{1, 0, 0, 0, 0}; p.blockLen = n; DataCopyPad(gm[i * width], to[i * 64], p);",
            ["DataCopyExtParams p{1, 0, 0, 0, 0}; p.blockLen = n; if (p.blockCount == 1"],
        ),
        (
            "if constexpr (b32) { DataCopy(to[i * 64], gm[i * width], n); } else { Help(i); }",
            [
                "if constexpr (b32) { const int64_t rowsAtOnce",
                "else { for (uint32_t i = begin; i < end; ++i) { Help(i); } }",
            ],
        ),
        ("if (b32) { DataCopy(to[i * 64], gm[i * width], n); }", ["else {  }"]),
        ("if (i < n) { DataCopy(to[i * 64], gm[i * width], n); }", []),  # not the same in each turn
        ("DataCopy(to[at], gm[from], n); from += width; at += i;", []),  # further each time
        ("DataCopy(to[at], gm[from], n); from += width;", []),  # all to one place
        ("from += width; DataCopy(to[i * 64], gm[from], n);", []),  # already gone on
        ("DataCopyParams p{rows, 4, 0, 0}; DataCopy(gm[i * width], to[i * 64], p);", []),  # several blocks a turn
        ("DataCopy(gm[i * width], to[i * 64], many);", ["if (many.blockCount == 1"]),  # it may be one
        ("PipeBarrier<PIPE_ALL>(); DataCopy(gm[i * width], to[i * 64], n);", []),  # whatever that waits for
        ("DataCopyExtParams p{1, i, 0, 0, 0}; DataCopyPad(gm[i * width], to[i * 64], p);", []),  # longer each time
    ],
)
def test_rows_a_turn_are_one_copy(turn: str, found: list[str]) -> None:
    rewritten = after("strided-copy", COPIED_ROWS.replace("{turn}", turn).replace("{{", "{").replace("}}", "}"))
    assert len(rewritten) == bool(found)
    assert all(part in text for text in rewritten for part in found)


# -- a matrix of one value a row ---------------------------------------------------------------------------------------

SPREAD = """void f(LocalTensor<{kind}>& x, LocalTensor<{kind}>& m) {{
  uint32_t of[2] = {{{source}}};
  uint32_t to[2] = {{rows, width}};
  {between}
  BroadCast<{kind}, 2, {axis}>(m, v, to, of, work);
  PipeBarrier<PIPE_V>();
  {used}
}}"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "Mul(x[column], x[column], m, static_cast<uint64_t>(columnWidth), static_cast<uint8_t>(rows), AscendC::"),
        ({"used": "Axpy(x, m, s, size);"}, "Axpy(x[column], m, s,"),
        ({"source": "1, width", "axis": "0", "used": "Sub(x, x, m, size);"}, "Sub(x[column], x[column], v[column],"),
        ({"used": "Mul(x, x, m, size); Exp(m, x, size);"}, "if (rowsInPlace1) { Brcb(m, v,"),
        ({"used": "Sub(x, m, x, size);"}, ""),  # the first operand of a difference is no value a row
        ({"used": "Mul(m, x, m, size);"}, "Brcb(work.template ReinterpretCast<float>(), v,"),  # not where it is written
        ({"used": "if (b) { Mul(x, x, m, size); } else { Mul(y, x, m, size); }"}, "else { if (rowsInPlace1 &&"),
        ({"used": "Help(x); Mul(x, x, m, size);"}, "Mul(x[column], x[column], m,"),
        ({"used": "Mul(x, x, m, size); if (b) { Abs(m, x, size); Add(x, x, m, size); }"}, "Mul(x[column], x[column],"),
        ({"used": "Help(v); Mul(x, x, m, size);"}, ""),  # the values may be others
        (
            {"used": "Mul(x, x, m, size); LocalTensor<half> h = m.ReinterpretCast<half>(); Cast(h, x, r, n);"},
            "Brcb(m, v,",
        ),
        ({"used": "Mul(x, x, m, size); LocalTensor<half> h = m.ReinterpretCast<half>(); Exp(x, h, n);"}, ""),
        ({"used": "Mul(x, x, m, size); if (b) { Abs(m, x, size); } Add(x, x, m, size);"}, ""),
        ({"used": "for (;;) { Mul(x, x, m, size); }"}, ""),
        ({"used": "Mul(x, x, m, size); Exp(x, m, size);"}, ""),  # the matrix is needed
        ({"used": "Help(m); Mul(x, x, m, size);"}, ""),
        ({"source": "rows, width"}, ""),
        ({"between": "to[1] = 64;"}, ""),  # another shape
        ({"kind": "int32_t"}, ""),
    ],
)
def test_a_matrix_of_one_value_a_row_is_not_made(holes: dict[str, str], found: str) -> None:
    given = {"kind": "float", "source": "rows, 1", "axis": "1", "between": "", "used": "Mul(x, x, m, size);", **holes}
    rewritten = after("merged-rows", SPREAD.format(**given))
    assert len(rewritten) == bool(found)
    for text in rewritten:
        assert found in text
        assert f"BroadCast<float, 2, {given['axis']}>(m, v, to, of, work);" in text  # where the shapes don't allow it


REPEATED = """void f(LocalTensor<float>& x, LocalTensor<float>& m) {{
  {guard} {{ for (int e = 0; e < rows; e++) {{ int at = e * width; PipeBarrier<PIPE_V>(); {copy} }} }}
  {used}
}}"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "else if (rowsRepeated1) { for (int64_t row = 0; row < static_cast<int64_t>(rows); row++) { Mul(x[row *"),
        ({}, "Mul(x[column], x[column], v[column],"),
        ({"copy": "Adds(m[at], m, 0.0f, width);"}, "Mul(x[column], x[column], m[column],"),  # its first row is the row
        ({"copy": "DataCopy(m[e * width], v, width);"}, "Mul(x[column], x[column], v[column],"),
        ({"copy": "Muls(m[at], v, 2.0f, width);"}, ""),
        ({"copy": "Muls(m[at], v, 1.0f, 64);"}, ""),  # rows with gaps
        ({"copy": "Muls(m[at], v[at], 1.0f, width);"}, ""),  # not one row
        ({"used": "Mul(x, x, m, size); Help(m);"}, ""),
        ({"guard": "if (rows > 1) { Mul(x, x, m, size); }"}, ""),
    ],
)
def test_a_row_is_not_repeated(holes: dict[str, str], found: str) -> None:
    given = {"guard": "if (rows > 1)", "copy": "Muls(m[at], v, 1.0f, width);", "used": "Mul(x, x, m, size);"}
    rewritten = [t for t in after("merged-rows", REPEATED.format(**{**given, **holes})) if "rowsRepeated" in t]
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


COPIED = """void f(LocalTensor<float>& x, LocalTensor<float>& m) {{
  SetMaskCount();
  SetVectorMask<float, MaskMode::{mode}>(width);
  Copy<float, false>(m, v, MASK_PLACEHOLDER, rows, {{1, {blocks}, static_cast<uint16_t>(width / 8), {repeats}}});
  SetMaskNorm();
  ResetMask();
  Mul(x, x, m, width * rows);
}}"""


@pytest.mark.parametrize(
    ("mode", "blocks", "repeats", "found"),
    [
        ("COUNTER", "1", "0", "Mul(x[column], x[column], v[column],"),
        ("COUNTER", "0", "1", "Mul(x[column], x[column], v, static"),
        ("COUNTER", "1", "8", ""),  # a matrix
        ("NORMAL", "1", "0", ""),
    ],
)
def test_a_copied_row_is_not_repeated(mode: str, blocks: str, repeats: str, found: str) -> None:
    rewritten = after("merged-rows", COPIED.format(mode=mode, blocks=blocks, repeats=repeats))
    assert len(rewritten) == bool(found)
    assert all(found in text and "if (!rowsCopied1)" in text for text in rewritten)


def test_matrices_of_one_function_have_names_of_their_own() -> None:
    one = SPREAD.format(kind="float", source="rows, 1", axis="1", between="", used="Mul(x, x, m, size);")
    twice = one.replace("  Mul(x", "  Mul(x, x, m, size); BroadCast<float, 2, 1>(m, v, to, of); Mul(x")
    assert [f"rowsInPlace{k}" in text for text, k in zip(after("merged-rows", twice), (1, 2), strict=True)] == [
        True
    ] * 2


@pytest.mark.parametrize(("end", "behind", "wanted"), [(True, False, 1), (True, True, 0), (False, False, 0)])
def test_rows_at_once_end_with_the_barrier_that_ended_each(end: bool, behind: bool, wanted: int) -> None:
    barriers = ["PipeBarrier<PIPE_V>();" if there else "" for there in (end, behind)]
    turn = f"Sub(y[i * n], x[i * n], m, n); {barriers[0]}"
    code = f"void f(LocalTensor<float>& y) {{ for (int i = 0; i < rows; i++) {{ {turn} }} {barriers[1]} }}"
    (text,) = after("merged-rows", code)
    at_once, one_by_one = text.split(" else ")
    assert at_once.count("PipeBarrier") == wanted
    assert one_by_one.count("PipeBarrier") == end + behind


# -- one buffer or two -------------------------------------------------------------------------------------------------

TILES = """constexpr int32_t BUFFERS = {number};
class K {{
  void Init(TPipe* pipe) {{ pipe->InitBuffer(q, {said}, 512); }}
  void Run() {{ for (int i = 0; i < tiles; i++) {{ CopyIn(i); Compute(i); }} }}
  void CopyIn(int i) {{ LocalTensor<half> x = q.AllocTensor<half>(); DataCopy(x, gm[i * n], n); q.EnQue(x); }}
  void Compute(int i) {{ LocalTensor<half> x = q.DeQue<half>(); Exp(y, x, n); q.FreeTensor(x); }}
  void Power({parameter}) {{}}
  TQue<TPosition::VECIN, BUFFERS> q;
}};"""


@pytest.mark.parametrize(
    ("number", "said", "found"), [(1, "BUFFERS", 0), (2, "BUFFERS", 1), (2, "1", 0), (2, "tiling.n", 1)]
)
def test_the_next_tile_is_asked_for_where_there_may_be_a_buffer_for_it(number: int, said: str, found: int) -> None:
    assert len(after("early-fetch", TILES.format(number=number, said=said, parameter=""))) == found


@pytest.mark.parametrize("depth", ["1", "DEPTH"])
def test_a_queue_holds_the_next_tile_beside_the_one_that_is_worked_on(depth: str) -> None:
    code = "constexpr int32_t DEPTH = 1;\n" + TILES.format(number=2, said="2", parameter="")
    (text,) = after("early-fetch", code.replace("VECIN, BUFFERS> q", f"VECIN, {depth}> q, other"))
    assert "TQue<TPosition::VECIN, 2> q, other;" in text


@pytest.mark.parametrize(
    ("parameter", "more", "found"),
    [
        ("", "", "InitBuffer(q, BUFFERS, 512)"),
        ("TQue<TPosition::VECIN, 1> given, float x", "", "void Power(TQue<TPosition::VECIN, BUFFERS> given, float x)"),
        ("TQue<TPosition::VECIN, 1> given, float x", "TQue<TPosition::VECIN, 1> r;", ""),  # which of them is given?
    ],
)
def test_a_number_of_buffers_changes_in_all_types_that_have_it(parameter: str, more: str, found: str) -> None:
    code = TILES.format(number=1, said="BUFFERS", parameter=parameter).replace(
        "  TQue<TPosition::VECIN, B", f"  {more} TQue<TPosition::VECIN, B"
    )
    rewritten = after("double-buffer", code)
    assert len(rewritten) == bool(found)
    assert all(found in text and "BUFFERS = 2;" in text for text in rewritten)


# -- a copy or a cast --------------------------------------------------------------------------------------------------

CHOICE = """template <typename T> void f() {{
  {made} {between}
  LocalTensor<T> y = out.AllocTensor<T>();
  if constexpr ({condition}) {{ {copied} }} else {{ Cast(y, a, RoundMode::CAST_RINT, n); }}
  {behind}
}}"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "if constexpr (same) { Muls(y, a, s, n); } else { Muls(a, a, s, n);"),
        (
            {"copied": "Adds(y, a, 0.0f, n);", "between": "PipeBarrier<PIPE_V>();"},
            "Muls(a, a, s, n); PipeBarrier<PIPE_V>();",
        ),
        ({"copied": "Muls(y, a, (float)1.0, n);"}, "{ Muls(y, a, s, n); }"),
        ({"copied": "Muls(y, a, 2.0f, n);"}, ""),
        ({"behind": "Exp(b, a, n);"}, ""),  # what was made is needed
        ({"between": "Exp(b, a, n);"}, ""),
        ({"between": "Help();"}, ""),
        ({"made": "Axpy(a, b, s, n);"}, ""),  # adds to what is there
        ({"copied": "DataCopy(y, b, n);"}, ""),
    ],
)
def test_what_is_copied_where_the_types_agree_is_made_there(holes: dict[str, str], found: str) -> None:
    given = {
        "made": "Muls(a, a, s, n);",
        "between": "",
        "condition": "same",
        "copied": "DataCopy(y, a, n);",
        "behind": "",
    }
    rewritten = [
        t for t in after("extra-copy", CHOICE.format(**{**given, **holes})) if "else { Muls(a" in " ".join(t.split())
    ]
    assert len(rewritten) == bool(found)
    assert all(found in " ".join(text.split()) for text in rewritten)


# -- single values -----------------------------------------------------------------------------------------------------

FETCH = """class K {{
  void CopyIn(int i) {{
    LocalTensor<int32_t> id = ids.AllocTensor<int32_t>();
    LocalTensor<float> row = rows.AllocTensor<float>();
    DataCopyExtParams one{{{params}}};
    DataCopyPad(id, idGm[first + i], one, pad);
    {behind}
    rows.EnQue(row);
  }}
  void Compute() {{
    LocalTensor<int32_t> taken = ids.DeQue<int32_t>();
    {use}
    ids.FreeTensor(taken);
  }}
  void Run() {{ for (int i = 0; i < n; i++) {{ CopyIn(i); Compute(); }} }}
  GlobalTensor<int32_t> idGm;
  GlobalTensor<float> rowGm, outGm;
}};"""
ONE = "1, static_cast<uint32_t>(sizeof(int32_t)), 0, 0, 0"
HERE = "DataCopy(row, rowGm[id.GetValue(0) * n], n); ids.FreeTensor(id);"


@pytest.mark.parametrize(
    ("params", "behind", "use", "found"),
    [
        (ONE, HERE, "", "const auto copiedValue0 = idGm.GetValue(first + i);"),
        ("1, sizeof(uint32_t), 0, 0, 0", HERE, "", "rowGm[copiedValue0 * n]"),
        (ONE, f"SetFlag<HardEvent::MTE2_S>(e); WaitFlag<HardEvent::MTE2_S>(e); {HERE}", "", "const auto copiedValue0"),
        (ONE, "ids.EnQue(id);", "int k = taken.GetValue(0); Help(k);", "id.SetValue(0, idGm.GetValue(first + i));"),
        (ONE, "ids.EnQue(id);", "Adds(y, x, taken(0), n);", "id.SetValue(0, idGm.GetValue(first + i));"),
        (ONE, "ids.EnQue(id);", "Cast(x, taken, RoundMode::CAST_NONE, 8);", ""),  # a vector instruction reads it
        (ONE, "ids.EnQue(id);", "int k = taken.GetValue(1);", ""),  # so it can't be a copy of one
        ("1, 8 * sizeof(int32_t), 0, 0, 0", HERE, "", ""),  # several values
        ("n, sizeof(int32_t), 0, 0, 0", HERE, "", ""),  # a block each
        (ONE, f"{HERE} DataCopyPad(idGm[i], x, one);", "", ""),  # the tensor is stored to
        (ONE, f"{HERE} Help(id);", "", ""),  # whatever that does
    ],
)
def test_a_single_value_for_the_scalar_unit_needs_no_copy(params: str, behind: str, use: str, found: str) -> None:
    rewritten = after("single-value", FETCH.format(params=params, behind=behind, use=use))
    assert len(rewritten) == bool(found)
    for text in rewritten:
        assert found in text
        assert "DataCopyPad(id," not in text
        assert "MTE2_S" not in text


# -- elements of global memory -----------------------------------------------------------------------------------------

ELEMENTS = """class K {{
  void Run(int begin) {{
    int cnt = begin, last = 0;
    for (int row = 0; row < rows; row++) {{
      int k = 0;
      {loop}
    }}
  }}
  {more}
  GlobalTensor<T> xGm, yGm;
  LocalTensor<T> ub;
  LocalTensor<half> other;
  int rows, n;
}};"""


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        (
            "while (k < n && k - row <= d) { T v = xGm.GetValue(cnt); yGm.SetValue(cnt, v); k++; cnt++; }",
            ".Copy(yGm[cnt]",
        ),
        ("for (k = 0; k < n; k++) { yGm.SetValue(k + cnt, T(0)); }", ""),  # what k is in the first turn isn't declared
        ("for (; k < n; ++k) { yGm.SetValue(begin + k, 0); }", ".Fill(yGm[begin + k], 0, turnsAtOnce);"),
        ("for (; k < n; ++k) { yGm.SetValue(k * (n + 1), 1); }", ".Fill(yGm[k * (n + 1)], 1, turnsAtOnce, (n + 1));"),
        ("for (int i = 0; i < n; i++) { if (i < row) yGm.SetValue(i, 0); }", "turned = turnsAtOnce < turned"),
        (
            "for (int i = 0; i < n; i++) { if (cnt > last) { break; } yGm.SetValue(cnt, 0); cnt += 2; }",
            "turnsAtOnce * (2)",
        ),
        ("for (int i = 0; i < n; i++) { last = i * n + row; yGm.SetValue(last, 0); }", ".Fill(yGm[(i * n + row)], 0"),
        ("for (int i = 0; i < n; i++) { last = i * n; yGm.SetValue(last, 0); } Help(last);", ""),  # needed behind it
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, i); }", ""),  # another value each turn
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i * i, 0); }", ""),
        ("for (int i = 0; i < n; i++) { yGm.SetValue(ids.GetValue(i), 0); }", ""),  # wherever that is
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, xGm.GetValue(2 * i)); }", ""),  # every other element
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, yGm.GetValue(i + n)); }", ""),  # through the data cache
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, 0); } yGm.SetValue(n, 1);", ""),  # and so
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, 0); if (i == row) { continue; } }", ""),
        (
            "for (int i = 0; i < n; i++) { ub.SetValue(i, xGm.GetValue(row * n + i)); }",
            "DataCopyPad(ub[i], xGm[row * n + i]",
        ),
        (
            "for (int i = r; i < n; i++) { ub.SetValue(i, xGm.GetValue(i)); }",
            "static_cast<int64_t>(i) * sizeof(T)) % 32 == 0",
        ),
        ("for (int i = 0; i < n; i++) { xGm.SetValue(i, ub.GetValue(i)); }", "DataCopyPad(xGm[i], ub[i]"),
        ("for (int i = 0; i < n; i++) { other.SetValue(i, xGm.GetValue(i)); }", ""),  # of another type
        ("for (int i = 0; i < n; i++) { ub.SetValue(i, (half)xGm.GetValue(i)); }", ""),  # rounded on the way
        ("for (int i = 0; i < n; i++) { ub.SetValue(i, xGm.GetValue(i)); sum += i; Help(i); }", ""),
    ],
)
def test_elements_of_global_memory_are_moved_by_copies(loop: str, found: str) -> None:
    rewritten = after("copied-elements", ELEMENTS.format(loop=loop, more=""))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)
    if ".SetValue(cnt, v)" in loop:  # not where the class reads the tensor by the scalar unit elsewhere
        assert not after("copied-elements", ELEMENTS.format(loop=loop, more="T Last() { return yGm.GetValue(n); }"))


# -- elements that each turn reads and sets ----------------------------------------------------------------------------

KEPT = """void f(LocalTensor<float>& x, LocalTensor<float>& y) {{
  for (int row = 0; row < rows; row++) {{
    int last = row;
    for (int i = 1; i < n; i++) {{ {turn} }}
  }}
}}"""


@pytest.mark.parametrize(
    ("turn", "found"),
    [
        ("y.SetValue(row, y.GetValue(row) + x.GetValue(row * n + i));", "keptElement = keptElement + x.GetValue(row"),
        (
            "float a = y.GetValue(0); if (a < x.GetValue(i)) y.SetValue(0, x.GetValue(i));",
            "y.SetValue(0, keptElement); }",
        ),
        ("y.SetValue(n, y.GetValue(n) * y.GetValue(i));", "keptElement = keptElement * y.GetValue(i);"),
        ("y.SetValue(i, y.GetValue(i) + 1);", ""),  # another one each turn
        ("last = i; y.SetValue(last, y.GetValue(last) + 1);", ""),
        ("y.SetValue(0, y.GetValue(0) + 1); y.SetValue(i, 0);", ""),  # it may be the same
        ("y.SetValue(0, y.GetValue(0) + 1); Adds(y, y, s, n);", ""),  # which reads it
        ("y.SetValue(0, y.GetValue(0) + 1); if (x.GetValue(i) > 0) return;", ""),  # past the end
        ("y.SetValue(Slot(), y.GetValue(Slot()) + 1);", ""),  # wherever that is
    ],
)
def test_an_element_that_each_turn_sets_is_kept_over_the_loop(turn: str, found: str) -> None:
    rewritten = [text for text in after("kept-value", KEPT.format(turn=turn)) if "keptElement" in text]
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


# -- elements of the Unified Buffer set to a value ---------------------------------------------------------------------

FILLED = """void f(LocalTensor<float>& x, LocalTensor<T>& y, LocalTensor<uint32_t>& z, GlobalTensor<float>& out) {{
  int k = 0;
  {loop}
}}"""


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        ("for (int i = 0; i < n; i++) { x.SetValue(i, 1.0f); }", "Duplicate(x, 1.0f, n);"),  # from the beginning
        ("for (int i = n; i < m; i++) { x.SetValue(i, s); }", "SetElements::Of(x, i, turnsAtOnce, s);"),
        (
            "for (int i = 0; i < n; i++) { x.SetValue(m - i - 1, s); }",
            "Of(x, m - i - 1 - (turnsAtOnce - 1), turnsAtOnce",
        ),
        ("while (k < n) { x.SetValue(k, s); k++; }", "k += turnsAtOnce;"),
        ("for (int i = 0; i < n; i++) { x.SetValue(i, 0); y.SetValue(i + m, 1); }", "Of(y, i + m, turnsAtOnce, 1);"),
        (
            "for (int i = n; i < m; i++) { if constexpr (B16) { y.SetValue(i, 1); } else { y.SetValue(i, 2); } }",
            "if constexpr (!(B16)) { SetElements::Of(y, i, turnsAtOnce, 2); }",
        ),
        ("for (int i = n; i < m; i++) { x.SetValue(2 * i, s); }", ""),  # every other one
        ("for (int i = n; i < m; i++) { x.SetValue(i, i); }", "Rising(x, i, turnsAtOnce, static_cast<int64_t>(i), "),
        ("for (int i = 0; i < m; i++) { z.SetValue(i, (n + i) * 4); }", "static_cast<int64_t>((n + i) * 4), "),
        ("for (int i = n; i < m; i++) { x.SetValue(i, 0.5f + i); }", ""),  # no integers
        ("for (int i = n; i < m; i++) { x.SetValue(i, i * i); }", ""),
        ("for (int i = n; i < m; i++) { if (i < k) { x.SetValue(i, s); } }", ""),  # from somewhere to somewhere
        ("for (int i = n; i < m; i++) { out.SetValue(i, s); }", ""),  # in global memory
        ("for (int i = n; i < m; i++) { if (Odd(i)) { x.SetValue(i, s); } }", ""),
    ],
)
def test_elements_are_set_to_a_value_at_once(loop: str, found: str) -> None:
    rewritten = after("scalar-loop", FILLED.format(loop=loop))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


@pytest.mark.parametrize(
    ("before", "behind", "waits"),
    [
        ("DataCopy(x, out, m);", "q.EnQue(x);", ["MTE2_V"]),
        ("", "DataCopy(out, x, m);", ["V_MTE3"]),
        ("", "q.EnQue(x); x = q.DeQue<float>(); DataCopy(out, x, m);", []),  # the queue's flag
        ("DataCopy(y, out, m);", "DataCopy(out, y, m);", []),
    ],
)
def test_copies_of_elements_that_are_set_at_once_are_waited_for(before: str, behind: str, waits: list[str]) -> None:
    loop = f"{before} for (int i = n; i < m; i++) {{ x.SetValue(i, s); }} {behind}"
    (rewritten,) = after("scalar-loop", FILLED.format(loop=loop), auto_sync=True)
    assert re.findall(r"SetElements::Wait<AscendC::HardEvent::(\w+)>\(\);", rewritten) == waits


# -- what is the same in each turn -------------------------------------------------------------------------------------

ROWS = """class K {{
  void Run() {{
    LocalTensor<half> scale = scaleBuf.Get<half>();
    {before}
    for (int i = 0; i < rows; i++) {{ {again} Load(i); Row(i, scale); }}
  }}
  void Load(int i) {{ LocalTensor<half> x = q.AllocTensor<half>(); DataCopy(x, xGm[i * n], n); q.EnQue(x); }}
  void Row(int i, LocalTensor<half>& scale) {{
    LocalTensor<float> work = workBuf.Get<float>();
    LocalTensor<half> x = q.DeQue<half>();
    {cast}
    {behind}
    q.FreeTensor(x);
  }}
  TQue<QuePosition::VECIN, 1> q;
  TBuf<TPosition::VECCALC> workBuf, scaleBuf;
  GlobalTensor<half> xGm, scaleGm;
  uint32_t n, rows;
}};"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        (
            {},
            "{ Cast(keptTensor0At, scale, RoundMode::CAST_NONE, n); } Mul(y, y, keptTensor0At, n); Exp(work, y, n);",
        ),
        ({"cast": "Cast(work, x, RoundMode::CAST_NONE, n);"}, ""),  # another row
        ({"again": "DataCopy(scale, scaleGm[i * n], n);"}, ""),  # loaded in each turn
        ({"again": "Exp(scale, scale, n);"}, ""),
        ({"again": "auto part = scale[8]; Exp(part, part, n);"}, ""),
        ({"behind": "Axpy(work, x, s, n);"}, ""),  # adds to what was cast
        ({"behind": "for (int k = 0; k < 2; k++) { Mul(y, y, work, n); Exp(work, y, n); }"}, ""),
        ({"behind": "Help(work);"}, ""),  # nobody knows who reads it
        (
            {"cast": "Duplicate(work, 1.0f, n);", "behind": "Div(y, work, y, n);"},
            "if (keptTensor0.anew) { Duplicate(keptTensor0At, 1.0f, n); } Div(y, keptTensor0At, y, n);",
        ),
        ({"cast": "Duplicate(work, 1.0f, n);"}, ""),  # Muls is better
        ({"cast": "Duplicate(work, (float)i, n);"}, ""),  # another number
        ({"cast": "Muls(work, scale, factor, n);"}, "if (keptTensor0.anew) { Muls(keptTensor0At, scale, factor, n); }"),
        ({"cast": "Muls(work, scale, (float)i, n);"}, ""),
        ({"cast": "Mul(work, scale, x, n);"}, ""),  # another row
        ({"cast": "Mul(work, scale, work, n);"}, ""),
        ({"cast": "if (odd) { Cast(work, scale, RoundMode::CAST_NONE, n); }"}, ""),  # who reads it without
        (
            {"cast": "DataCopy(half0, scaleGm, n); Cast(work, half0, RoundMode::CAST_NONE, n);"},
            "if (keptTensor0.anew) { DataCopy(half0, scaleGm, n); } if (keptTensor0.anew) { Cast(keptTensor0At,",
        ),
        (
            {"cast": "DataCopy(half0, scaleGm, n); Cast(work, half0, mode, n); Exp(y, half0, n);"},  # two who read it
            "Cast(work, keptTensor0At, mode, n); Exp(y, keptTensor0At, n);",
        ),
        ({"before": "for (;;) { pipe->Reset(); }"}, ""),  # memory is dealt out anew
    ],
)
def test_what_is_the_same_in_each_turn_is_done_once(holes: dict[str, str], found: str) -> None:
    given = {
        "before": "DataCopy(scale, scaleGm, n);",
        "again": "",
        "cast": "Cast(work, scale, RoundMode::CAST_NONE, n);",
        "behind": "Mul(y, y, work, n); Exp(work, y, n);",
    }
    rewritten = [" ".join(t.split()) for t in after("done-once", ROWS.format(**{**given, **holes}))]
    assert len(rewritten) == bool(found)
    assert all(found in text and text.count("KeptTensor keptTensor0;") == 1 for text in rewritten)


def test_it_is_done_again_where_an_outer_loop_brings_something_new() -> None:
    code = ROWS.replace("{before}", "for (int j = 0; j < groups; j++) {{ DataCopy(scale, scaleGm[j * n], n);")
    code = code.replace("Row(i, scale); }}", "Row(i, scale); }} }}", 1)
    given = {"again": "", "cast": "Cast(work, scale, RoundMode::CAST_NONE, n);", "behind": "Mul(y, y, work, n);"}
    (rewritten,) = after("done-once", code.format(**given))
    assert "DataCopy(scale, scaleGm[j * n], n);\n    keptTensor0.Forget();" in rewritten


HELD = """class K {{
  void Init(TPipe* pipe) {{ pipe->InitBuffer(q, 2, n * 4); pipe->InitBuffer(list, 2, n * 4); {made} }}
  void Run() {{ for (int i = 0; i < rows; i++) {{ Load(i); Use(i); }} }}
  void Load(int i) {{
    LocalTensor<float> x = q.AllocTensor<float>(); DataCopy(x, xGm[i * n], n); q.EnQue(x);
    if (some) {{ LocalTensor<float> all = list.AllocTensor<float>(); {fill} list.EnQue(all); }}
  }}
  void Use(int i) {{
    LocalTensor<float> x = q.DeQue<float>(), all = list.DeQue<float>();
    {use} DataCopy(yGm[i * n], x, n);
    list.FreeTensor(all); q.FreeTensor(x);
  }}
  TQue<QuePosition::VECIN, 1> q, list;
  GlobalTensor<float> xGm, yGm, listGm;
  uint32_t n, rows, at;
}};"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "if (list.Wants(0, n)) { DataCopy(all, listGm, n); }"),
        ({"fill": "DataCopy(all, listGm[at], n);"}, "if (list.Wants(0, n)) { DataCopy(all, listGm[at], n); }"),
        ({"fill": "Duplicate(all, 1.0f, n);"}, "if (list.Wants(0, n)) { Duplicate(all, 1.0f, n); }"),
        ({"fill": "DataCopy(all, listGm, n); Muls(all, all, s, n);"}, ""),
        ({"fill": "DataCopy(all, listGm[at], n); at += n;"}, ""),  # moves on
        ({"fill": "DataCopy(all, listGm[i * n], n);"}, ""),
        ({"fill": "DataCopy(all, yGm, n);"}, ""),  # somebody stores there
        ({"use": "Mul(all, all, x, n);"}, ""),  # written by who takes it
        ({"use": "auto part = all[8]; Mul(part, part, x, n);"}, ""),
        ({"fill": "auto part = all[8]; DataCopy(all, listGm, n); DataCopy(part, xGm[i * n], n);"}, ""),
        ({"use": "if (list.HasTensorInQue()) { return; }"}, ""),
        ({"use": "Help(list);"}, ""),
    ],
)
def test_a_queue_that_is_given_the_same_each_turn_is_filled_once(holes: dict[str, str], found: str) -> None:
    given = {"made": "", "fill": "DataCopy(all, listGm, n);", "use": "Mul(x, x, all, n);"}
    rewritten = [" ".join(t.split()) for t in after("held-tile", HELD.format(**{**given, **holes}))]
    assert len(rewritten) == bool(found)
    for text in rewritten:
        assert found in text
        assert "HeldTile<TQue<QuePosition::VECIN, 1>, 1> list;" in text
        assert "list.Begin(2, n * 4)" in text
        assert "TQue<QuePosition::VECIN, 1> q;" in text


KNOWN = """class K {{
  void Run() {{ for (int i = 0; i < rows; i++) {{ for (int k = 0; k < parts; k++) {{ In(i, k); Out(i, k); }} }} }}
  void In(int i, int k) {{ {first} }}
  void Out(int i, int k) {{ {second} }}
  GlobalTensor<float> aGm, bGm, yGm;
  int rows, parts;
}};"""


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("Muls(x, x, aGm.GetValue(0), n);", "", "knownValue0.Of(aGm, 0)"),
        ("Muls(x, x, aGm.GetValue(i), n);", "", "knownValue0.Of(aGm, i)"),  # a row's parts have one
        ("Muls(x, x, aGm.GetValue(i * parts + k), n);", "", ""),  # another one each turn
        (
            "s = aGm.GetValue(k);",
            "DataCopy(yGm[aGm.GetValue(k)], x, n);",
            "DataCopy(yGm[knownValue0.Of(aGm, k)], x, n);",
        ),
        ("s = aGm.GetValue(k);", "s = bGm.GetValue(k);", ""),
        ("s = aGm.GetValue(0);", "aGm.SetValue(0, s);", ""),  # written
        ("s = yGm.GetValue(0);", "DataCopy(yGm, x, n);", ""),
        ("s = aGm.GetValue(0);", "aGm.SetGlobalBuffer(next);", ""),  # moves
        ("s = x.GetValue(0);", "", ""),  # not in global memory
    ],
)
def test_what_is_read_again_in_another_turn_or_method_is_remembered(first: str, second: str, found: str) -> None:
    rewritten = after("known-value", KNOWN.format(first=first, second=second))
    assert len(rewritten) == bool(found)
    assert all(found in text and "KnownValue<float> knownValue0;" in text for text in rewritten)


def test_a_class_whose_template_is_a_macro_is_known() -> None:
    code = KNOWN.format(first="Muls(x, x, aGm.GetValue(0), n);", second="")
    (text,) = after("known-value", f"#define OF_TYPES template <typename T>\nOF_TYPES\n{code}")
    assert text.index("class KnownValue") < text.rindex("OF_TYPES") < text.index("class K {")


TAKEN = """class K {{
  void Run() {{ for (int i = 0; i < rows; i++) {{ Row(i); }} }}
  void Row(int i) {{
    LocalTensor<float> work = workBuf.Get<float>();
    LocalTensor<float> w = q.AllocTensor<float>();
    {also} {load}
    q.EnQue(w);
    auto factors = q.DeQue<float>();
    {use}
    q.FreeTensor(factors);
  }}
  TQue<QuePosition::VECIN, 1> q;
  TBuf<TPosition::VECCALC> workBuf;
  GlobalTensor<float> xGm, wGm;
  uint32_t n, rows;
}};"""
_ONCE = (
    "w = q.AllocTensor<float>(); } if (keptTensor0.anew) { DataCopy(w, wGm, n); } if (keptTensor0.anew) { q.EnQue(w); }"
)


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, _ONCE),
        (
            {"also": "DataCopy(work, xGm[i * n], n);"},  # which the queue's wait orders, too
            "if (keptTensor0.anew) { DataCopy(w, wGm, n); } q.EnQue(w); auto factors = q.DeQue<float>(); "
            "if (keptTensor0.anew) { keptTensor0.Keep(factors); }",
        ),
        ({"load": "DataCopy(w, wGm[i * n], n);"}, ""),
        ({"load": "DataCopy(w, wGm, n); DataCopy(w[n], wGm, n);"}, ""),
        ({"use": "Mul(factors, work, factors, n);"}, ""),
        ({"use": "s = factors.GetValue(0);"}, ""),
        ({"use": "DataCopy(yGm[i * n], factors, n);"}, ""),  # needs another wait
        ({"use": "if (odd) { return; }"}, ""),
    ],
)
def test_what_a_method_takes_from_a_queue_is_kept_where_it_is_the_same(holes: dict[str, str], found: str) -> None:
    given = {"also": "", "load": "DataCopy(w, wGm, n);", "use": "Mul(work, work, factors, n); Exp(work, factors, n);"}
    rewritten = [" ".join(t.split()) for t in after("done-once", TAKEN.format(**{**given, **holes}))]
    assert len(rewritten) == bool(found)
    assert all(found in text and "Mul(work, work, keptTensor0At, n);" in text for text in rewritten)


def test_a_part_of_what_stays_that_moves_is_not_the_same() -> None:
    code = ROWS.replace("Row(i, scale);", "Row(i, scale[i * n]);")
    given = {"before": "", "again": "", "cast": "Cast(work, scale, RoundMode::CAST_NONE, n);"}
    texts = [code, code.replace("[i * n])", "[n])")]
    given |= {"before": "DataCopy(scale, scaleGm, n);", "behind": "Mul(y, y, work, n);"}
    assert [len(after("done-once", text.format(**given))) for text in texts] == [0, 1]


TWICE = """class K {{
  void Row(int i) {{
    LocalTensor<half> x = q.DeQue<half>();
    LocalTensor<float> a = aBuf.Get<float>(), b = bBuf.Get<float>();
    {first}
    {between}
    {second}
    {behind}
    q.FreeTensor(x);
  }}
  TQue<QuePosition::VECIN, 1> q;
  TBuf<TPosition::VECCALC> aBuf, bBuf;
  int n;
}};"""
_CAST = "Cast(a, x, RoundMode::CAST_NONE, n);"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        (
            {},
            "Cast(keptTensor0At, x, RoundMode::CAST_NONE, n); Exp(b, keptTensor0At, n); Exp(a, b, n); Mul(b, a, b, n);",
        ),
        ({"between": "Exp(b, a, n); Exp(x, x, n); Exp(a, b, n);"}, ""),  # another source
        ({"between": "Exp(b, a, n); n = n / 2; Exp(a, b, n);"}, ""),
        ({"between": "Exp(b, a, n); q.FreeTensor(x); x = q.DeQue<half>(); Exp(a, b, n);"}, ""),
        ({"between": "Exp(b, a, n); Axpy(a, b, s, n);"}, ""),  # adds to what was cast
        ({"second": "Cast(a, y, RoundMode::CAST_NONE, n);"}, ""),
    ],
)
def test_what_was_cast_is_not_cast_again(holes: dict[str, str], found: str) -> None:
    given = {"first": _CAST, "between": "Exp(b, a, n); Exp(a, b, n); Mul(b, a, b, n);", "second": _CAST}
    given |= {"behind": "Add(b, b, a, n);", **holes}
    rewritten = [" ".join(t.split()) for t in after("cast-once", TWICE.format(**given))]
    assert len(rewritten) == bool(found)
    assert all(found in text and given["first"] not in text for text in rewritten)


# -- a fill that one core does for all ---------------------------------------------------------------------------------

FILL = """class K {{
  void Init(GM_ADDR y) {{ {index} yGm.SetGlobalBuffer((__gm__ float*)y); if ({condition}) {{ {body} }} SyncAll(); }}
  GlobalTensor<float> yGm; uint32_t mine;
}};"""


@pytest.mark.parametrize(
    ("condition", "index", "body", "found"),
    [
        ("GetBlockIdx() == 0", "", "InitOutput<float>(yGm, n, 0);", 1),
        ("wanted && AscendC::GetBlockIdx() == 0U", "", "InitGlobalMemory(yGm, n, 0.0f);", 1),
        ("this->mine == 0", "mine = GetBlockIdx();", "if (a) InitOutput<float>(yGm, n, 0); else { ; }", 1),
        ("mine == 0", "mine = n / 2;", "InitOutput<float>(yGm, n, 0);", 0),  # not a core's number
        ("wanted || GetBlockIdx() == 0", "", "InitOutput<float>(yGm, n, 0);", 0),  # others fill as well
        ("GetBlockIdx() == 1", "", "InitOutput<float>(yGm, n, 0);", 0),  # it may have other work to do
        ("GetBlockIdx() == 0", "", "InitOutput<float>(yGm, n, 0); Rest(n);", 0),  # the rest is for one core
        ("GetBlockIdx() == 0", "", "if (a) { yGm.SetValue(0, 1.0f); }", 0),  # no fill
    ],
)
def test_a_fill_is_shared_where_one_core_does_nothing_but_fill(
    condition: str, index: str, body: str, found: int
) -> None:
    rewritten = after("shared-fill", FILL.format(condition=condition, index=index, body=body))
    assert len(rewritten) == found
    assert all("== 0" not in text and text.count("fillShare = ") == 1 for text in rewritten)
