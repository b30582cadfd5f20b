"""Which files and facts a question has: nothing that doesn't matter, and always what has to be changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from chat_server import Server, Transcript, edit
from test_llm_proposers import ADD, BOTH, HOST, KERNEL, REFINE, REPAIR, comment, search

from ascendopt_tune.evaluate.compare import Tolerance, compare
from ascendopt_tune.llm import facts
from ascendopt_tune.llm.apis import api_facts
from ascendopt_tune.llm.client import Client, Message, estimate_tokens
from ascendopt_tune.llm.listings import (
    changed_lines,
    deciding_lines,
    fields_first,
    in_order,
    listing,
    notice_of,
    of_the_launch,
)
from ascendopt_tune.llm.proposers import LlmJoint, LlmKernel, LlmTiling
from ascendopt_tune.llm.replies import read_change
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Candidate, DirectLaunch, Pair
from ascendopt_tune.nouns.outcome import CompileFailed
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.sources.registry import load_operator

Make = Callable[..., Client]
NOTICE = "/**\n * Copyright (c) Somebody.\n * Under the Licence of somebody.\n */\n\n"
CODE = "#include <a.h>\nint f() {\n  return 1;\n}\n"


def test_the_notice_of_a_licence_is_not_shown_and_stays() -> None:
    assert notice_of(NOTICE + CODE) == NOTICE
    assert notice_of("// What it does.\n" + CODE) == ""
    files = {"x.cpp": NOTICE + CODE}
    (shown,) = listing(files, [], 1000)
    assert (shown.text, shown.cut) == (CODE, False)
    whole = "x.cpp\n```cpp\n" + CODE.replace("1", "2") + "```\n"
    assert read_change(whole, files).files["x.cpp"] == NOTICE + CODE.replace("1", "2")
    assert read_change(edit("x.cpp", "return 1", "return 3"), files).files["x.cpp"].startswith(NOTICE)


def test_of_a_long_file_what_matters_is_shown_and_what_is_left_out_is_marked() -> None:
    lines = [f"line {i};\n" for i in range(600)]
    (shown,) = listing({"x.cpp": NOTICE + "".join(lines)}, [], 2000, {"x.cpp": [NOTICE.count("\n") + 500]})
    assert shown.cut
    assert shown.gaps
    assert "line 500;\n" in shown.text
    assert "line 0;\n" in shown.text
    assert "lines are left out here]" in shown.text
    assert len(shown.text) <= 2000
    left = sum(int(line.split("[")[1].split()[0]) for line in shown.text.splitlines() if line.startswith("// ["))
    assert left + sum(line.startswith("line") for line in shown.text.splitlines()) == 600


def test_a_file_that_does_not_fit_hides_no_other_one() -> None:
    files = {"a.cpp": "a;\n" * 100, "b.h": "b;\n" * 1000, "c.h": "c;\n" * 100}
    assert [f.path for f in listing(files, ["a.cpp", "b.h"], 1000)] == ["a.cpp", "c.h"]


def test_files_come_in_the_order_in_which_they_are_included() -> None:
    files = {
        "k/main.cpp": '#include "loop.h"\n', "k/aaa.h": "", "k/base.h": "", "k/loop.h": '#include "../k/base.h"\n',
        "zzz.h": "",
    }  # fmt: skip
    assert in_order(files, ["k/main.cpp"]) == ["k/main.cpp", "k/loop.h", "k/base.h"]


def test_a_definition_in_a_file_of_its_own_is_not_offered() -> None:
    tiling = dict(ADD.baseline.tiling)
    assert of_the_launch({**tiling, "op_host/add_def.cpp": "class Add : public OpDef {};"}) == tiling
    header = "BEGIN_TILING_DATA_DEF(T)\nTILING_DATA_FIELD_DEF(uint32_t, n);\nEND_TILING_DATA_DEF;\n"
    files = {"op_host/x.cpp": '#include "x_tiling.h"\n' + "int a;\n" * 900, "op_host/x_tiling.h": header}
    assert fields_first(files, ["op_host/x.cpp", "op_host/x_tiling.h"])[0] == "op_host/x_tiling.h"


def test_the_entry_of_a_kernel_and_what_decides_the_launch_are_known() -> None:
    found = deciding_lines({KERNEL: ADD.baseline.kernel[KERNEL], HOST: ADD.baseline.tiling[HOST]})
    kernel, host = ADD.baseline.kernel[KERNEL].splitlines(), ADD.baseline.tiling[HOST].splitlines()
    assert any("__global__" in kernel[n] for n in found[KERNEL])
    assert any("SetBlockDim" in host[n] for n in found[HOST])
    assert changed_lines({"a": "1\n2\n3\n"}, {"a": "1\n4\n3\n"}) == {"a": [1]}


def test_a_kernel_that_has_grown_can_be_repaired(server: Server, make_client: Make) -> None:
    """What failed is offered, wherever it stands in a file of which the prompt can't hold all."""
    long = "\n".join(f"// {'-' * 60} {i}" for i in range(400))
    server.answer = Transcript(
        (BOTH, edit(KERNEL, "using namespace AscendC;", f"using namespace AscendC;\n{long}\n// racy", "grown")),
        (REPAIR, edit(KERNEL, "// racy", "// overlap", "mended")),
    )
    result = search([LlmJoint(make_client())], budget=3)
    assert [type(t.outcome).__name__ for t in result.history] == ["Timed", "Hazard", "Timed"]
    repair = next(m for r in server.requests for m in r["messages"] if REPAIR in m["content"])
    assert f"{KERNEL} (parts of it)" in repair["content"] or f"{KERNEL} (its beginning)" in repair["content"]
    assert result.best.candidate.pair.kernel[KERNEL].count(long) == 1
    assert all(sum(estimate_tokens(m["content"]) for m in r["messages"][:2]) < 12_000 for r in server.requests)


def test_a_later_question_shows_what_has_been_written(server: Server, make_client: Make) -> None:
    """Also behind 17,000 characters of what was there before."""
    long = "\n".join(f"// {'-' * 60} {i}" for i in range(400))
    kernel = {**ADD.baseline.kernel, KERNEL: f"{long}\n{ADD.baseline.kernel[KERNEL]}"}
    operator = replace(ADD, baseline=Pair(ADD.baseline.tiling, kernel))
    server.answer = Transcript((REFINE, comment("overlap, the new line")))
    search([LlmKernel(make_client())], budget=3, operator=operator)
    last = server.requests[-1]["messages"][1]["content"]
    assert "using namespace AscendC;  // overlap, the new line" in last
    assert "__global__" in last


def test_nothing_is_asked_about_a_tiling_program_that_is_not_there(server: Server, make_client: Make) -> None:
    kernel = {"k.cpp": ADD.baseline.kernel[KERNEL]}
    direct = DirectLaunch(8)
    operator = replace(ADD, baseline=Pair({}, kernel), direct=direct, kernel_main="k.cpp")
    assert facts.reads_tiling(kernel.values())
    trial = Trial(Candidate(0, operator.baseline, None, "baseline", "as written"), CompileFailed("x"))
    state = _State(operator, trial)
    assert LlmTiling(make_client()).propose(state, 2) == []  # type: ignore[arg-type]
    assert server.requests == []


class _State:
    def __init__(self, operator: object, incumbent: Trial) -> None:
        self.operator, self.incumbent = operator, incumbent


def test_a_kernel_of_cube_cores_is_told_what_those_have() -> None:
    kernel = load_operator("grouped_matmul").baseline.kernel.values()
    told, near = api_facts(kernel, "aic")
    names = {text.split("(")[0] for text in told}
    assert {"Mmad", "LoadData", "Fixpipe", "DataCopy"} <= names
    assert not names & {"Add", "WholeReduceSum", "Min"}, "no vector instruction, and Min is the kernel's own"
    assert "Exp" not in near
    assert "Exp" in api_facts(kernel, "mix")[1]


def test_bounds_say_which_values_an_input_always_has() -> None:
    settings = {**ADD.settings, "domain": {"x": {"values": [4, 8]}}}
    spec = TensorSpec("float16", (2,))
    text = facts.checks(replace(ADD, settings=settings), Case((spec, spec), (spec,)))
    assert "x (always [4, 8], which the kernel reads all the same)" in text
    assert "up to the largest number of the type" in text


def test_a_compiler_says_things_once() -> None:
    log = 'k.cpp:13: warning: poisoning existing macro "__VNPU__"\n'
    log += "k.cpp:4: error: no\n  note: a\nk.cpp:5: error: no\n  note: a"
    trial = Trial(Candidate(1, ADD.baseline, 0, "p", "c"), CompileFailed("k.cpp:4", log))
    text = facts.failure_text(trial)
    assert "poisoning" not in text
    assert text.count("note: a") == 1
    assert facts.places(trial, {"k.cpp": "", "other.h": ""}) == {"k.cpp": [3, 4]}


def test_a_wrong_result_says_what_the_inputs_are_there() -> None:
    got, want = np.array([[1, 7]], np.int16), np.array([[1, 1]], np.int16)
    text, _ = compare("y", got, want, Tolerance(0, 0, 0), told=lambda index: f"; there x is {index}")
    assert text is not None
    assert "first at [0, 1]: expected 1, got 7; there x is (0, 1)." in text


@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_thoughts_a_second_file_and_any_line_ends(line: str) -> None:
    """A file that nobody asked for is left out, where the reply also edits one that may change."""
    reply = (
        "<think>\n<<<<<<< SEARCH\nhm\n</think>\n"
        + edit("x.cpp", "return 1", "return 2")
        + "\nnew.h\n```cpp\nint a;\n```\n"
    )
    assert read_change(reply.replace("\n", line), {"x.cpp": CODE}).files == {"x.cpp": CODE.replace("1", "2")}


def test_a_model_whose_answers_change_no_launch_is_not_asked_for_ever(server: Server, make_client: Make) -> None:
    number = 0

    def answer(messages: Sequence[Message]) -> str:
        nonlocal number
        if '"unimportant"' in messages[-1].text:
            return '{"important": [], "unimportant": [], "notes": []}'
        number += 1
        return edit(HOST, "namespace optiling {", f"namespace optiling {{  // {number}", f"remark {number}")

    server.answer = answer
    result = search([LlmTiling(make_client())], budget=9, fingerprint=lambda candidate: "1 2 3 4 5")
    assert [t.duplicate_of for t in result.history] == [None, 0, 0, 0, 0]
    assert number == 4
    asked = server.requests[-1]["messages"][1]["content"]
    assert "#1 from #0: remark 1 -> the same launch as #0: nothing is different" in asked
