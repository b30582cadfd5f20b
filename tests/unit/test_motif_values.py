"""Results that cost less to get at: found in other people's spelling, each with a twin where it would be wrong."""

from __future__ import annotations

import motif_rewrites
import pytest


def after(motif: str, code: str) -> list[str]:
    """The kernel, in one line, with each of the motif's rewrites."""
    return [" ".join(text.split()) for text in motif_rewrites.after(motif, code)]


# -- casts to 8 bits ---------------------------------------------------------------------------------------------------

TO_BYTES = """void f(LocalTensor<int8_t>& y, LocalTensor<{kind}>& x, LocalTensor<half>& h, LocalTensor<int32_t>& w) {{
  Cast({whole}, x, RoundMode::{mode}, n);
  PipeBarrier<PIPE_V>();
  {between}
  Cast({narrow}, {whole}, RoundMode::CAST_NONE, n);
  PipeBarrier<PIPE_V>();
  {last}
}}"""
CASTS = {
    "kind": "float",
    "whole": "w",
    "narrow": "h",
    "mode": "CAST_RINT",
    "between": "SetDeqScale((half)1.0f);",
    "last": "Cast(y, h, RoundMode::CAST_TRUNC, n);",
}


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "Cast(h, x, RoundMode::CAST_ODD, n); PipeBarrier<PIPE_V>(); Cast(y, h, RoundMode::CAST_RINT, n);"),
        ({"mode": "CAST_FLOOR"}, "Cast(y, h, RoundMode::CAST_FLOOR, n);"),
        (
            {"whole": "x.ReinterpretCast<int32_t>()", "narrow": "x.template ReinterpretCast<half>()"}
            | {"last": "for (;;) { Cast(y[i], x.template ReinterpretCast<half>()[i * b], RoundMode::CAST_NONE, n); }"},
            "Cast(y[i], x.template ReinterpretCast<half>()[i * b], RoundMode::CAST_RINT, n);",
        ),
        (
            {"kind": "half", "narrow": "x", "last": "Cast(y, x, RoundMode::CAST_TRUNC, n);"},
            "Cast(y, x, RoundMode::CAST_R",
        ),
        ({"kind": "half"}, ""),  # two halves: which of them is meant behind?
        ({"kind": "bfloat16_t"}, ""),  # has no rounding to odd
        ({"mode": "CAST_NONE"}, ""),
        ({"between": "Adds(w, w, 1, n);"}, ""),
        ({"last": "Muls(h, h, s, n); Cast(y, h, RoundMode::CAST_TRUNC, n);"}, ""),
        ({"last": "Cast(y, h, RoundMode::CAST_TRUNC, n); Adds(w, w, 1, n);"}, ""),  # the integers are wanted
        ({"last": "Cast(x, h, RoundMode::CAST_NONE, n);"}, ""),  # not to 8 bits
    ],
)
def test_eight_bits_are_rounded_once(holes: dict[str, str], found: str) -> None:
    rewritten = after("fewer-casts", TO_BYTES.format(**{**CASTS, **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text and "Cast(w" not in text for text in rewritten)


def test_barriers_that_others_need_stay() -> None:
    code = TO_BYTES.format(**{**CASTS, "between": "Cast(v, u, RoundMode::CAST_RINT, n); PipeBarrier<PIPE_V>();"})
    assert [text.count("PipeBarrier") for text in after("fewer-casts", code)] == [3]


# -- sums of what was multiplied ---------------------------------------------------------------------------------------

MEAN = """struct K {{
  float RowReduceSum(const LocalTensor<float>& v, int n) {{ ReduceSum(v, v, work, n); return v.GetValue(0); }}
  void f(int n) {{
    LocalTensor<{kind}> x = q.DeQue<{kind}>();
    LocalTensor<{kind}> y = buf.Get<{kind}>();
    LocalTensor<{kind}> m = other.Get<{kind}>();
    {made}
    PipeBarrier<PIPE_V>();
    {muls}
    PipeBarrier<PIPE_V>();
    {summed}
    {behind}
  }}
}};"""
SUMMED = {
    "kind": "float",
    "made": "Mul(y, x, x, n);",
    "muls": "Muls(y, y, mean, n);",
    "summed": "ReduceSum(m, y, work, n);",
    "behind": "Adds(m, m, eps, 1);",
}
_HELD = "float v = RowReduceSum(y, n);"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "ReduceSum(m, y, work, n); Muls(m, m, mean, 1); PipeBarrier<PIPE_V>(); Adds(m, m, eps, 1);"),
        ({"summed": _HELD, "behind": ""}, "float v = RowReduceSum(y, n) * (mean);"),
        ({"behind": "float v = m.GetValue(0);"}, "float v = m.GetValue(0) * (mean);"),
        (
            {"summed": "for (int i = 0; i < rows; i++) { ReduceSum(m[i * 8], y[i * w], work, w); }"}
            | {"behind": "Adds(m, m, eps, rows * 8);"},
            "Muls(m, m, mean, rows * 8);",
        ),
        ({"muls": "Muls(y, x, mean, n);", "made": ""}, "ReduceSum(m, x, work, n);"),
        (
            {"made": "Mul(x, z, z, n);", "muls": "Muls(y, x, mean, n);", "behind": "Adds(x, m, eps, 1);"},
            "Mul(y, z, z, n);",
        ),
        ({"kind": "half"}, ""),  # the sum may overflow
        ({"behind": "Adds(m, y, eps, 1);"}, ""),  # what was multiplied is needed
        ({"muls": "Muls(y, x, mean, n);", "made": "", "summed": _HELD}, ""),  # the sum would write over x
        ({"behind": "Add(z, z, m, 1);"}, ""),
        ({"behind": ""}, ""),  # who takes the sum?
        ({"summed": "ReduceMax(m, y, work, n);"}, ""),
    ],
)
def test_the_sum_is_multiplied(holes: dict[str, str], found: str) -> None:
    rewritten = after("scale-behind-sum", MEAN.format(**{**SUMMED, **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text and "mean, n)" not in text for text in rewritten)


# -- what nobody reads -------------------------------------------------------------------------------------------------

TWICE = """struct K {{
  void f(LocalTensor<float>& given, LocalTensor<float>& other) {{
    LocalTensor<float> a = buf.Get<float>();
    LocalTensor<half> view = buf.Get<half>();
    {first} {between} {second}
  }}
  void g() {{ f({arguments}); }}
}};"""


@pytest.mark.parametrize(
    ("first", "between", "second", "found"),
    [
        ("Cast(a, h, RoundMode::CAST_NONE, n);", "", "Mul(a, b, b, n);", True),
        (
            "Duplicate(a, 0.0f, n);",
            "PipeBarrier<PIPE_V>(); Exp(c, b, n);",
            "Cast(a, h, RoundMode::CAST_NONE, n);",
            True,
        ),
        ("Exp(given, b, n);", "", "Ln(given, other, n);", True),
        ("Exp(a, b, n);", "", "Mul(a, a, b, n);", False),
        ("Exp(a, b, n);", "", "Axpy(a, b, s, n);", False),
        ("Exp(a, b, n);", "", "Mul(a, b, b, m);", False),  # fewer, perhaps
        ("Exp(a, b, n);", "Abs(c, a, n);", "Mul(a, b, b, n);", False),
        ("Exp(a, b, n);", "Cast(c, view, RoundMode::CAST_NONE, n);", "Mul(a, b, b, n);", False),
        ("Exp(a, b, n);", "if (c) { Help(); }", "Mul(a, b, b, n);", False),
        ("Exp(a, b, n);", "", "", False),
    ],
)
def test_what_is_written_over_is_left_out(first: str, between: str, second: str, found: bool) -> None:
    code = TWICE.format(first=first, between=between, second=second, arguments="one, two")
    assert [first in text for text in after("unread-results", code)] == [False] * found


def test_parameters_may_be_one_tensor() -> None:
    code = TWICE.format(first="Exp(given, b, n);", between="", second="Ln(given, other, n);", arguments="one, one")
    assert after("unread-results", code) == []


ZEROS = """struct K {{
  void Load(int i) {{ auto x = in.AllocTensor<T>(); DataCopy(x, xGm[i], n); in.EnQue(x); {more} }}
  void Zero() {{
    auto x = in.DeQue<T>();
    auto y = out.AllocTensor<T>();
    {zero} {behind}
    out.EnQue(y);
    in.FreeTensor(x);
  }}
  void Run() {{ for (int i = 0; i < k; i++) {{ {before} Zero(); }} }}
}};"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, True),
        ({"zero": "Muls(y, x, (T)0, n);"}, True),
        ({"zero": "Sub(y, x, z, n);"}, False),
        ({"zero": "Muls(y, x, (T)2, n);"}, False),
        ({"behind": "Add(y, y, x, n);"}, False),  # what was loaded is needed
        ({"before": ""}, False),  # where is it loaded?
        ({"before": "Load(i); Other();"}, False),
        ({"more": "other.EnQue(x);"}, False),  # loads something else, too
    ],
)
def test_zeros_need_no_load(holes: dict[str, str], found: bool) -> None:
    given = {"more": "", "zero": "Sub(y, x, x, n);", "behind": "", "before": "Load(i);"}
    rewritten = after("unread-results", ZEROS.format(**{**given, **holes}))
    assert len(rewritten) == found
    for text in rewritten:
        assert "Duplicate(y, static_cast<T>(0), n);" in text
        assert "Load(i);" not in text
        assert "DeQue" not in text


# -- copies within UB --------------------------------------------------------------------------------------------------

COPY = """void f(LocalTensor<float>& s, int n) {{
  LocalTensor<float> t = buf.Get<float>();
  {copy}
  PipeBarrier<PIPE_V>();
  {behind}
}}"""
_READ = "Exp(y, t, n); Mul(z, t[8], y, n);"


@pytest.mark.parametrize(
    ("copy", "behind", "found"),
    [
        ("Adds(t, s, 0.0f, n);", _READ, "Exp(y, s, n); Mul(z, s[8], y, n);"),
        ("DataCopy(t, s[64], n);", _READ, "Exp(y, s[64], n);"),
        ("Muls(t, s, 1.0f, n);", "for (;;) { Exp(y, t, n); } Abs(t, u, n);", "for (;;) { Exp(y, s, n); }"),
        ("Muls(t, s, 1.0f, n);", "q.FreeTensor(s); Exp(y, t, n);", "Exp(y, s, n); q.FreeTensor(s);"),
        ("Muls(t, s, 1.0f, n);", "Abs(y, u, n); Muls(t, t, 3.0f, n);", "Muls(t, s, 3.0f, n);"),
        ("Muls(t, s, 1.0f, n);", "Exp(s, s, n); Abs(y, t, n);", ""),
        ("Muls(t, s, 1.0f, n);", "Abs(y, t, n); Help(t);", ""),
        ("Muls(t, s, 1.0f, n);", "Abs(y, u, n); Muls(t, t, 3.0f, 64);", ""),  # of a part
        ("Muls(t, s, 1.0f, n);", "DataCopyPad(yGm, t, params);", ""),
        ("Muls(t, s, 2.0f, n);", _READ, ""),
        ("DataCopy(t, s, params);", _READ, ""),  # may have gaps
        ("DataCopy(t, x, n);", _READ, ""),  # of global memory, perhaps
    ],
)
def test_what_was_copied_is_read_where_it_is(copy: str, behind: str, found: str) -> None:
    rewritten = [t for t in after("extra-copy", COPY.format(copy=copy, behind=behind)) if copy not in t]
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


LOADED = """template <typename T> struct K {{
  void f() {{
    LocalTensor<T> s = in.DeQue<T>();
    LocalTensor<float> t = {given};
    if constexpr (same) {{ {copy} }} else {{ Cast(t, s, RoundMode::CAST_NONE, n); }}
    in.FreeTensor(s);
    {behind}
  }}
  void Init() {{ pipe.InitBuffer(in, {many}, 512); }}
  LocalTensor<float> member;
}};"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "{ t = s.template ReinterpretCast<float>(); } else {"),
        ({}, "Help(t); if constexpr (!(!(same))) { in.FreeTensor(s); }"),
        ({}, "Cast(t, s, RoundMode::CAST_NONE, n); in.FreeTensor(s); }"),  # held no longer where it is cast
        ({"behind": "Help(t); work.FreeTensor(t);"}, "auto tKept = t; if constexpr"),
        (
            {"behind": "Help(t); work.FreeTensor(t);"},
            "Help(t); if constexpr (!(!(same))) { in.FreeTensor(s); } work.FreeTensor(tKept);",
        ),
        ({"behind": "u = in.AllocTensor<T>(); Help(t);"}, "t = s"),
        ({"behind": "u = in.AllocTensor<T>(); Help(t);", "many": "1"}, ""),  # its one buffer is held
        ({"behind": "out.EnQue(t);"}, ""),  # the queue's own tensor has to go back
        ({"behind": "Help(t, s);"}, ""),
        ({"behind": ""}, ""),
        ({"copy": "Adds(member, s, (T)0, n);"}, ""),
    ],
)
def test_a_loaded_tensor_is_taken_where_the_types_agree(holes: dict[str, str], found: str) -> None:
    given = {"given": "work.Get<float>()", "copy": "Adds(t, s, (T)0, n);", "behind": "Help(t);", "many": "2"}
    rewritten = after("extra-copy", LOADED.format(**{**given, **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


@pytest.mark.parametrize(
    ("behind", "found"),
    [
        ("Muls(sum, sum, p, n);", "{ Muls(sum, s, p, n); } else { Cast(sum, s, RoundMode::CAST_NONE, n); PipeBarrier"),
        (
            "if constexpr (P) { Muls(sum, sum, p, n); }",
            "{ if constexpr (P) { Muls(sum, s, p, n); } else { Adds(sum, s,",
        ),
        ("if (p) { Muls(sum, sum, p, n); }", ""),
        ("Mul(sum, sum, sum, n);", ""),
        ("Axpy(sum, sum, p, n);", ""),
        ("Muls(y, sum, p, n);", ""),
    ],
)
def test_what_works_on_a_copy_in_place_is_moved_into_the_choice(behind: str, found: str) -> None:
    code = LOADED.format(given="u", copy="Adds(sum, s, (T)0, n);", behind=behind, many="2")
    rewritten = after("extra-copy", code.replace("Cast(t, s", "Cast(sum, s"))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


# -- constants as scalar operands --------------------------------------------------------------------------------------

FILLED = """void f() {{ Duplicate(t, c, n); PipeBarrier<PIPE_V>(); {reader} {behind} }}"""


@pytest.mark.parametrize(
    ("reader", "behind", "found"),
    [
        ("Compare(m, x, t, CMPMODE::GT, n);", "", "CompareScalar(m, x, c, CMPMODE::GT, n);"),
        ("Compare(m, t, x, CMPMODE::GT, n);", "Exp(t, x, n);", "CompareScalar(m, x, c, CMPMODE::LT, n);"),
        (
            "Select(y, m, x, t, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);",
            "",
            "Select(y, m, x, c, SELMODE::VSEL_TENSOR_SCALAR",
        ),
        (
            "Compare(m, x, z, CMPMODE::EQ, n); Select(y, m, t, x, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);",
            "",
            "Compare(m, x, z, CMPMODE::NE, n); Select(y, m, x, c, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);",
        ),
        (
            "Compare(m, x, z, CMPMODE::GT, n); Select(y, m, t, x, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);",
            "",
            "",  # what is not greater may be no number
        ),
        (
            "Compare(m, x, z, CMPMODE::EQ, n); Select(y, m, t, x, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);",
            "Select(z, m, u, x, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);",  # the mask is needed as it is
            "",
        ),
        ("Sub(y, x, t, n); Mul(z, t, y, n);", "", "Adds(y, x, -(c), n); Muls(z, y, c, n);"),
        ("Div(y, x, t, 64, r, {1, 1, 0, 8, 8, 0});", "", "Muls(y, x, 1 / (c), 64, r, {1, 1, 8, 8});"),
        ("Div(y, x, t, 64, r, {1, 1, 1, 8, 8, 8});", "", ""),  # not known to be a block
        ("Div(y, t, x, n);", "", ""),
        ("Add(y, t, t, n);", "", ""),
        ("Mul(y, x, t, n); Help(t);", "", ""),
        ("Mul(y, x, t, n); c = 2; Mul(z, x, t, n);", "", ""),
    ],
)
def test_one_value_is_a_scalar(reader: str, behind: str, found: str) -> None:
    rewritten = after("scalar-operand", FILLED.format(reader=reader, behind=behind))
    assert len(rewritten) == bool(found)
    assert all(found in text and "Duplicate" not in text for text in rewritten)


APART = """struct K {{
  void Init() {{ t = buf.Get<float>(); {fill} {more} }}
  void Run() {{ for (int i = 0; i < n; i++) {{ {reader} }} }}
  LocalTensor<float> t;
  float c;
}};"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "Muls(y, x, 1 / (c), n);"),
        ({"reader": "Div(y, x, this->t, n);"}, "Muls(y, x, 1 / (c), n);"),
        ({"reader": "Add(y, x, t, n);"}, ""),  # filled once: Adds would be no faster
        ({"fill": "float d = 3; Duplicate(t, d, n);"}, ""),  # unknown where it is read
        ({"more": "Exp(t, t, n);"}, ""),
        ({"more": "t.SetValue(0, 0);"}, ""),
        ({"reader": "Div(y, x, t, n); Help(t);"}, ""),
        ({"reader": "Div(y, t, x, n);"}, ""),
    ],
)
def test_one_value_that_another_function_fills_in(holes: dict[str, str], found: str) -> None:
    given = {"fill": "Duplicate(t, c, n);", "more": "", "reader": "Div(y, x, t, n);"}
    rewritten = after("scalar-operand", APART.format(**{**given, **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text and "Duplicate" not in text for text in rewritten)


def test_one_value_in_front_of_a_loop() -> None:
    code = "struct K { void f(float c) { Duplicate(t, c, n); for (;;) { Exp(x, x, n); Div(y, x, t, n); } } };"
    assert ["Muls(y, x, 1 / (c), n);" in text for text in after("scalar-operand", code)] == [True]
    assert not after("scalar-operand", code.replace("Exp(x, x, n);", "c = 2 * c;"))


# -- slices ------------------------------------------------------------------------------------------------------------

SLICES = """void f() {{
  for (int i = 0; i < times; i++) {{
    Mul(t, x[at], x[at], static_cast<int32_t>(length));
    PipeBarrier<PIPE_V>();
    {then}
    at += {step};
  }}
}}"""
_SUB = "Sub(y[at], t, x[at], (length));"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        (
            {},
            "x[at], (times) * (static_cast<int32_t>(length))); PipeBarrier<PIPE_V>(); Sub(y[at], y[at]",
        ),
        ({}, "at += (times) * (length); }"),
        ({"then": f"Muls(t, t, s, length); {_SUB}"}, "Muls(y[at], y[at], s, (times)"),
        ({"then": "Sub(y[at], t, x[at], 64);"}, ""),
        ({"then": "Sub(x[at], t, x[at], length);"}, ""),  # read where the slice would be made
        ({"then": "Axpy(y[at], t, s, length);"}, ""),
        ({"then": f"{_SUB} Abs(z, z, length);"}, ""),  # the same slice in every turn
        ({"then": "Add(acc, acc, t, length);"}, ""),
        ({"then": f"{_SUB} Help();"}, ""),
        ({"step": "64"}, ""),
    ],
)
def test_slices_are_worked_on_at_once(holes: dict[str, str], found: str) -> None:
    rewritten = after("merged-rows", SLICES.format(**{"then": _SUB, "step": "length", **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


# -- rows with masks ---------------------------------------------------------------------------------------------------

MASKED = """void f(LocalTensor<float>& x, LocalTensor<float>& y, LocalTensor<float>& v) {{
  BinaryRepeatParams p;
  {fields}
  for (uint32_t i = 0; i < rows; i++) {{
    if (whole > 0) {{ Mul(y[i * n], x[i * n], v[i * 8], 64, whole, {params}); }}
    PipeBarrier<PIPE_V>();
    {tail}
  }}
}}"""
_FIELDS = "p.dstBlkStride = 1; p.src0BlkStride = 1; p.src1BlkStride = 0; p.dstRepStride = 8; p.src0RepStride = 8;"
_TAIL = "Mul(y[i * n + whole * 64], x[i * n + whole * 64], v[i * 8], rest, 1, {1, 1, 0, 8, 8, 0});"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        (
            {},
            "static_cast<uint8_t>(rowsAtOnce), AscendC::BinaryRepeatParams(1, 1, 0, static_cast<uint8_t>((n) * sizeof",
        ),
        ({"params": "p", "fields": f"{_FIELDS} p.src1RepStride = 0;"}, "static_cast<int64_t>(whole) <= rowsAtOnce"),
        ({"params": "p", "fields": _FIELDS}, ""),  # of one field nobody says what it is
        ({"params": "p", "fields": f"{_FIELDS} p.src1RepStride = 0; p.src1RepStride = 1;"}, ""),
        ({"tail": _TAIL}, "for (int64_t column = 0; column < static_cast<int64_t>(1); column++)"),
        ({"tail": "Add(y[i * 64], x[i * n], v[i * 8], rest, 1, {1, 1, 0, 8, 8, 0});"}, ""),  # other rows
        ({"tail": "Muls(y, y, s, 64, 1, {1, 1, 8, 8});"}, ""),
    ],
)
def test_rows_with_masks_are_repeats(holes: dict[str, str], found: str) -> None:
    given = {"fields": "", "params": "{1, 1, 0, 8, 8, 0}", "tail": "", **holes}
    rewritten = after("merged-rows", MASKED.format(**given))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


def test_columns_with_masks_stay() -> None:
    one = "Muls(y[i * 64], y[i * 64], s, 64, rows, {1, 1, a, a});"
    code = f"void f(LocalTensor<float>& y) {{ for (int i = 0; i < k; i++) {{ {one} }} }}"
    assert after("merged-rows", code) == []
    assert len(after("merged-rows", code.replace("i * 64", "i * n"))) == 1


# -- the first term ----------------------------------------------------------------------------------------------------

TERMS = """void f(LocalTensor<float>& a, LocalTensor<{kind}>& x, LocalTensor<{kind}>& y) {{
  {begin}
  PipeBarrier<PIPE_V>();
  for (int i = 1; i < k; i++) {{ {inner} {{ {term} }} {more} }}
}}"""
_COPIED = "DataCopy(a, x, n);"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "if (!(1 < k)) { Duplicate(a, 0.0f, n); } PipeBarrier<PIPE_V>(); for"),
        ({}, "if (i == 1) { Muls(a, y, s, n); } else { Axpy(a, y, s, n); }"),
        ({"term": "MulAddDst(a, x, y[i * n], n);"}, "{ Mul(a, x, y[i * n], n); } else"),
        ({"term": "Add(a, x, a, n);"}, "{ Adds(a, x, static_cast<float>(0), n); } else"),
        ({"begin": _COPIED, "term": "Max(a, a, y[i * n], n);"}, "{ Max(a, x, y[i * n], n); } else"),
        ({"inner": "for (int j = 0; j < m; j++)"}, "if (i == 1 && j == 0) { Muls("),
        ({"begin": "Duplicate(a, 1.0f, n);"}, ""),
        ({"term": "Max(a, a, y, n);"}, ""),  # zeros are a term, too
        ({"term": "Axpy(a, y, s, m);"}, ""),  # fewer, perhaps
        ({"inner": "if (b)"}, ""),  # not in every turn
        ({"inner": "for (int j = 0; j < i; j++)"}, ""),  # the first turn may have none
        ({"more": "if (b) { break; }"}, ""),
        ({"more": "Exp(z, a, n);"}, ""),
        ({"kind": "half"}, ""),  # Axpy casts, Muls doesn't
        ({"begin": _COPIED, "term": "Max(a, a, y, n);", "more": "Exp(x, x, n);"}, ""),
    ],
)
def test_a_sum_begins_with_its_first_term(holes: dict[str, str], found: str) -> None:
    given = {"begin": "Duplicate(a, 0.0f, n);", "inner": "", "term": "Axpy(a, y, s, n);", "more": "", "kind": "float"}
    given |= holes
    code = TERMS.format(**given)
    if not given["inner"]:
        code = code.replace(f"{{ {given['term']} }}", given["term"])
    rewritten = after("first-term", code)
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)
