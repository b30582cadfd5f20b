"""What a row hands to the scalar unit: found in other people's spelling, each with a twin where it would be wrong."""

from __future__ import annotations

import motif_rewrites
import pytest


def after(motif: str, code: str) -> list[str]:
    """The kernel, in one line, with each of the motif's rewrites."""
    return [" ".join(text.split()) for text in motif_rewrites.after(motif, code)]


# -- one element -------------------------------------------------------------------------------------------------------

ROOT = """constexpr float ONE = 1;
class K {{
  void Later(LocalTensor<{kind}>& given) {{ {later} }}
  void f(LocalTensor<{kind}>& y, LocalTensor<{kind}>& x, LocalTensor<{kind}>& w, float e) {{
    LocalTensor<{kind}> t = buf.Get<{kind}>();
    OwnReduceSum(t, x, w, n);
    PipeBarrier<PIPE_V>();
    Adds(t, t, e, 1);
    PipeBarrier<PIPE_V>();
    Sqrt(t, t, {count});
    Duplicate(w, ONE, 1);
    PipeBarrier<PIPE_V>();
    Div(t, w, t, 1);
    {between}
    PipeBarrier<PIPE_V>();
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    float v = {value};
    SetFlag<HardEvent::S_V>(0);
    WaitFlag<HardEvent::S_V>(0);
    Muls(y, x, v, n);
    {behind}
  }}
}};"""
HOLES = {"kind": "float", "later": "", "count": "1", "between": "", "value": "t.GetValue(0)", "behind": ""}
WAIT = "SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);"
START = "OwnReduceSum(t, x, w, n); PipeBarrier<PIPE_V>();"
WHOLE = f"{START} {WAIT} float v = ONE / sqrt(t.GetValue(0) + e);"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, WHOLE),
        (
            {"value": "2 * t.GetValue(0)"},
            f"{START} {WAIT} float v = 2 * static_cast<float>(ONE / sqrt(t.GetValue(0) + e));",
        ),
        ({"between": "Cast(w, x, RoundMode::CAST_NONE, n);"}, f"{START} Cast(w, x, RoundMode::CAST_NONE, n);"),
        (
            {"behind": "float again = t.GetValue(0);"},
            "const float oneElement0 = ONE / sqrt(t.GetValue(0) + e); float v",
        ),
        ({"behind": "Exp(t, x, n);"}, WHOLE),  # scratch
        ({"behind": "Later(t);", "later": "Cast(given, x, RoundMode::CAST_NONE, n); Exp(given, given, n);"}, WHOLE),
        ({"count": "2"}, "Sqrt(t, t, 2); PipeBarrier<PIPE_V>(); SetFlag"),  # what follows is of one element
        ({"value": "t.GetValue(1)"}, ""),
        ({"kind": "half"}, ""),
        ({"between": "e = 0;"}, ""),  # the number changes on the way
        ({"between": "Add(y, y, t, n);"}, ""),  # somebody else reads it
        ({"behind": "DataCopy(gm, t, 8);"}, ""),
        ({"behind": "Later(t);", "later": "Exp(given, given, n);"}, ""),
        ({"behind": "Unknown(t);"}, ""),
        ({"behind": "Exp(w, w, n);"}, ""),  # the one is wanted
    ],
)
def test_one_element_is_computed_by_the_scalar_unit(holes: dict[str, str], found: str) -> None:
    rewritten = after("one-element", ROOT.format(**{**HOLES, **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


# -- results where they are wanted -------------------------------------------------------------------------------------

SUM_SET = """struct P {{
  void Sum(LocalTensor<float>& y, LocalTensor<float>& x, LocalTensor<float>& w, int n) {{ {own}; }} }};
struct A {{ P& p;
  void Sum(LocalTensor<float>& y, LocalTensor<float>& x, LocalTensor<float>& w, int n) {{ p.Sum(y, x, w, n); }} }};
void Put(LocalTensor<T>& all, float one, uint16_t i) {{ all.SetValue(i, T(one)); }}
void f(LocalTensor<{kind}>& sums, LocalTensor<float>& x, LocalTensor<float>& s, LocalTensor<float>& w) {{
  for (int r = 0; r < rows; r++) {{
    Exp(w, x[r * n], n);
    PipeBarrier<PIPE_V>();
    {sum};
    {event}
    SetFlag<HardEvent::V_S>(e);
    WaitFlag<HardEvent::V_S>(e);
    {set};
    SetFlag<HardEvent::S_V>(e);
    WaitFlag<HardEvent::S_V>(e);
    {behind}
  }}
}}"""
SUMMED = {"kind": "float", "sum": "ReduceSum(s, w, w, n)", "event": "", "behind": ""}
SUMMED |= {"own": "ReduceSum(y, x, w, n)", "set": "sums.SetValue(r, s.GetValue(0))"}
IN_PLACE = "ReduceSum(sums[r], w, w, n); PipeBarrier<PIPE_V>(); }"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, IN_PLACE),
        ({"set": "Put(sums, s.GetValue(0), r)"}, IN_PLACE),
        ({"set": "const float v = s.GetValue(0); sums.SetValue(r, v)"}, IN_PLACE),
        ({"event": "event_t e = static_cast<event_t>(p->FetchEventID(HardEvent::V_S));"}, "e = static_cast"),
        ({"sum": "WholeReduceSum(s, w, m, 1, 1, 1, 8)"}, "WholeReduceSum(sums[r], w, m, 1, 1, 1, 8);"),
        ({"sum": "ReduceMax(s, w, w, n, false)"}, "ReduceMax(sums[r], w, w, n, false);"),
        ({"behind": "Exp(s, x, n);"}, "ReduceSum(sums[r], w, w, n); PipeBarrier<PIPE_V>(); Exp(s, x, n);"),
        ({"sum": "adapter.Sum(s, w, w, n)"}, "adapter.Sum(sums[r], w, w, n); PipeBarrier<PIPE_V>(); }"),
        ({"sum": "adapter.Sum(s, w, w, n)", "own": "Muls(y, x, 2.0f, n)"}, ""),
        ({"kind": "half"}, ""),
        ({"sum": "ReduceMax(s, w, w, n, true)"}, ""),  # its index as well
        ({"sum": "WholeReduceMax(s, w, m, 1, 1, 1, 8)"}, ""),
        ({"sum": "WholeReduceSum(s, w, m, 4, 1, 1, 8)"}, ""),
        ({"set": "sums.SetValue(r, 2 * s.GetValue(0))"}, ""),
        ({"set": "sums.SetValue(r, s.GetValue(1))"}, ""),
        ({"set": "float v = s.GetValue(0); sums.SetValue(r, v)", "behind": "Muls(x, x, v, n);"}, ""),
        ({"behind": "Exp(x, s, n);"}, ""),  # the sum is read where it was
        ({"event": "Muls(s, s, 2.0f, 1);"}, ""),
    ],
)
def test_reductions_write_where_their_result_is_wanted(holes: dict[str, str], found: str) -> None:
    rewritten = after("result-in-place", SUM_SET.format(**{**SUMMED, **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text and "SetFlag" not in text and "SetValue(r" not in text for text in rewritten)


# -- rows in stages ----------------------------------------------------------------------------------------------------

ROWS = """class K {{
  float OwnReduceSum(const LocalTensor<float>& x, int n) {{ return 0; }}
  void InPlaceReduceMax(const LocalTensor<float>& x, int n) {{ }}
  void TakeReduceMax(const LocalTensor<float>& x, int n, float& v) {{ }}
  void Scale(const LocalTensor<float>& x, float by) {{ Muls(x, x, by, n); }}
  void f(LocalTensor<float>& y, LocalTensor<float>& r, LocalTensor<float>& w, int rows) {{
    LocalTensor<float> x = buf.Get<float>();
    LocalTensor<{kind}> s = other.Get<{kind}>();
    {above}
    for (int i = 0; i < rows; i++) {{
      int at = i * n;
      {before}
      {reduction}
      {behind}
    }}
    {below}
  }}
}};"""
EVENT = "SetFlag<HardEvent::V_S>(e); WaitFlag<HardEvent::V_S>(e);"
STAGED = {
    "kind": "float",
    "above": "",
    "below": "",
    "before": "Abs(s[at], x[at], n); PipeBarrier<PIPE_V>();",
    "reduction": f"ReduceMax(r, s[at], w, n); {EVENT} float v = r.GetValue(0);",
    "behind": "Muls(y[at], x[at], v, n); PipeBarrier<PIPE_V>();",
}
FIRST = "for (int i = stage0First; i < stage0Behind; i++) { int at = i * n; "
RESULT = "rowResults0.Of(static_cast<uint32_t>(i - stage0First))"
SECOND = f"rowResults0.Wait(); {FIRST}"
TOGETHER = "} rowResults0.Reduce<false>(s[stage0First * (n)], 0, stage0Behind - stage0First, n, n); " + SECOND
RETURNED = f"{TOGETHER}float v = {RESULT};".replace("false", "true")
SUM = "const float v = 1 / sqrt(OwnReduceSum(s[at], n) + e);"
IN_SCRATCH = f"rowResults0.Reduce<true>(s, i - stage0First, 1, n, 0); }} {SECOND}float v = {RESULT};"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, f"{FIRST}{STAGED['before']} {TOGETHER}float v = {RESULT}; {STAGED['behind']} }} }}"),
        ({"reduction": "float v = OwnReduceSum(s[at], n);"}, RETURNED),
        ({"reduction": SUM}, f"const float v = 1 / sqrt({RESULT} + e);"),
        ({"reduction": "float v = 0; TakeReduceMax(s[at], n, v);"}, f"{TOGETHER}float v = 0; v = {RESULT};"),
        ({"reduction": f"InPlaceReduceMax(s[at], n); {EVENT} float v = s[at].GetValue(0);"}, f"float v = {RESULT};"),
        ({"before": "Mul(s, x[at], x[at], n);", "reduction": "float v = OwnReduceSum(s, n);"}, IN_SCRATCH),
        ({"behind": "Exp(s, x[at], n); Muls(y[at], s, v, n);"}, TOGETHER),  # it is scratch behind the reduction, too
        ({"behind": "if (b) { Exp(w, x[at], n); } else { Abs(w, x[at], n); } Muls(y[at], w, v, n);"}, TOGETHER),
        ({"behind": "if (b) { Exp(w, x[at], n); } Muls(y[at], w, v, n);"}, ""),
        ({"behind": "auto part = y[at]; Scale(part, v);"}, TOGETHER),
        ({"behind": "sums.SetValue(i, v); total += v;"}, f"float v = {RESULT}; sums.SetValue(i, v); total += v;"),
        (
            {
                "reduction": f"ReduceMax(r[i], s[at], w, n); {EVENT} float v = r.GetValue(i) / 127;",
                "behind": "r.SetValue(i, v);",
            },
            f"float v = {RESULT} / 127; r.SetValue(i, v);",
        ),
        ({"reduction": f"ReduceMax(r[i], s[at], w, n); {EVENT} float v = r.GetValue(i);"}, ""),  # and kept
        ({"below": "Exp(s, x, n);"}, TOGETHER),
        ({"below": "Exp(x, s, n);"}, ""),  # AscendC's reduction leaves the elements as they are
        ({"below": "Exp(x, r, n);"}, ""),
        ({"reduction": "float v = 0; TakeReduceMax(s[at], n, w);"}, ""),  # w is a tensor
        ({"reduction": "float v = 0; TakeReduceMax(s[at], n, v);", "behind": ""}, ""),
        ({"kind": "half"}, ""),
        ({"behind": "Muls(y[at], s[at], v, n);"}, ""),  # the reduction here leaves nothing of it
        ({"before": "Abs(w, x[at], n); Abs(s[at], w, n);", "behind": "Muls(y[at], w, v, n);"}, ""),  # a row's scratch
        ({"before": "Add(y, y, x[at], n); Abs(s[at], y, n);", "behind": "Muls(y, y, v, n);"}, ""),  # goes on with it
        ({"before": "LocalTensor<float> z = q.DeQue<float>(); Abs(s[at], z, n);"}, ""),
        ({"before": "count += n; Abs(s[at], x[at], n);"}, ""),
        ({"before": "if (i == 3) { break; }"}, ""),
        ({"before": "float k = x.GetValue(i);", "behind": "Muls(y[at], x[at], v * k, n);"}, ""),
        ({"reduction": f"ReduceMax(r, s[at], w, n, true); {EVENT} float v = r.GetValue(0);"}, ""),
        ({"reduction": f"ReduceMax(r, s[at], w, n); {EVENT} float v = r.GetValue(1);"}, ""),
        ({"reduction": "float v = Unknown(s[at], n);"}, ""),
    ],
)
def test_rows_are_reduced_before_the_first_is_read(holes: dict[str, str], found: str) -> None:
    rewritten = after("row-stages", ROWS.format(**{**STAGED, **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text and "ResultsOfRows rowResults0;" in text for text in rewritten)


def test_rows_with_two_reductions_go_through_three_stages() -> None:
    holes = STAGED | {"behind": f"Muls(s[at], x[at], v, n); {SUM.replace('v =', 'u =')} Muls(y[at], x[at], u, n);"}
    once = motif_rewrites.after("row-stages", ROWS.format(**holes))
    twice = after("row-stages", once[0])
    assert any("for (int stage1First = stage0First; stage1First < stage0Behind;" in text for text in twice)
    assert all(text.count("class ResultsOfRows") == 1 for text in twice)


# -- comparisons -------------------------------------------------------------------------------------------------------

COMPUTED = """constexpr float TINY = {tiny};
constexpr float LARGE = 1125899906842624;
class K {{
  void f(LocalTensor<{kind}>& y, LocalTensor<{kind}>& a, LocalTensor<{kind}>& b, LocalTensor<{kind}>& w) {{
    {first}
    {apart}
    Mins(y, y, static_cast<float>(TINY), n);
    PipeBarrier<PIPE_V>();
    {second}
    Muls(y, y, (float)LARGE, n);
    Muls(y, y, (float)LARGE, n);
    Muls(y, y, 67108864.0f, {count});
    {behind}
  }}
}};"""
PARTS = {
    "tiny": "1.1754943508222875e-38F",
    "kind": "float",
    "first": "Max(y, a, b, n); Sub(y, a, y, n);",
    "apart": "Abs(y, y, n);",
    "second": "",
    "count": "n",
    "behind": "",
}
OPPOSITE = "Adds(y, y, -1.0f, n); Abs(y, y, n);"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "LT>(y, a, b, n);"),
        ({"behind": OPPOSITE}, "GE>(y, a, b, n);"),
        ({"behind": "Duplicate(w, 1.0f, n); Sub(y, w, y, n);"}, "GE>(y, a, b, n);"),
        ({"first": "Max(y, b, a, n); Sub(y, b, y, n);", "behind": OPPOSITE}, "GE>(y, b, a, n);"),
        ({"first": "Min(y, a, b, n); Sub(y, a, y, n);", "apart": ""}, "GT>(y, a, b, n);"),
        ({"first": "Max(y, a, b, n); Sub(y, y, a, n);", "apart": ""}, "LT>(y, a, b, n);"),
        ({"first": "Sub(y, a, b, n);"}, "NE>(y, a, b, n);"),
        ({"first": "Sub(y, a, b, n);", "behind": OPPOSITE}, "EQ>(y, a, b, n);"),
        ({"first": "Sub(y, a, b, n);", "apart": "", "second": "Maxs(y, y, 0.0f, n);"}, "GT>(y, a, b, n);"),
        ({"first": "Sub(y, a, b, n);", "apart": ""}, ""),  # negative where a is smaller
        ({"apart": ""}, ""),  # the larger one taken from a
        ({"tiny": "0.5"}, ""),
        ({"tiny": "1.1754943508222875e-37F"}, ""),  # ten, not one
        ({"kind": "int32_t"}, ""),
        ({"count": "m"}, ""),
        ({"second": "Add(w, y, y, n);"}, ""),  # somebody needs it on the way
    ],
)
def test_computed_comparisons_are_compared(holes: dict[str, str], found: str) -> None:
    rewritten = after("comparison", COMPUTED.format(**{**PARTS, **holes}))
    assert len(rewritten) == bool(found)
    assert all(f"comparisons0.Choose<AscendC::CMPMODE::{found}" in t and "Muls(" not in t for t in rewritten)
