"""Places that motifs find in other people's spelling, each with a twin where the same would be wrong or useless."""

from __future__ import annotations

import re

import pytest
from motif_rewrites import after

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

_PAIR = """event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::{0}));
    SetFlag<HardEvent::{0}>(id); WaitFlag<HardEvent::{0}>(id);"""


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
