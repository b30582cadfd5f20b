"""Blocks of tiling programs: which ran, and what follows for a text that differs in others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from host_examples import write_operator
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.build import blocks
from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.errors import HostProgramError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.protocol import EvaluateRequest
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.sources.project import load_project

TEXT = """\
int helper(int x) { if (x > 3) { return 1; } else { return 2; } }
int other(int x) { while (x > 0) { x -= 7; } return x; }
int keys(int x) { switch (x) { case 1: { return 5; } default: return 6; } }
constexpr int fixed(int x) { return x * 9; }
int jumps(int x) { if (x) { again: x--; } goto again; }
auto lambda = [](int x) { return x + 8; };
"""
FILES = {"a.cpp": TEXT}


def test_which_blocks_there_are() -> None:
    # helper and its two branches; other and its loop; keys and the block of a case, not the switch; the lambda.
    assert blocks.names(FILES) == [
        ("a.cpp", *place) for place in [(0,), (0, 0), (0, 1), (1,), (1, 0), (2,), (2, 0), (3,)]
    ]


@pytest.mark.parametrize(
    ("changed", "ran", "same"),
    [
        (("return 2", "return 3"), [(0,), (0, 0)], True),
        (("return 2", "return 3"), [(0,), (0, 1)], False),
        (("return 2;", "{ return 3; }"), [(0,), (0, 0)], True),
        (("x > 3", "x > 4"), [(0,), (0, 0)], False),
        (("x > 3", "x > 4"), [(1,)], True),
        (("x -= 7", "x -= 6"), [(1,)], True),
        (("return 6", "return 7"), [(2,)], False),  # of a switch
        (("x * 9", "x * 8"), [], False),  # constexpr
        (("x--", "x++"), [], False),  # behind a label
        (("x + 8", "x + 9"), [], True),
    ],
)
def test_changes_count_where_something_ran(changed: tuple[str, str], ran: list[tuple[int, ...]], same: bool) -> None:
    entered = frozenset(("a.cpp", *place) for place in ran)
    other = {"a.cpp": TEXT.replace(*changed)}
    assert other != FILES
    assert (blocks.digest_of_run(FILES, entered) == blocks.digest_of_run(other, entered)) is same


@given(st.sets(st.sampled_from(blocks.names(FILES))), st.sets(st.sampled_from(blocks.names(FILES))))
def test_what_runs_more_tells_more_apart(some: set[blocks.BlockId], more: set[blocks.BlockId]) -> None:
    other = {"a.cpp": TEXT.replace("7", "17").replace("return 2", "return 22")}

    def same(ran: set[blocks.BlockId]) -> bool:
        return blocks.digest_of_run(FILES, ran) == blocks.digest_of_run(other, ran)

    assert same(some) or not same(some | more)


# -- compiled ----------------------------------------------------------------------------------------------------------

CASE = Case(
    (TensorSpec("float32", (4, 8)), TensorSpec("int64", (2,)), ()), (TensorSpec("float32", (4, 8)),), (("axes", (1,)),)
)


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return load_project(write_operator(tmp_path_factory.mktemp("op")))


def changed(operator: Operator, old: str, new: str) -> Operator:
    name, text = next((p, t) for p, t in operator.baseline.tiling.items() if old in t)
    return replace(operator, baseline=operator.baseline.with_tiling(name, text.replace(old, new)))


def test_a_program_tells_what_ran(operator: Operator, tmp_path: Path) -> None:
    program = compile_host(operator, operator.baseline, virtual(), tmp_path)
    program.tiling(CASE, load_chip("ascend910b2"))
    ran = program.ran()
    program.close()
    assert ran is not None
    thirteen = changed(operator, "return ge::GRAPH_FAILED", "return ge::GRAPH_SUCCESS").baseline.tiling
    tiling = changed(operator, "set_first(1)", "set_first(2)").baseline.tiling
    known = blocks.digest_of_run(operator.baseline.tiling, ran)
    assert blocks.digest_of_run(thirteen, ran) == known
    assert blocks.digest_of_run(tiling, ran) != known


def test_a_text_that_cannot_have_marks_does_without(operator: Operator, tmp_path: Path) -> None:
    # A lambda without a mark is constexpr by itself.
    odd = changed(operator, "data.set_first(1)", "constexpr auto one = [](int x) { return x; }; data.set_first(one(1))")
    for _ in range(2):
        program = compile_host(odd, odd.baseline, virtual(), tmp_path)
        result = program.tiling(CASE, load_chip("ascend910b2"))
        program.close()
        assert result.data[0] == 1
    inner = changed(odd, "set_first(one(1))", "set_first(std::array<int, one(1)>().size())")
    program = compile_host(inner, inner.baseline, virtual(), tmp_path)
    assert program.tiling(CASE, load_chip("ascend910b2")).data[0] == 1
    assert program.ran() is None
    program.close()


def test_a_program_that_knows_its_marks_is_not_asked(operator: Operator, tmp_path: Path) -> None:
    sly = changed(operator, "ScaleRowsTilingData data;", "ScaleRowsTilingData data; /* vnpu_ran */")
    program = compile_host(sly, sly.baseline, virtual(), tmp_path)
    program.tiling(CASE, load_chip("ascend910b2"))
    assert program.ran() is None
    program.close()


def test_what_another_program_decided_is_known(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Evaluator(virtual(), "ascend910b2", workers=1, build_dir=tmp_path) as evaluator:
        asked: list[str] = []
        ask = evaluator._ask
        monkeypatch.setattr(evaluator, "_ask", lambda op, *args: (asked.append(op), ask(op, *args))[1])

        def tile(one: Operator, case: Case = CASE) -> object:
            pair = one.baseline
            return evaluator.tile(EvaluateRequest(operator, pair, case, "ascend910b2", "virtual", ()))

        first = tile(operator)
        quiet = changed(operator, "return ge::GRAPH_FAILED", "return ge::GRAPH_SUCCESS")
        assert tile(quiet) == first
        assert asked == ["tile"]
        assert tile(changed(operator, "set_first(1)", "set_first(2)")) != first
        assert asked == ["tile", "tile"]
        thirteen = Case(
            (TensorSpec("float32", (13, 8)), *CASE.inputs[1:]), (TensorSpec("float32", (13, 8)),), CASE.attrs
        )
        with pytest.raises(HostProgramError, match="thirteen"):
            tile(operator, thirteen)
        tile(quiet, thirteen)
        assert len(asked) == 4
