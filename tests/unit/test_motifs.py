"""Motifs: both directions of each on small kernels, and what all promise, on the registry's kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_kinds import vector_operators
from motif_example import Example, kernel
from motif_examples import EXAMPLES

from ascendopt_tune.search.kernel.motifs import MOTIFS, Motif, Rewrite, find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.sources.cpp import breaks_syntax
from ascendopt_tune.sources.registry import load_operator, operator_names


def program(kernel: Mapping[str, str], tiling: Mapping[str, str], auto_sync: bool = True) -> KernelProgram:
    return KernelProgram(dict(kernel), dict(tiling), None, auto_sync)


def applied(before: KernelProgram, rewrite: Rewrite) -> KernelProgram:
    return program(rewrite.kernel(before), rewrite.tiling(before), before.auto_sync)


def text(p: KernelProgram) -> str:
    return "\n".join([*p.files.values(), *p.tiling.values()])


REGISTRY = {
    op.name: program(op.baseline.kernel, op.baseline.tiling, op.auto_sync)
    for op in map(load_operator, operator_names())
}


@pytest.mark.parametrize("example", [pytest.param(e, id=f"{e.motif}-{i}") for i, e in enumerate(EXAMPLES)])
def test_what_is_taken_away_is_brought_back(example: Example) -> None:
    motif, strong = find(example.motif), program(example.kernel, example.tiling, example.auto_sync)
    assert not re.search(example.weak, text(strong))
    weak = [applied(strong, r) for r in motif.rewind(strong)]
    weak = [w for w in weak if re.search(example.weak, text(w))]
    assert weak, "no removal leads to the weak form"
    for w in weak:
        brought_back = [applied(w, r) for r in motif.optimize(w)]
        assert any(not re.search(example.weak, text(b)) for b in brought_back)


def test_every_motif_has_an_example_and_a_name_of_its_own() -> None:
    assert {e.motif for e in EXAMPLES} == {m.name for m in MOTIFS}
    assert len({m.name for m in MOTIFS}) == len(MOTIFS) >= 20
    with pytest.raises(KeyError):
        find("no such motif")


def _finders() -> list[tuple[str, Motif]]:
    return [(direction, m) for m in MOTIFS for direction in ("optimize", "rewind")]


@given(st.sampled_from(sorted(REGISTRY)), st.sampled_from(_finders()), st.integers(0, 1000))
def test_rewrites_parse_repeat_and_are_not_found_twice(name: str, finder: tuple[str, Motif], pick: int) -> None:
    before = REGISTRY[name]
    direction, motif = finder
    found = list(getattr(motif, direction)(before))
    assert found == list(getattr(motif, direction)(program(before.files, before.tiling, before.auto_sync)))
    if not found:
        return
    rewrite = found[pick % len(found)]
    after = applied(before, rewrite)
    assert rewrite.motif == motif.name
    assert text(after) != text(before)
    assert not breaks_syntax(before.files, after.files)
    assert not breaks_syntax(before.tiling, after.tiling)
    if direction == "optimize":
        assert rewrite.site not in {r.site for r in motif.optimize(after)}


def test_bank_groups_are_those_of_the_unified_buffer() -> None:
    """Queues of a cube core's memories have none, in whatever file and way they are declared."""
    motif = find("bank-groups")
    ours = kernel("    Exp(yLocal, xLocal, n);")
    cube = {path: re.sub(r"QuePosition::(VECIN|VECOUT)", "TPosition::A1", code) for path, code in ours.items()}
    (all_of_them,) = (r for r in motif.optimize(program(ours, {})) if r.site == "shift/each")
    (one,) = (r for r in motif.optimize(program(cube, {})) if r.site == "shift/each")
    assert (all_of_them.change, one.change) == (
        "3 of 3 buffers 32 bytes longer",
        "1 of 1 buffers 32 bytes longer",
    )


def test_rings_of_one_buffer_get_a_second_one() -> None:
    """As queues do: whichever of the two motifs comes first, the other one has its place."""
    one = {
        path: re.sub(r"(InitBuffer\(\w+), 2,", r"\1, 1,", code)
        for path, code in kernel("    Exp(yLocal, xLocal, n);").items()
    }
    before = program(one, {})
    rings = applied(before, next(iter(find("rings-for-queues").optimize(before))))
    assert ".Begin(1," in text(rings)
    doubled = next(r for r in find("double-buffer").optimize(rings) if r.site == "all")
    assert doubled.change == "two buffers for each of 2 queues"
    assert text(applied(rings, doubled)).count(".Begin(2,") == 1


@pytest.mark.parametrize(
    ("name", "motif", "places"),
    [
        ("matmul", "merged-loads", 2),
        ("quant_matmul", "merged-loads", 2),
        ("grouped_matmul", "merged-loads", 2),
        ("flash_attention", "merged-loads", 3),
        ("flash_attention", "deferred-answer", 1),
        ("matmul_gelu", "large-packets", 1),
        ("matmul_gelu", "groups-first", 1),
        ("matmul_gelu", "rings-for-queues", 3),
        ("matmul", "rings-for-queues", 8),
        ("flash_attention", "rings-for-queues", 9),
        ("silu", "rings-for-queues", 3),
        ("matmul", "early-fetch", 1),
        ("quant_matmul", "early-fetch", 1),
        ("grouped_matmul", "early-fetch", 1),
        ("matmul", "unit-flag", 1),
        ("quant_matmul", "unit-flag", 1),
        ("grouped_matmul", "unit-flag", 1),
        ("flash_attention", "unit-flag", 1),
        ("matmul", "tiles-first", 2),
        ("quant_matmul", "tiles-first", 2),
        ("grouped_matmul", "tiles-first", 2),
        ("flash_attention", "tiles-first", 0),  # on both kinds of cores
        ("matmul_gelu", "unit-flag", 0),  # what the high-level Matmul does
    ],
)
def test_kernels_on_cube_cores_have_places_for_motifs(name: str, motif: str, places: int) -> None:
    assert len(list(find(motif).optimize(REGISTRY[name]))) == places


def test_loads_are_merged_only_where_the_tiles_are_whole_and_the_place_moves() -> None:
    code = """void f(const LocalTensor<half>& to, const LocalTensor<half>& of) {{
      LoadData2DParams params;
      for (uint32_t i = 0; i < rows; i++) {{ LoadData({}, {}, params); }}
    }}"""
    for to, of, found in (
        ("to[i * n * 256]", "of[(first + i) * 256]", 1),
        ("to[i * i]", "of[i * 256]", 0),  # moves unevenly
        ("to", "of[i * 256]", 0),  # stays
        ("to[i * 256]", "other[i * 256]", 1),  # of the same type, as LoadData says
    ):
        before = program({"k.cpp": code.format(to, of)}, {})
        rewrites = list(find("merged-loads").optimize(before))
        assert len(rewrites) == found, (to, of)
        for r in rewrites:
            assert "loadTurns * loadTiles <= 255" in r.kernel(before)["k.cpp"]
    half_bytes = program({"k.cpp": code.format("to[i * 256]", "of[i * 256]").replace("half", "int4b_t")}, {})
    assert not list(find("merged-loads").optimize(half_bytes))


QUEUE = """class K {{
  void Init(TPipe* pipe) {{ pipe->InitBuffer(q, 2, 512); }}
  void Run() {{
    LocalTensor<half> x = q.AllocTensor<half>(); DataCopy(x, gm, n); q.EnQue(x);
    x = q.DeQue<half>(); Exp(y, x, n); q.FreeTensor(x); {more}
  }}
  {declared}
}};"""


@pytest.mark.parametrize(
    ("declared", "more", "found"),
    [
        ("TQue<QuePosition::VECIN, 1> q;", "", 1),
        ("AscendC::TQue<AscendC::TPosition::B1, 2> q;", "", 1),
        ("TQue<TPosition::VECIN, 1> q[2];", "", 0),  # several, by a number
        ("TQue<TPosition::VECIN, 1> q, r;", "", 0),  # nobody makes the other one
        ("TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> q;", "", 0),
        ("TQue<TPosition::VECIN, 1> q;", "if (q.VacantInQue()) { return; }", 0),  # asked for more
        ("TQue<TPosition::VECIN, 1> q;", "Other(q);", 0),  # and handed on
        ("TQue<TPosition::VECIN, 1> q;", "pipe->InitBuffer(q, 1, 512);", 0),  # made twice
    ],
)
def test_queues_become_rings_only_where_nobody_asks_for_more(declared: str, more: str, found: int) -> None:
    before = program({"k.cpp": QUEUE.format(declared=declared, more=more)}, {})
    rewrites = list(find("rings-for-queues").optimize(before))
    assert len(rewrites) == found
    for r in rewrites:
        after = r.kernel(before)["k.cpp"]
        assert "q.Begin(2, 512)" in after
        assert after.count("class FlaggedQueue") == 1


@pytest.mark.parametrize("position", ["A2", "B2", "CO1"])
def test_queues_of_a_cube_core_get_two_buffers_as_others_do(position: str) -> None:
    declared = f"TQue<TPosition::{position}, 1> q;"
    code = QUEUE.format(declared=declared, more="").replace("q, 2,", "q, 1,").replace("x = q.A", "x; for (;;) x = q.A")
    before = program({"k.cpp": code}, {})
    found = [r.kernel(before)["k.cpp"] for r in find("double-buffer").optimize(before)]
    assert any("InitBuffer(q, 2, 512)" in code for code in found)


@pytest.mark.parametrize(("again", "found"), [("", 0), ("for (int i = 0; i < n; i++) ", 1)])
def test_a_queue_that_is_filled_once_needs_no_second_buffer(again: str, found: int) -> None:
    code = """class K {
  void Init(TPipe* pipe) { pipe->InitBuffer(q, 1, 512); }
  void Process(int n) { %sLoad(); }
  void Load() { LocalTensor<float> t = this->q.AllocTensor<float>(); q.EnQue(t); }
  TQue<QuePosition::VECIN, 1> q;
};"""
    before = program({"k.cpp": code % again}, {})
    assert len(list(find("double-buffer").optimize(before))) == found


@pytest.mark.parametrize(
    ("parameter", "kind", "found"),
    [("N = 1", "K<float>", 1), ("N", "K<float, 1>", 1), ("N", "K<float, 2>", 0), ("N = 2", "K<float>", 0)],
)
def test_a_number_of_buffers_that_is_a_parameter_of_the_class(parameter: str, kind: str, found: int) -> None:
    code = """template <typename T, int %s>
class K {
 public:
  void Init(TPipe* pipe) { pipe->InitBuffer(q, N, 512); }
  void Process(int n) { for (int i = 0; i < n; i++) Load(); }
  void Load() { LocalTensor<T> t = this->q.AllocTensor<T>(); q.EnQue(t); }
  TQue<QuePosition::VECIN, N> q;
};
extern "C" __global__ __aicore__ void k(GM_ADDR x) { %s op; TPipe pipe; op.Init(&pipe); op.Process(9); }"""
    before = program({"k.cpp": code % (parameter, kind)}, {})
    texts = [r.kernel(before)["k.cpp"] for r in find("double-buffer").optimize(before)]
    assert len(texts) == found
    assert all("InitBuffer(q, 2, 512)" in text for text in texts)


def test_a_ring_has_the_pipes_of_its_position() -> None:
    before = REGISTRY["matmul"]
    (rewrite,) = (r for r in find("rings-for-queues").optimize(before) if r.site == "all")
    (code,) = rewrite.kernel(before).values()
    for position, full, free in (
        ("A1", "MTE2_MTE1", "MTE1_MTE2"),
        ("B2", "MTE1_M", "M_MTE1"),
        ("CO1", "M_FIX", "FIX_M"),
        ("C2", "MTE1_M", "M_MTE1"),
    ):
        pipes = f"AscendC::HardEvent::{full}, AscendC::HardEvent::{free}"
        assert f"FlaggedQueue<TPosition::{position}, {pipes}> {position.lower()};" in code


def test_the_next_packet_is_asked_for_where_a_member_has_the_counters_name() -> None:
    before = REGISTRY["matmul"]
    (rewrite,) = find("early-fetch").optimize(before)
    code = rewrite.kernel(before)["op_kernel/matmul.cpp"]
    assert "if (k + widthK < t.k) { const uint32_t depth = Min(widthK, t.k - (k + widthK));" in code
    assert "CopyIn(m, n, (k + widthK), rows, columns, depth); }" in code


def test_unit_flags_are_spelled_as_the_products_are() -> None:
    code = REGISTRY["matmul"].files["op_kernel/matmul.cpp"]
    named = code.replace("using namespace AscendC;", "").replace(" Mmad(", " AscendC::Mmad(")
    before = program({"k.cpp": named.replace("TQue<TPosition::CO1", "AscendC::TQue<AscendC::TPosition::CO1")}, {})
    (rewrite,) = find("unit-flag").optimize(before)
    after = rewrite.kernel(before)["k.cpp"]
    assert "\n    AscendC::SetMMRowMajor();" in after
    assert "UnitFlagged<AscendC::TPosition::CO1> co1;" in after


def test_products_raise_unit_flags_in_the_last_turn_of_the_loops_of_their_sum() -> None:
    """Those are in the caller; the last one of queues that were made rings first is found as well."""
    before = REGISTRY["matmul"]
    (rings,) = (r for r in find("rings-for-queues").optimize(before) if r.site == "all")
    for kernel_ in (before, applied(before, rings)):
        (rewrite,) = find("unit-flag").optimize(kernel_)
        code = rewrite.kernel(kernel_)["op_kernel/matmul.cpp"]
        assert "lastOfSums = k + widthK >= t.k && inner + t.baseK >= depth;" in code
        assert code.count("params.unitFlag = lastOfSums ? 3 : 2;") == 2  # with bias and without
        assert code.count("params.unitFlag = 3;") == 1
        assert "UnitFlagged<TPosition::CO1> co1;" in code
        assert code.count("SetMMRowMajor();") == 1


SUMS = """class K {{
  __aicore__ inline void Run() {{
    MmadParams p; FixpipeParamsV220 q;
    for (int k = 0; k < n; k++) {{ Mmad(c, a, b, p); {inside} }}
    {more}
    SetFlag<HardEvent::M_FIX>(0); {between} WaitFlag<HardEvent::M_FIX>(0);
    {out}
  }}
}};"""
OUT = "Fixpipe(gm, c, q);"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, 1),
        ({"out": "Fixpipe<float, float, CFG_NZ>(gm, c, q);"}, 1),
        ({"out": f"if (x) {{ {OUT} }} else {OUT}"}, 1),
        ({"between": "PipeBarrier<PIPE_M>();"}, 1),
        ({"out": "for (int i = 0; i < 2; i++) { Fixpipe(gm[i], c[i], q); }"}, 0),  # several pieces of one sum
        ({"out": "Fixpipe(gm, c, FixpipeParamsV220{n, m, m, n, false});"}, 1),  # made in the call
        ({"out": "Fixpipe(gm, c, Parameters());"}, 0),  # whatever that gives
        ({"more": "while (n > 2) { Mmad(c, a, b, p); }"}, 0),  # whose last turn isn't known
        ({"between": "SetFlag<HardEvent::M_FIX>(1);"}, 0),  # which flag is whose
        ({"out": "Copy(gm, c);"}, 0),
        (
            {"inside": "if (x) { Mmad(c, a, b, p); } else { Mmad(c, a, b, bias, p); }"},
            1,
        ),  # the loop's first is never last
    ],
)
def test_sums_are_handed_over_by_unit_flags_only_where_the_last_product_is_known(
    holes: dict[str, str], found: int
) -> None:
    before = program({"k.cpp": SUMS.format(**{"inside": "", "more": "", "between": "", "out": OUT, **holes})}, {})
    rewrites = list(find("unit-flag").optimize(before))
    assert len(rewrites) == found
    for r in rewrites:
        after = r.kernel(before)["k.cpp"]
        assert after.count("p.unitFlag = k + 1 >= n ? 3 : 2;") == (2 if "inside" in holes else 1)
        assert after.count("p.unitFlag = 2;") == ("inside" in holes)
        assert len(re.findall(r"(?:q|flagged)\.unitFlag = 3;", after)) == len(re.findall(r"Fixpipe[<(]", after))
        assert "M_FIX" not in after
        assert ("SetMMRowMajor();" in after) == ("CFG_NZ" not in after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("KERNEL_TYPE_MIX_AIC_1_2", "KERNEL_TYPE_MIX_AIC_1_1"),  # a vector core a group
        ("REGIST_MATMUL_OBJ", "Register"),  # the cube core has a program of its own
        ("firstM = GetBlockIdx()", "firstM = GetBlockNum()"),  # asks where it runs in another way
    ],
)
def test_shares_are_dealt_to_groups_only_where_the_kernel_counts_vector_cores(old: str, new: str) -> None:
    before = REGISTRY["matmul_gelu"]
    motif = find("groups-first")
    (rewrite,) = motif.optimize(before)
    (host,) = (t for path, t in rewrite.tiling(before).items() if path.endswith(".cpp"))
    assert "SetBlockDim(std::min<uint32_t>(2 * ((tiling.cube.get_usedCoreNum() + VECTORS - 1) / VECTORS)" in host
    other = {path: code.replace(old, new) for path, code in before.files.items()}
    assert other != before.files
    assert not list(motif.optimize(program(other, before.tiling)))


ANSWERS = next(e.kernel["op_kernel/kernel.cpp"] for e in EXAMPLES if e.motif == "deferred-answer")


def _in_turn(code: str) -> str:
    """The example's kernel with the answer taken in its own turn."""
    strong = program({"k.cpp": code}, {})
    return next(iter(find("deferred-answer").rewind(strong))).kernel(strong)["k.cpp"]


def test_what_a_turn_carries_to_its_answer_is_held_twice() -> None:
    before = program({"k.cpp": _in_turn(ANSWERS)}, {})
    (rewrite,) = find("deferred-answer").optimize(before)
    after = rewrite.kernel(before)["k.cpp"]
    assert "InitBuffer(factor, 2 * (512) + 512)" in after
    assert "InitBuffer(work, 512)" in after  # filled anew by both halves
    assert "InitBuffer(sum, 512)" in after  # the rest's alone
    assert "if (answersOut++ > 0) { CrossCoreWaitFlag(3); }" in after  # the first flag that nobody uses
    assert after.count("CrossCoreSetFlag<2, PIPE_MTE2>(3)") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("AddUp();", "AddUp(i);"),  # the rest knows the turn
        ("Exp(factor.Get<float>(), x, n);", "Exp(sum.Get<float>(), sum.Get<float>(), n);"),  # the sum goes on in both
        ("Exp(factor", "n = 2; Exp(factor"),  # a member that both know
        ("Exp(factor.Get<float>(), x, n);", "Fill(factor.Get<float>());"),  # nobody knows what that does
        ("<2, PIPE_FIX>(2)", "<0, PIPE_FIX>(2)"),  # all cube cores, not those of a group
        ("CrossCoreWaitFlag(1)", "CrossCoreWaitFlag(ready)"),  # which flags are free can't be told
    ],
)
def test_an_answer_is_not_deferred_where_the_halves_of_a_turn_share_more(old: str, new: str) -> None:
    code = _in_turn(ANSWERS)
    assert old in code
    assert len(list(find("deferred-answer").optimize(program({"k.cpp": code}, {})))) == 1
    assert not list(find("deferred-answer").optimize(program({"k.cpp": code.replace(old, new)}, {})))


# What cube cores do has few motifs yet, and less to take away.
@pytest.mark.parametrize("name", sorted(vector_operators()))
def test_the_registry_has_something_to_take_away(name: str) -> None:
    assert len({r.motif for m in MOTIFS for r in m.rewind(REGISTRY[name])}) >= 6


# -- facts of a kernel -------------------------------------------------------------------------------------------------

BRANCHES = """
__aicore__ inline void One() { Exp(a, a, n); }
__aicore__ inline void Two() { for (int i = 0; i < n; i++) { Help(i); } }
__aicore__ inline void Help(int i) { Abs(a, a, n); }
__aicore__ inline void Dead() { Ln(a, a, n); }
template <typename T> class Used { public: __aicore__ inline void Run() { Sqrt(a, a, n); } };
template <typename T> class Unused { public: __aicore__ inline void Run() { Relu(a, a, n); } };
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  if (TILING_KEY_IS(1)) {
    One();
  } else if (TILING_KEY_IS(2)) {
    Two();
    Used<half> op;
    op.Run();
  }
}
"""


@pytest.mark.parametrize(
    ("key", "names"),
    [(None, {"Exp", "Abs", "Sqrt"}), (1, {"Exp"}), (2, {"Abs", "Sqrt"}), (3, set())],
)
def test_what_the_entry_reaches_is_live(key: int | None, names: set[str]) -> None:
    facts = KernelProgram({"k.cpp": BRANCHES}, tiling_key=key)
    assert {c.name for c in facts.calls} - {"TILING_KEY_IS", "One", "Two", "Help", "Run"} == names


def test_a_function_called_from_a_loop_is_repeated() -> None:
    facts = KernelProgram({"k.cpp": BRANCHES})
    assert {c.name for c in facts.calls if facts.repeated(c.function, c.node)} == {"Help", "Abs"}


def test_calls_know_receiver_template_and_arguments() -> None:
    facts = KernelProgram(kernel("    AscendC::Exp<T, true>(yLocal[n * (1 + 2)], xLocal, n);"))
    call = next(facts.named("Exp"))
    assert (call.template, call.args) == ("<T, true>", ("yLocal[n * (1 + 2)]", "xLocal", "n"))
    assert call.spelled("Ln", "a", "b") == "AscendC::Ln(a, b)"
    taken = next(facts.named("DeQue"))
    assert (taken.receiver, taken.statement) == ("inQueue", None)


def test_a_site_is_named_the_same_after_edits_elsewhere() -> None:
    before = program(
        kernel("    Exp(yLocal, xLocal, n);\n    Exp(yLocal, xLocal, n);\n    Abs(yLocal, yLocal, n);"), {}
    )
    after = program(kernel("    Ln(yLocal, xLocal, n);\n    Exp(yLocal, xLocal, n);\n    Abs(yLocal, yLocal, n);"), {})
    sites = [[p.site(c.function, c.node) for c in p.named("Exp", "Abs")] for p in (before, after)]
    assert sites == [
        ["Compute/Exp(yLocal, xLocal, n)", "Compute/Exp(yLocal, xLocal, n)#2", "Compute/Abs(yLocal, yLocal, n)"],
        ["Compute/Exp(yLocal, xLocal, n)", "Compute/Abs(yLocal, yLocal, n)"],
    ]


def test_what_a_copy_takes_elsewhere_is_made_there() -> None:
    body = "Mul(x, a, b, n);\n PipeBarrier<PIPE_V>();\n {} Adds(y, x, 0.0f, n);\n {} q.FreeTensor(x);"
    for between, behind, found in (
        ("", "", 1),
        ("Abs(y, b, n);", "", 0),
        ("", "Abs(z, x, n);", 0),
        ("Abs(c, x, n);", "", 0),
    ):
        kernel = f"void f() {{ for (int i = 0; i < t; i++) {{ {body.format(between, behind)} }} }}"
        rewrites = [r for r in find("extra-copy").optimize(program({"k.cpp": kernel}, {})) if r.site.endswith("/made")]
        assert len(rewrites) == found, (between, behind)
        for r in rewrites:
            assert "Mul(y, a, b, n);" in r.kernel(program({"k.cpp": kernel}, {}))["k.cpp"]


def test_a_cast_of_what_stays_is_moved_in_front_of_the_loop() -> None:
    kernel = (
        "void f() { for (int i = 0; i < t; i++) { Cast(g, gamma, RoundMode::CAST_NONE, n); Mul(y, x[i * n], g, n); } }"
    )
    (rewrite,) = find("loop-invariant").optimize(program({"k.cpp": kernel}, {}))
    after = rewrite.kernel(program({"k.cpp": kernel}, {}))["k.cpp"]
    assert after.index("Cast(g") < after.index("for (")
    assert not list(find("loop-invariant").optimize(program({"k.cpp": kernel.replace("Mul(y", "Mul(gamma")}, {})))


SERIAL = """
class Store {
 public:
  __aicore__ inline void Process() {
    for (int i = 0; i < n; i++) {
      LocalTensor<half> tile = buf.Get<half>();
      DataCopy(tile, xGm[i * len], len);
      DataCopy(yGm[i * len], tile, len);
      %s
    }
  }
  __aicore__ inline void Init() { pipe.InitBuffer(buf, UB_SIZE); }
  TBuf<TPosition::VECCALC> buf;
};
constexpr uint32_t UB_SIZE = 196608;
"""


def test_a_store_is_waited_for_a_turn_later_in_halves_of_its_buffer() -> None:
    event = "int e = GetTPipePtr()->FetchEventID(HardEvent::MTE3_MTE2);"
    for waits in (
        f"{event} SetFlag<HardEvent::MTE3_MTE2>(e); WaitFlag<HardEvent::MTE3_MTE2>(e);",
        f"{event} set_flag(PIPE_MTE3, PIPE_MTE2, e); wait_flag(PIPE_MTE3, PIPE_MTE2, e);",
    ):
        before = program({"k.cpp": SERIAL % waits}, {})
        same, halves = find("deferred-wait").optimize(before)
        assert "storeDone[(storesUnderWay + 1) % 2]" in same.kernel(before)["k.cpp"]
        after = halves.kernel(before)["k.cpp"]
        assert "tileBoth[storesUnderWay % 2 * (tileBoth.GetSize() / 2 / 32 * 32)]" in after
        assert "InitBuffer(buf, 2 * (UB_SIZE))" in after
        assert "UB_SIZE = 98304;" in after
        assert not list(find("deferred-wait").optimize(program({"k.cpp": after}, {})))
    other = event.replace("MTE3_MTE2", "V_MTE3") + "SetFlag<HardEvent::V_MTE3>(e); WaitFlag<HardEvent::V_MTE3>(e);"
    assert not list(find("deferred-wait").optimize(program({"k.cpp": SERIAL % other}, {})))


ROWS = """
class Quant {
 public:
  __aicore__ inline void Compute(LocalTensor<float>& x, LocalTensor<half>& y, LocalTensor<float>& scale) {
    for (int64_t i = 0; i < rows; ++i) {
      %s
    }
  }
};
"""


@pytest.mark.parametrize(
    ("turn", "contains"),
    [
        (
            "int64_t at = i * len;\n Mul(x[at], x[at], scale, n);\n PipeBarrier<PIPE_V>();\n"
            "if (hasOffset) { Adds(x[at], x[at], 1.0f, n); }\n Cast(y[i * half], x[at], RoundMode::CAST_RINT, n);\n"
            "Round(y, at);",
            ["if (hasOffset) {", "for (int64_t i = 0; i < rows; ++i) { int64_t at = i * len; Round(y, at);"],
        ),
        ("Cast(y[i * half], x[i * len], RoundMode::CAST_RINT, n);", ["UnaryRepeatParams(1, 1,", "sizeof(half)"]),
        ("Cast(y, x[i * len], RoundMode::CAST_RINT, n);", []),  # every row in the same place
        ("if (i > 0) { Muls(x[i * len], x[i * len], 2.0f, n); }", []),  # not for every row
        ("Muls(x[i * len], x[i * len], 2.0f, n);\n n = n - 1;", []),  # another length each row
        ("Muls(x[i * len], x[i * len], 2.0f, n);\n if (stop) { break; }", []),
    ],
)
def test_rows_are_repeats_with_what_is_the_same_for_all_around_them(turn: str, contains: list[str]) -> None:
    before = program({"k.cpp": ROWS % turn}, {})
    found = [r.kernel(before)["k.cpp"] for r in find("merged-rows").optimize(before)]
    assert len(found) == bool(contains)
    assert all(text in found[0] for text in contains)


def test_a_function_behind_a_bare_scope_is_of_no_class() -> None:
    """As the parser has it where a macro stands in a class's place."""
    program = KernelProgram({"k.cpp": "template <typename T>\nvoid ::Run(T x) { Go(x); }\nvoid A<int>::Stop() {}\n"})
    assert [program.class_of(f) for f in program.program.functions] == ["", "A"]
    assert program.functions == program.program.functions  # no entry: all of them
