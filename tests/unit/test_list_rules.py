"""Lists in the tiling data: which are shortened, to what, and when that is worth an evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate, Operator, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.search.mutation import Mutation
from ascendopt_tune.search.proposer import SearchState
from ascendopt_tune.search.tiling.context import Context
from ascendopt_tune.search.tiling.list_rules import shorter_lists
from ascendopt_tune.search.tiling.rules import mutations
from ascendopt_tune.search.tiling.slice import synthesize
from ascendopt_tune.sources.cpp import apply_edits

HOST = """
constexpr uint16_t MAX_TENSORS = 50;
#define MAX_CORES 48
// TILING_DATA_FIELD_DEF_ARR(int64_t, 64, old);
BEGIN_TILING_DATA_DEF(Data)
  TILING_DATA_FIELD_DEF(uint32_t, size);
  TILING_DATA_FIELD_DEF_ARR(int64_t, MAX_TENSORS, counts);
  TILING_DATA_FIELD_DEF_ARR(uint16_t, MAX_CORES, starts);
  TILING_DATA_FIELD_DEF_ARR(int64_t, MAX_CORES, offsets);
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 3, shape);
  TILING_DATA_FIELD_DEF_ARR(uint32_t, UNKNOWN, other);
END_TILING_DATA_DEF;
static ge::graphStatus Tiling(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const uint32_t cores = platform.GetCoreNumAiv();
  context->SetBlockDim(cores);
  return ge::GRAPH_SUCCESS;
}
"""
PATH = "op_host/op.cpp"
SPEC = TensorSpec("float32", (64, 64))


def proposed(profile: Profile, host: str = HOST) -> list[Mutation]:
    pair = Pair({PATH: host}, {"op_kernel/k.cpp": ""})
    operator = Operator("op", Path(), "k", "op_kernel/k.cpp", pair)
    baseline = Trial(Candidate(0, pair, None, "baseline", "as written"), Timed(profile))
    case = Case(((SPEC, SPEC, SPEC),), ((SPEC, SPEC, SPEC),))
    chip = load_chip("ascend910b4")
    state = SearchState(operator, case, chip, None, baseline, baseline, (baseline,), 0, frozenset({pair.hash}))
    return list(shorter_lists(synthesize(pair.tiling), Context.of(state)))


def lengths(mutation: Mutation, host: str = HOST) -> list[str]:
    text = apply_edits({PATH: host}, mutation.edits)[PATH]
    lines = [line for line in text.splitlines() if line.startswith("  TILING_DATA_FIELD_DEF_ARR")]
    return [line.split(",")[1].strip() for line in lines]


def test_lists_get_as_long_as_there_are_blocks_or_tensors() -> None:
    both, named = proposed(Profile(5.0, block_dim=20))
    assert lengths(both) == ["20", "20", "20", "3", "UNKNOWN"]
    assert lengths(named) == ["3", "20", "20", "3", "UNKNOWN"], "a list of tensors as long as the list of tensors"
    assert both.change == f"tiling lists: at most 20 elements, {30 * 8 + 28 * 2 + 28 * 8} bytes less"
    assert "// TILING_DATA_FIELD_DEF_ARR(int64_t, 64, old);" in apply_edits({PATH: HOST}, both.edits)[PATH]


def test_a_list_that_is_a_number_may_be_of_either() -> None:
    host = HOST.replace("MAX_TENSORS, ", "40, ").replace("MAX_CORES, ", "40, ")
    (both,) = proposed(Profile(5.0, block_dim=20), host)
    assert lengths(both, host)[:3] == ["20", "20", "20"]


def test_worth_is_the_share_of_the_task_that_the_copy_takes() -> None:
    short, long = (proposed(Profile(us, block_dim=20))[0].weight for us in (5.0, 500.0))
    assert short > 3.0 > long


def test_where_fewer_cores_pay_lists_are_as_long_as_those() -> None:
    counters = {"mte2_bytes": 1e5, "mte3_bytes": 1e5, "core_start_us": 1.7}
    found = proposed(Profile(5.0, aiv_time_us=3.0, block_dim=40, counters=counters))
    together = [m for m in found if len(m.moves) == 2]
    assert {m.moves[0].family for m in together} == {"core_count"}
    assert {lengths(m)[1] for m in together} == {str(int(together[0].moves[0].value))}
    assert min(m.weight for m in together) > max(m.weight for m in found if m not in together)


@pytest.mark.parametrize("profile", [Profile(5.0), Profile(5.0, block_dim=60)])
def test_nothing_is_offered_where_nothing_is_saved_or_known(profile: Profile) -> None:
    found = proposed(profile, HOST.replace("MAX_TENSORS, ", "3, "))
    assert found == []


SHORTENED = (
    HOST.replace("MAX_CORES, ", "8, ")
    .replace("MAX_TENSORS, counts", "3, counts")
    .replace("platform.GetCoreNumAiv()", "(platform.GetCoreNumAiv() < 8 ? platform.GetCoreNumAiv() : 8)")
)


def test_other_numbers_of_cores_come_with_lists_as_long() -> None:
    found = [m for m in proposed(Profile(5.0, block_dim=8), SHORTENED) if m.moves[0].family == "core_count"]
    asked = {int(m.moves[0].value) for m in found}
    assert min(asked) < 8 < max(asked)
    for m in found:
        cores = str(int(m.moves[0].value))
        assert lengths(m, SHORTENED)[:3] == ["3", cores, cores]


def test_cores_alone_are_not_changed_where_lists_are_as_long() -> None:
    pair = Pair({PATH: SHORTENED}, {"op_kernel/k.cpp": ""})
    operator = Operator("op", Path(), "k", "op_kernel/k.cpp", pair)
    trial = Trial(Candidate(0, pair, None, "baseline", "as written"), Timed(Profile(5.0, block_dim=8)))
    case = Case(((SPEC, SPEC, SPEC),), ((SPEC, SPEC, SPEC),))
    state = SearchState(operator, case, load_chip("ascend910b4"), None, trial, trial, (trial,), 0, frozenset())
    found = mutations(synthesize(pair.tiling), Context.of(state))
    cores = [m for m in found if "core_count" in {x.family for x in m.moves}]
    assert cores
    assert all(len(set(lengths(m, SHORTENED)[1:3])) == 1 and lengths(m, SHORTENED)[1] != "8" for m in cores)
