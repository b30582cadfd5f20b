"""Joint moves: what deals a kernel's turns to blocks, what may not be dealt, and a many-core candidate at the gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import one_core
import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate
from ascendopt_tune.nouns.outcome import Hazard, Outcome, Timed, WrongResult
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Proposal, Trial
from ascendopt_tune.search.engine import Search, SearchOptions, SearchResult, one_by_one
from ascendopt_tune.search.joint.deal import dealt
from ascendopt_tune.search.joint.rules import JointRules
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.search.kernel.rules import KernelRules
from ascendopt_tune.search.proposer import JOINT, SearchState
from ascendopt_tune.search.tiling.rules import TilingRules
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.cpp import apply_edits
from ascendopt_tune.sources.project import load_project

CHIP = "ascend910b4"
DEAL = "if (turn++ % 4 == AscendC::GetBlockIdx() % 4) {"


def deal(process: str) -> str:
    files = {"k.cpp": one_core.kernel(process)}
    edits = dealt(KernelProgram(files), 4)
    return apply_edits(files, edits)["k.cpp"] if edits else ""


def test_a_loop_and_its_tail_are_dealt_and_what_is_carried_along_is_not() -> None:
    text = deal(one_core.PROCESS)
    assert text.count(DEAL) == 2
    assert "class KernelGrowScale { uint32_t turn = 0;" in text  # Process may be called more than once
    inside = text.partition(DEAL)[2].partition("}")[0]
    assert "CopyIn(offset, tileLength);" in inside
    assert "CopyOut(offset, tileLength);" in inside
    assert "+=" not in inside


TURN = "CopyIn(i * tileLength, tileLength); {} CopyOut(i * tileLength, tileLength);"
LOOP = "    for (uint32_t i = 0; i < tiles; i++) {{ {} }}\n"


@pytest.mark.parametrize(
    "process",
    [
        pytest.param(LOOP.format(TURN.format("Compute(1.0f, tileLength); if (i > 3) { return; }")), id="a way out"),
        pytest.param(LOOP.format(TURN.format("Compute(lastLength++, tileLength);")), id="a count inside"),
        pytest.param(LOOP.format(TURN.format("Compute(1.0f, tileLength); SyncAll();")), id="cores meet in a turn"),
        pytest.param(
            "    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);\n"
            + LOOP.format(
                "WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0); lastLength = i; "
                + TURN.format("Compute(1.0f, tileLength); SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);")
            )
            + "    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);\n",
            id="a flag that another statement waits for",
        ),
        pytest.param(
            LOOP.format(TURN.format("Compute(1.0f, tileLength);")) + "CrossCoreSetFlag<0, PIPE_MTE3>(1);\n",
            id="a certain core is told",
        ),
        pytest.param(
            LOOP.format(TURN.format("Compute(1.0f, tileLength);"))
            + "    DataCopy(inQueue.AllocTensor<float>(), yGm, 8);\n",
            id="what other turns wrote is read",
        ),
        pytest.param(
            "    CopyIn(0, tileLength);\n" + LOOP.format("Compute(1.0f, tileLength); CopyOut(0, tileLength);"),
            id="a tile from outside of the loop",
        ),
        pytest.param("    CopyIn(0, tileLength); Compute(1.0f, tileLength); CopyOut(0, tileLength);\n", id="one turn"),
        pytest.param(LOOP.format("yGm.SetValue(i, yGm.GetValue(i - 1));"), id="what another turn's value follows from"),
        pytest.param(LOOP.format("yGm.SetValue(i, 0.0f); xGm.SetValue(i, 0.0f);"), id="two tensors by the scalar unit"),
        pytest.param(LOOP.format("uint32_t j = i + 1; yGm.SetValue(j, 0.0f);"), id="an element that the turn finds"),
        pytest.param(
            "    float total = 0.0f;\n" + LOOP.format("total += 1.0f; yGm.SetValue(i, total);"), id="a sum of all turns"
        ),
    ],
)
def test_what_is_no_unit_is_not_dealt(process: str) -> None:
    assert deal(process) == ""


def test_a_name_that_the_class_has_is_not_declared_again() -> None:
    files = {"k.cpp": one_core.kernel().replace("uint32_t tiles,", "uint32_t turn, tiles,")}
    assert "turn, tiles" in files["k.cpp"]
    assert dealt(KernelProgram(files), 4) == ()


def test_a_member_that_begins_with_the_blocks_number_begins_with_the_groups() -> None:
    mine = "  uint32_t mine = AscendC::GetBlockIdx();\n"
    files = {"k.cpp": one_core.kernel().replace("  uint32_t tiles,", f"{mine}  uint32_t tiles,")}
    after = apply_edits(files, dealt(KernelProgram(files), 4))["k.cpp"]
    assert "uint32_t mine = (AscendC::GetBlockIdx() / 4);" in after


def test_what_the_scalar_unit_writes_is_left_to_block_0() -> None:
    text = one_core.kernel().replace(
        " private:", " __aicore__ inline void Last() { yGm.SetValue(0, 0.0f); }\n private:"
    )
    files = {"k.cpp": text.replace("op.Process();", "op.Process();\n  if (data.tiles == 0) { op.Last(); }")}
    after = apply_edits(files, dealt(KernelProgram(files), 4))["k.cpp"]
    assert "if (AscendC::GetBlockIdx() % 4 == 0) { op.Last(); }" in after
    assert after.count(DEAL) == 2


BY_LINES = "if (reinterpret_cast<uint64_t>(yGm.GetPhyAddr(i)) / 64 % 4 == AscendC::GetBlockIdx() % 4) {"
SCALAR = """\
    for (uint32_t i = 0; i < (tiles - 1) * tileLength + lastLength; i++) {
      factor = 2.0f;
      float value = xGm.GetValue(i);
      if (value < 0.0f) {
        factor = 3.0f;
      }
      yGm.SetValue(i, value * factor);
    }
"""


def scalar_kernel() -> str:
    return one_core.kernel(SCALAR).replace("  uint32_t tiles,", "  float factor = 0.0f;\n  uint32_t tiles,")


def test_turns_that_write_one_element_are_dealt_by_cache_lines() -> None:
    """With what leads to the value, and a member that each turn sets before it reads it; not one that others read."""
    files = {"k.cpp": scalar_kernel()}
    after = apply_edits(files, dealt(KernelProgram(files), 4, scalar=True))["k.cpp"]
    assert " ".join(after.partition(BY_LINES)[2].split()).startswith("factor = 2.0f; float value = xGm.GetValue(i);")
    assert after.count(BY_LINES) == 1
    read = (
        files["k.cpp"]
        .replace("op.Process();", "op.Process();\n  op.Last();")
        .replace(" private:", " __aicore__ inline void Last() { lastLength = factor; }\n private:")
    )
    assert dealt(KernelProgram({"k.cpp": read}), 4, scalar=True) == ()


def test_a_kernel_is_told_of_blocks_what_it_was_told_before() -> None:
    text = one_core.PROCESS.replace("offset = 0", "offset = GetBlockIdx() * tiles / AscendC::GetBlockNum()")
    assert "offset = (GetBlockIdx() / 4) * tiles / (AscendC::GetBlockNum() / 4);" in deal(text)


def test_cores_may_meet_between_turns() -> None:
    text = deal(LOOP.format(TURN.format("Compute(1.0f, tileLength);")) + "    SyncAll();\n")
    assert text.count(DEAL) == 1
    assert "} SyncAll();" in " ".join(text.split())


def test_a_copy_out_is_dealt_with_what_it_copies() -> None:
    """Not by itself, where a condition parts it from where its tensor is taken or given."""
    process = LOOP.format("CopyIn(i * tileLength, tileLength); Compute(1.0f, tileLength); CopyOut(i * tileLength, i);")
    plain = "DataCopyPad(yGm[offset], y, {1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0});"
    taken = "LocalTensor<float> y = outQueue.DeQue<float>();"
    whole = one_core.kernel(process)
    given = whole.replace("CopyOut(i * tileLength, i);", f"{taken} CopyOut(i * tileLength, i, y);")
    given = given.replace(
        "CopyOut(uint32_t offset, uint32_t n) {", "CopyOut(uint32_t o, uint32_t n, LocalTensor<float>& y) {"
    )
    given = given.replace(f"    {taken}\n    DataCopyPad(yGm[offset]", "    DataCopyPad(yGm[o]")
    for text in (whole.replace(plain, f"if (n > 0) {{ {plain} }}"), given):
        files = {"k.cpp": text}
        after = apply_edits(files, dealt(KernelProgram(files), 4))["k.cpp"]
        assert after.count(DEAL) == 1
        assert after.partition(DEAL)[2].split()[:1] == ["CopyIn(i"]


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), CHIP, workers=1) as opened:
        yield opened


class Setup:
    """The one-core operator at a case of 48 tiles, the last one short, with its gate."""

    def __init__(self, folder: Path, evaluator: Evaluator, length: int = 24500) -> None:
        self.operator = load_project(folder)
        self.signature = evaluator.describe(self.operator).signature
        inputs = dict([parse_tensor(f"x=float32[{length}]")])
        self.case = build_case(
            self.signature, inputs, {}, {}, lambda i, a: evaluator.infer_outputs(self.operator, i, a)
        )
        self.gate = Gate(self.operator, self.case, evaluator, signature=self.signature)

    def outcome(self, candidate: Candidate) -> Outcome:
        ((_, checked),) = self.gate.evaluate_many({candidate.id: candidate.pair})
        return checked.outcome


def test_one_core_becomes_many_in_one_candidate(tmp_path: Path, evaluator: Evaluator) -> None:
    setup = Setup(one_core.write(tmp_path), evaluator)
    result = searched(setup, 3)
    first = result.history[1]
    assert (first.stage, first.candidate.proposer) == (JOINT, "joint-rules")
    assert isinstance(first.outcome, Timed), first.outcome
    assert first.outcome.profile.block_dim > 8
    assert result.speedup > 2


def searched(setup: Setup, budget: int) -> SearchResult:
    proposers = [JointRules(), TilingRules(), KernelRules()]
    how = SearchOptions(budget=budget)
    chip, ask = load_chip(CHIP), one_by_one(setup.outcome)
    return Search(setup.operator, setup.case, chip, proposers, ask, how, signature=setup.signature).run()


def test_blocks_fewer_than_half_the_cores_share_a_second_axis(tmp_path: Path, evaluator: Evaluator) -> None:
    """Two blocks have a half each whatever the tiling program says; more of them have work only if turns are dealt."""
    process = """\
    uint32_t half = tiles / 2;
    for (uint32_t i = GetBlockIdx() * half; i < (GetBlockIdx() + 1) * half; i++) {
      CopyIn(i * tileLength, tileLength);
      Compute(1.0f, tileLength);
      CopyOut(i * tileLength, tileLength);
    }
"""
    setup = Setup(one_core.write(tmp_path, process, blocks=2), evaluator, length=24576)
    result = searched(setup, 3)
    first = result.history[1]
    assert first.stage == JOINT
    assert first.candidate.change == "the turns of each of 2 blocks dealt to 6", "so many end soonest, their start paid"
    assert isinstance(first.outcome, Timed), first.outcome
    assert first.outcome.profile.block_dim == 12
    assert result.speedup > 1.5


def test_results_of_the_scalar_unit_are_shared_by_cores_wherever_the_tensor_begins(
    tmp_path: Path, evaluator: Evaluator
) -> None:
    """The gate launches with tensors that begin inside of a cache line, too, and reports lines that two cores write."""
    folder = one_core.write(tmp_path)
    (folder / "op_kernel" / "grow_scale.cpp").write_text(scalar_kernel())
    setup = Setup(folder, evaluator, length=1500)
    result = searched(setup, 2)
    first = result.history[1]
    assert first.candidate.change.startswith("one core's turns dealt to")
    assert isinstance(first.outcome, Timed), first.outcome
    assert result.speedup > 2

    pair = first.candidate.pair
    by_numbers = {
        name: text.replace("reinterpret_cast<uint64_t>(yGm.GetPhyAddr(i)) / 64", "i / 16")
        for name, text in pair.kernel.items()
    }
    assert by_numbers != pair.kernel
    assert isinstance(setup.outcome(Candidate(1, replace(pair, kernel=by_numbers), 0, "by hand", "")), Hazard)


def test_short_rows_come_together_before_their_turns_are_dealt(tmp_path: Path, evaluator: Evaluator) -> None:
    """Dealt a row a turn, no block has rows that lie one behind the other."""
    turn = TURN.format("Compute(1.0f, tileLength);")
    folder = one_core.write(tmp_path, LOOP.format(turn))
    for path in folder.rglob("*.cpp"):
        path.write_text(path.read_text().replace("TILE_LENGTH = 512", "TILE_LENGTH = 64"))
    setup = Setup(folder, evaluator, length=64 * 1000)
    result = searched(setup, 2)
    first = result.history[1]
    assert first.candidate.change.startswith("16 rows in a turn of Process; one core's turns dealt to")
    assert isinstance(first.outcome, Timed), first.outcome
    assert result.speedup > 20, "neither alone comes near"
    assert "QueueOfRows" in first.candidate.pair.kernel["op_kernel/grow_scale.cpp"]


def test_constants_of_both_programs_change_together(tmp_path: Path, evaluator: Evaluator) -> None:
    setup = Setup(one_core.write(tmp_path), evaluator)
    baseline = Candidate(0, setup.operator.baseline, None, "baseline", "as written")
    trial = Trial(baseline, setup.outcome(baseline))
    state = SearchState(
        setup.operator, setup.case, load_chip(CHIP), setup.signature, trial, trial, (trial,), 0, stage=JOINT
    )
    proposals = {p.change: p for p in JointRules().propose(state, 50)}
    outcomes = {}
    for change in ("BUFFER_NUM 1 -> 2 in both programs", "TILE_LENGTH 512 -> 1024 in both programs"):
        pair = proposals[change].pair
        assert pair.kernel != setup.operator.baseline.kernel
        assert pair.tiling != setup.operator.baseline.tiling
        outcomes[change.split()[0]] = setup.outcome(Candidate(1, pair, 0, "joint-rules", change))
    assert isinstance(outcomes["BUFFER_NUM"], Timed)
    assert isinstance(outcomes["TILE_LENGTH"], WrongResult)  # the factor grows by tiles: the gate decides, not the rule


def test_double_buffers_come_with_shorter_tiles_where_nothing_overlaps(tmp_path: Path) -> None:
    operator = load_project(one_core.write(tmp_path))
    spec = TensorSpec("float32", (24500,))

    def proposals(**counters: float) -> list[Proposal]:
        core = {"cores_active_us": 100.0, "block_time_max_us": 100.0, "block_time_min_us": 100.0, "core_start_us": 0.0}
        profile = Profile(100.0, 100.0, 30.0, 10.0, 30.0, 10.0, 40, {**core, **counters})
        trial = Trial(Candidate(0, operator.baseline, None, "baseline", "as written"), Timed(profile))
        state = SearchState(
            operator, Case((spec,), (spec,)), load_chip(CHIP), None, trial, trial, (trial,), 0, stage=JOINT
        )
        found = JointRules().propose(state, 50)
        return [p for p in found if p.moves[0].family == "double-buffer"]

    found = proposals(stall_vec_on_mte2_us=40.0, stall_mte2_on_vec_us=40.0)
    assert found
    assert all("two buffers a queue; " in p.change and len(p.moves) > 1 for p in found)
    assert proposals() == []  # nothing waits: two buffers would only shorten tiles
