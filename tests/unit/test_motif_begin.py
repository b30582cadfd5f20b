"""What a kernel pays for before its first copy: buffers, each with a twin where the same would be wrong or useless."""

from __future__ import annotations

import pytest
from motif_rewrites import after

from ascendopt_tune.search.kernel.motifs.buffers.queues import RING_CLASS

# -- one InitBuffer ----------------------------------------------------------------------------------------------------

MADE = """template <typename T> class K {{
 public:
  __aicore__ inline void Init(TPipe* pipe) {{
    pipe->InitBuffer(a, n * sizeof(T));
    {between}
    {second}
  }}
  __aicore__ inline void Run() {{ Exp(this->a.template Get<T>(), b.Get<T>(n), n); {more} }}
 private:
  TBuf<TPosition::VECCALC> a;
  TBuf<TPosition::{position}> b;
  uint32_t n;
}};
{other}
__global__ void k() {{ K<half> op; op.Run(); }}"""


def made(**changed: str) -> str:
    plain = {"between": "", "second": "pipe->InitBuffer(b, 64);", "more": "", "position": "VECCALC", "other": ""}
    return MADE.format(**{**plain, **changed})


@pytest.mark.parametrize("between", ["", "gm.SetGlobalBuffer(x);", "pipe->InitBuffer(q, 2, 64);", "int other = 3;"])
def test_buffers_that_are_made_side_by_side_are_parts_of_one(between: str) -> None:
    (text,) = after("shared-buffers", made(between=between))
    lengths = "static_cast<uint32_t>(n * sizeof(T)), static_cast<uint32_t>(64)"
    assert f"pipe->InitBuffer(a.memory, SharedBuffer::Bytes({lengths}));" in text
    assert "SharedBuffer::Place(a.memory, 0, a, static_cast<uint32_t>(n * sizeof(T)), b, " in text
    assert "InitBuffer(b," not in text
    assert text.count("SharedBuffer a;") == text.count("SharedBuffer b;") == text.count("class SharedBuffer") == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"second": ""},  # nobody makes it
        {"more": "Fill(b);"},  # a function that wants a TBuf
        {"position": "A1"},  # of a cube core
        {"between": "Duplicate(a.Get<T>(), T(0), n);"},  # needed in between
        {"between": "n = 2 * n;"},  # another length for the second
        {"second": "if (n > 3) { pipe->InitBuffer(b, 64); }"},  # in a branch of its own
        {"other": "class D : public K<half> { void More() { Fill(b); } };"},
    ],
)
def test_buffers_stay_apart_where_more_is_asked_of_them(changed: dict[str, str]) -> None:
    assert after("shared-buffers", made(**changed)) == []


# -- buffers that nobody uses ------------------------------------------------------------------------------------------

USED = """template <typename T, int MODE> class K {{
 public:
  __aicore__ inline void Init(TPipe* pipe) {{ pipe->InitBuffer(q, 1, 64); pipe->InitBuffer(w, 64); }}
  __aicore__ inline void Run() {{ Exp(q.AllocTensor<T>(), x, n); {used} }}
  __aicore__ inline void Wide() {{ Exp(w.Get<T>(), x, n); }}
  __aicore__ inline void Narrow() {{ Abs(w.Get<T>(), x, n); }}
 private:
  TQue<TPosition::VECIN, 1> q;
  TBuf<TPosition::VECCALC> w;
}};
__global__ void k() {{ K<half, 2> op; op.Run(); }}"""
HALF, WIDE = "std::is_same_v<T, half>", "if constexpr (std::is_same_v<T, half>) { Wide(); }"


@pytest.mark.parametrize(
    ("used", "condition"),
    [
        (WIDE, f"({HALF})"),
        (f"{WIDE} else {{ Abs(x, x, n); }}", f"({HALF})"),
        (f"if constexpr ({HALF}) {{ Abs(x, x, n); }} else {{ Wide(); }}", f"(!({HALF}))"),
        (f"{WIDE} else if constexpr (MODE == 2) {{ Narrow(); }}", f"((!({HALF}) && (MODE == 2)) || ({HALF}))"),
        (
            f"{WIDE} else if constexpr (std::is_same_v<T, float>) {{ Narrow(); }}",
            f"((std::is_same_v<T, float>) || ({HALF}))",
        ),
    ],
)
def test_a_buffer_is_made_for_the_types_that_use_it(used: str, condition: str) -> None:
    code = USED.format(used=used)
    if "Narrow()" not in used:
        code = code.replace("  __aicore__ inline void Narrow() { Abs(w.Get<T>(), x, n); }\n", "")
    (text,) = after("unneeded-buffers", code)
    assert f"if constexpr {condition} {{ pipe->InitBuffer(w, 64); }}" in text


@pytest.mark.parametrize(
    "used",
    [
        "Wide(); Narrow();",
        f"{WIDE} else {{ Narrow(); }}",  # always
        f"{WIDE} Narrow();",
        f"if ({HALF}) {{ Wide(); Narrow(); }}",  # compiled all the same
        "if constexpr (known) { Wide(); Narrow(); }",  # of somebody else
    ],
)
def test_a_buffer_that_is_always_used_is_made_as_before(used: str) -> None:
    assert after("unneeded-buffers", USED.format(used=used)) == []


def test_a_buffer_that_nobody_uses_is_not_made() -> None:
    code = USED.format(used="").replace("Exp(w.Get<T>(), x, n);", "").replace("Abs(w.Get<T>(), x, n);", "")
    (text,) = after("unneeded-buffers", code)
    assert "InitBuffer(w" not in text
    assert "TBuf<TPosition::VECCALC> w;" in text


def with_rings(ring_class: str) -> str:
    code = made(second="pipe->InitBuffer(b, 64); q.Begin(2, n * sizeof(T)); r.Begin(DEPTH, 40);")
    return ring_class + code.replace(
        "  uint32_t n;",
        "  FlaggedQueue<TPosition::VECIN, HardEvent::MTE2_V, HardEvent::V_MTE2> q;\n"
        "  FlaggedQueue<TPosition::VECOUT, HardEvent::V_MTE3, HardEvent::MTE3_V> r;\n  uint32_t n;",
    )


def test_rings_are_parts_of_one_as_well() -> None:
    code = with_rings(RING_CLASS)
    (text,) = after("shared-buffers", code)
    bytes_of_q = "static_cast<uint32_t>(2) * ((static_cast<uint32_t>(n * sizeof(T)) + 31) / 32 * 32)"
    assert f"q.Of(2), {bytes_of_q}, r.Of(DEPTH), " in text
    assert ".Begin(" not in text
    assert "& Of(uint32_t count)" in text
    cube = code.replace("TPosition::VECIN, ", "TPosition::A1, ").replace("TPosition::VECOUT, ", "TPosition::A2, ")
    assert all("q.Begin(2," in t for t in after("shared-buffers", cube))


def test_rings_of_another_text_stay_as_they_are() -> None:
    """bank-groups makes the rings' buffers longer: what a part would have to be told isn't known then."""
    (text,) = after("shared-buffers", with_rings(RING_CLASS.replace("buffers * length", "buffers * length + 32")))
    assert "SharedBuffer::Place(a.memory, 0, a, " in text
    assert "q.Begin(2, n * sizeof(T));" in text
    assert "Of(" not in text
