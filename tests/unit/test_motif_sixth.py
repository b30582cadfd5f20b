"""What a sixth reading showed: forms that motifs just missed, and two that they took for something else."""

from __future__ import annotations

import pytest
from motif_rewrites import after

# -- either side of a choice fills what the next instruction reads -----------------------------------------------------

EITHER = """struct K {{
  void f(LocalTensor<float>& y, LocalTensor<float>& x) {{
    for (int i = 0; i < m; i++) {{
      {head} (wide) {{
        {first}
      }} {alternative}
      {wait}
      {user}
    }}
  }}
}};"""
SIDES = {
    "head": "if constexpr",
    "first": "Exp(x, x, n); Duplicate(y, ToFloat(v), n);",
    "alternative": "else { Duplicate(y, static_cast<float>(v), n); }",
    "wait": "PipeBarrier<PIPE_V>();",
    "user": "Add(y, y, x, n);",
}
WHOLE = (
    "Exp(x, x, n); PipeBarrier<PIPE_V>(); Adds(y, x, ToFloat(v), n); } else { PipeBarrier<PIPE_V>(); "
    "Adds(y, x, static_cast<float>(v), n); } }"
)


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, WHOLE),
        ({"head": "if"}, WHOLE),
        ({"user": "Max(y, x, y, n);"}, "Maxs(y, x, static_cast<float>(v), n);"),
        (
            {"alternative": "else if (other) { Duplicate(y, a, n); } else Duplicate(y, b, n);"},
            "{ PipeBarrier<PIPE_V>(); Adds(y, x, a, n); } else PipeBarrier<PIPE_V>(); Adds(y, x, b, n);",
        ),
        ({"alternative": ""}, ""),  # elsewhere y is what it was
        ({"alternative": "else { Duplicate(y, v, n); Exp(x, x, n); }"}, ""),
        ({"alternative": "else { Duplicate(y, v, n / 2); }"}, ""),
        ({"alternative": "else { Duplicate(x, v, n); }"}, ""),
        ({"user": "Add(y, y, x, n / 2);"}, ""),  # the rest is read behind it
        ({"user": "Add(z, y, x, n);"}, ""),  # somebody may read y
        ({"user": "Add(y, y, y, n);"}, ""),
        ({"wait": "Exp(x, x, n);"}, ""),
    ],
)
def test_a_number_that_either_side_fills_in_is_a_scalar(holes: dict[str, str], found: str) -> None:
    rewritten = [" ".join(t.split()) for t in after("scalar-operand", EITHER.format(**{**SIDES, **holes}))]
    assert len(rewritten) == bool(found)
    assert all(found in text and "Duplicate" not in text for text in rewritten)


# -- a name that both sides of a choice declare ------------------------------------------------------------------------

ROWS = """template <typename T> struct K {{
  void f() {{
    if constexpr (isHalf) {{
      LocalTensor<T> y = q.AllocTensor<T>();
      Cast(y, x, RoundMode::CAST_RINT, n);
    }} else {{
      {declared}
      for (int i = 0; i < m; i++) {{ Adds(y[i * stride], x[i * stride], 0.5f, n); PipeBarrier<PIPE_V>(); }}
    }}
  }}
  LocalTensor<float> x;
}};"""


def test_rows_are_of_the_type_that_their_side_declares() -> None:
    (text,) = after("merged-rows", ROWS.format(declared="LocalTensor<float> y = q.AllocTensor<float>();"))
    assert "static_cast<int64_t>(stride) * static_cast<int64_t>(sizeof(float)) % 32 == 0" in text
    (text,) = after("merged-rows", ROWS.format(declared="LocalTensor<U> y = q.AllocTensor<U>();"))
    assert "static_cast<int64_t>(stride) * static_cast<int64_t>(sizeof(U)) % 32 == 0" in text


# -- what looked alike -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "count"), [("float", 1), ("T", 1), ("int", 0), ("int32_t", 0)])
def test_integers_by_declaration_are_no_floats_within_a_choice_either(kind: str, count: int) -> None:
    turn = "if constexpr (wide) { Muls(y, y, size, n); Sub(y, x, y, n); }"
    code = "class K {{ void f() {{ " + turn.replace("{", "{{").replace("}", "}}") + " }} LocalTensor<{}> y; }};"
    assert len(after("fused-scalars", code.format(kind))) == count


@pytest.mark.parametrize(
    ("given", "count"), [("", 1), ("gm.SetGlobalBuffer(At(i));", 0), ("this->gm.SetGlobalBuffer(At(i));", 0)]
)
def test_a_copy_from_memory_that_each_turn_sets_stays_in_the_loop(given: str, count: int) -> None:
    code = f"""class K {{ void f() {{
      for (int i = 0; i < m; i++) {{ {given} DataCopy(x, gm[at], n); Add(y, y, x, n); }}
    }} GlobalTensor<float> gm; LocalTensor<float> x, y; }};"""
    assert len(after("loop-invariant", code)) == count


# -- flags that are set and waited for again for each row --------------------------------------------------------------

HALVES = """class K {{
  void f() {{
    {declared}
    for (int i = 0; i < rows; i++) {{
      int at = i * width;
      {front}
      half = 0;
      SetFlag<HardEvent::MTE3_MTE2>({first});
      SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
      for (int j = 0; j < tiles; j++) {{ Tile(at + j * tile); half = 1 - half; {inner} }}
      {behind}
      WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
      WaitFlag<HardEvent::MTE3_MTE2>({last});
    }}
  }}
  void Tile(int at) {{ WaitFlag<HardEvent::MTE3_MTE2>(half); DataCopy(x, gm[at], n); }}
}};"""
HOLES = {"declared": "", "front": "", "first": "EVENT_ID0", "inner": "", "behind": "", "last": "EVENT_ID0"}


@pytest.mark.parametrize(
    ("holes", "count"),
    [
        ({}, 1),
        ({"declared": "int own = 2;", "first": "own", "last": "own"}, 1),
        ({"inner": "if (done) break;"}, 1),  # of the tiles
        ({"front": "int own = i % 2;", "first": "own", "last": "own"}, 0),
        ({"front": "own++;", "first": "own", "last": "own"}, 0),
        ({"front": "if (done) break;"}, 0),
        ({"front": "if (done) continue;"}, 0),
        ({"inner": "if (done) return;"}, 0),
        ({"front": "DataCopy(w, gm[at], n);"}, 0),  # it is behind the stores of the row before as it is
        ({"front": "Tile(at);"}, 0),
        ({"behind": "DataCopy(gm[at], x, n);"}, 0),
        ({"front": "for (int k = 0; k < 2; k++) { sum += k; }"}, 0),
        ({"last": "EVENT_ID2"}, 0),
        ({"last": "EVENT_ID1"}, 0),
    ],
)
def test_flags_of_halves_are_set_once_for_all_rows(holes: dict[str, str], count: int) -> None:
    rewritten = after("deferred-wait", HALVES.format(**{**HOLES, **holes}))
    assert len(rewritten) == count
    for text in rewritten:
        row, tile = text.index("for (int i"), text.index("for (int j")
        own = {**HOLES, **holes}["first"]
        assert text.index(f"SetFlag<HardEvent::MTE3_MTE2>({own});") < row
        assert text.index("SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);") < row
        assert text.count("WaitFlag<HardEvent::MTE3_MTE2>") == 3
        end = text.index("\n    }", tile)
        assert end < text.index("WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);") < text.index("void Tile")
