"""cross-core-flags: who meets whom, what is offered in a meeting's place, and where nothing is."""

from __future__ import annotations

import pytest

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.sources.cpp import parse, syntax_errors

KERNEL = """
class Rounds {{
  __aicore__ inline void Process() {{
    for (uint32_t i = 0; i < rounds; i++) {{
      {process}
    }}
  }}
  __aicore__ inline void Multiply() {{ Fixpipe(products[GetBlockIdx()], c, p); }}
  __aicore__ inline void Activate() {{ DataCopy(x, products[{index}], n); DataCopy(y, x, n); }}
  {more}
}};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {{ Rounds op; op.Process(); }}
"""
GROUP = "GetBlockIdx() / GetTaskRatio()"
TOGETHER = (
    "if ASCEND_IS_AIC { Multiply(); } SyncAll<false>(); if ASCEND_IS_AIV { Activate(); } SyncAll<false>(); // again"
)
APART = "if ASCEND_IS_AIC { Multiply(); SyncAll<false>(); } else { SyncAll<false>(); Activate(); }"


def program(process: str = TOGETHER, index: str = GROUP, more: str = "") -> KernelProgram:
    return KernelProgram({"k.cpp": KERNEL.format(process=process, index=index, more=more)})


def offered(kernel: KernelProgram) -> dict[str, str]:
    """Site -> the kernel with what is offered there."""
    return {r.site: r.kernel(kernel)["k.cpp"] for r in find("cross-core-flags").optimize(kernel)}


def ways(kernel: KernelProgram) -> list[str]:
    return [site.rsplit("/", 1)[-1] for site in offered(kernel)]


def flat(text: str) -> str:
    return " ".join(text.split())


def test_each_meeting_is_a_flag_in_the_direction_that_something_is_handed_on() -> None:
    found = offered(program())
    assert ways(program()) == ["all", "group", "all", "group", "all"]
    both = flat(found["all"])
    product = (
        "if ASCEND_IS_AIC { PipeBarrier<PIPE_ALL>(); CrossCoreSetFlag<2, PIPE_FIX>(0); } "
        "if ASCEND_IS_AIV { PipeBarrier<PIPE_ALL>(); CrossCoreWaitFlag(0); } if ASCEND_IS_AIV { Activate(); }"
    )
    free = (
        "if ASCEND_IS_AIC { PipeBarrier<PIPE_ALL>(); CrossCoreWaitFlag(1); } "
        "if ASCEND_IS_AIV { PipeBarrier<PIPE_ALL>(); CrossCoreSetFlag<2, PIPE_MTE3>(1); }"
    )
    assert product in both
    assert free in both
    assert "SyncAll" not in both


def test_where_any_core_may_read_it_those_that_hand_on_meet_first() -> None:
    """Which group vector cores are of, they don't ask here."""
    kernel = program(index="GetBlockIdx()")
    assert ways(kernel) == ["all", "all", "all"]
    _, product, free = map(flat, offered(kernel).values())
    assert "CrossCoreSetFlag<0, PIPE_FIX>(2); CrossCoreWaitFlag(2); CrossCoreSetFlag<2, PIPE_FIX>(0);" in product
    assert "if ASCEND_IS_AIV { SyncAll(); CrossCoreSetFlag<2, PIPE_MTE3>(1); }" in free


def test_calls_of_either_kind_meet_each_other() -> None:
    """In a loop, cube cores may not write the next product before this one is read: that, too, is handed on."""
    kernel = program(APART)
    assert ways(kernel) == ["group"]
    (code,) = map(flat, offered(kernel).values())
    assert "CrossCoreSetFlag<2, PIPE_FIX>(0); CrossCoreWaitFlag(1); } else {" in code
    assert "CrossCoreSetFlag<2, PIPE_MTE3>(1); CrossCoreWaitFlag(0); Activate();" in code


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("SyncAll<false>();", "AscendC::SyncAll<false>();", 1),
        ("if ASCEND_IS_AIC {", "if (g_coreType == AscendC::AIC) {", 1),
        ("Activate(); }", "if (i > 2) { SyncAll<false>(); } Activate(); }", 0),  # one kind meets once more
        ("else { SyncAll<false>();", "else { if (i > 2) { SyncAll<false>(); }", 0),  # not every time
        ("else {", "else { CrossCoreWaitFlag(flag);", 0),  # which flags are free can't be told
        ("SyncAll<false>();", "SyncAll();", 0),  # cores of a kind
    ],
)
def test_meetings_are_taken_for_those_that_both_kinds_get_to(old: str, new: str, found: int) -> None:
    kernel = program(APART.replace(old, new))
    assert old in APART
    assert len(offered(kernel)) == found
    for code in offered(kernel).values():
        assert ("AscendC::CrossCoreSetFlag<2, PIPE_FIX>(0)" in code) == ("AscendC::S" in new)


def test_flags_that_the_kernel_has_are_left_alone() -> None:
    more = "static constexpr uint16_t READY = 1; void Tell() { CrossCoreSetFlag<2, PIPE_FIX>(READY); Tell2(); }"
    used = program(TOGETHER.replace("Multiply();", "Multiply(); Tell();"), more=more)
    assert "CrossCoreSetFlag<2, PIPE_MTE3>(2)" in offered(used)["all"]
    objects = program(TOGETHER.replace("Multiply();", "Multiply(); REGIST_MATMUL_OBJ(p, w, m, t);"))
    assert not offered(objects)  # whose messages are flags


def test_a_meeting_that_nothing_is_handed_on_at_goes_or_is_of_one_kind() -> None:
    vectors, cubes = "if ASCEND_IS_AIV { Activate(); }", "if ASCEND_IS_AIC { Multiply(); }"
    kernel = program(" SyncAll<false>(); ".join([vectors, vectors, cubes, ""]))
    (code,) = map(flat, (c for site, c in offered(kernel).items() if site.endswith("/own")))
    assert "Activate(); } if ASCEND_IS_AIV { SyncAll(); } if ASCEND_IS_AIV" in code


def test_a_flag_that_is_raised_once_becomes_a_meeting_and_one_in_a_loop_does_not() -> None:
    told = "if ASCEND_IS_AIC { Multiply(); CrossCoreSetFlag<2, PIPE_FIX>(3); } else { CrossCoreWaitFlag(3); }"
    again = program(told)
    once = KernelProgram({"k.cpp": again.files["k.cpp"].replace("for (uint32_t i = 0; i < rounds; i++)", "")})
    assert not list(find("cross-core-flags").rewind(again))
    (rewrite,) = find("cross-core-flags").rewind(once)
    assert rewrite.kernel(once)["k.cpp"].count("SyncAll<false>();") == 2


def test_a_condition_about_the_kind_of_core_is_read_as_one() -> None:
    source = parse("k.cpp", "void f() { if ASCEND_IS_AIC { a(); } else { b(); } if ASCEND_IS_NOT_AIV return; c(); }")
    assert syntax_errors(source) == 0
    body = source.tree.root_node.children[0].child_by_field_name("body")
    assert body is not None
    assert [n.type for n in body.named_children] == ["if_statement", "if_statement", "expression_statement"]
    condition = body.named_children[0].child_by_field_name("condition")
    assert condition is not None
    assert source.text(condition) == "ASCEND_IS_AIC"
