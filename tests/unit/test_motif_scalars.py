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
        ({"value": "2 * t.GetValue(0)"}, f"{START} {WAIT} float v = 2 * (ONE / sqrt(t.GetValue(0) + e));"),
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

SUM = """struct P {{
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
    rewritten = after("result-in-place", SUM.format(**{**SUMMED, **holes}))
    assert len(rewritten) == bool(found)
    assert all(found in text and "SetFlag" not in text and "SetValue(r" not in text for text in rewritten)
