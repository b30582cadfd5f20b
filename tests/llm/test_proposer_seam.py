"""What every proposer promises (search/proposer.py). Whoever is in the list of llm/choice.py is tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from chat_server import Server, Transcript, edit

from ascendopt_tune.bank.retrieval import Retrieval
from ascendopt_tune.llm.choice import choose
from ascendopt_tune.llm.client import Client
from ascendopt_tune.llm.proposers import LlmKernel, LlmTiling
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.search.budget import Limits, Usage
from ascendopt_tune.search.proposer import JOINT, Proposer, SearchState
from ascendopt_tune.search.tiling.warm_start import Neighbour, WarmStart
from ascendopt_tune.sources.cpp import breaks_syntax
from ascendopt_tune.sources.registry import load_operator

SPEC = TensorSpec("float16", (128, 1024))
ADD = load_operator("add")
HOST, KERNEL = "op_host/add.cpp", "op_kernel/add.cpp"
RULES = choose("rules", None, limits=Limits(), usage=Usage(), seed=0, say=lambda text: None).proposers
LISTED = [*(p.name for p in RULES), "warm-start", "tiling-llm", "kernel-llm"]
NOT_FOR_ADD = {"joint-rules"}  # it is a kernel of many cores with two buffers already


@pytest.fixture
def listed(server: Server, make_client: Callable[..., Client], request: pytest.FixtureRequest) -> Proposer:
    name: str = request.param
    for proposer in RULES:
        if proposer.name == name:
            return proposer
    if name == "warm-start":
        longer = {HOST: ADD.baseline.tiling[HOST].replace("= 2048;", "= 4096;")}
        return WarmStart([Neighbour("0" * 64, "tiling", "add [64,1024]", longer, {}, ())])
    server.answer = Transcript(
        ("Change the **tiling", edit(HOST, "TILE_LENGTH = 2048;", "TILE_LENGTH = 4096;", "tile 4096")),
        ("Change the **kernel", edit(KERNEL, "using namespace AscendC;", "using namespace AscendC;  // b", "b")),
    )
    client = make_client()
    return LlmTiling(client) if name == "tiling-llm" else LlmKernel(client, Retrieval(lambda text: None, ""))


def state(stage: int, failed: bool = False) -> SearchState:
    core = {"cores_active_us": 90.0, "block_time_max_us": 90.0, "block_time_min_us": 80.0, "core_start_us": 1.0}
    profile = Profile(100.0, 90.0, 30.0, 10.0, 60.0, 10.0, 40, core)
    first = Trial(Candidate(0, ADD.baseline, None, "baseline", "as written"), Timed(profile))
    history = [first]
    if failed:
        wrong = ADD.baseline.with_tiling(HOST, ADD.baseline.tiling[HOST] + "\n// wrong\n")
        history.append(Trial(Candidate(1, wrong, 0, "somebody", "wrong"), WrongResult("3 of 9 elements")))
    seen = frozenset(t.candidate.pair.hash for t in history)
    case = Case((SPEC, SPEC), (SPEC,))
    return SearchState(ADD, case, load_chip("ascend910b2"), None, first, first, tuple(history), 7, seen, stage)


def test_names_are_used_once() -> None:
    assert len(set(LISTED)) == len(LISTED)


@pytest.mark.parametrize("failed", [False, True], ids=["at the start", "after a failure"])
@pytest.mark.parametrize("listed", LISTED, indirect=True, ids=LISTED)
def test_a_proposer_keeps_its_promises(listed: Proposer, failed: bool) -> None:
    assert listed.name
    assert listed.stage in (1, 2, JOINT)
    given = state(listed.stage, failed)
    before = replace(given)
    found = listed.propose(given, 3)
    assert given == before, "a state is read, never changed"
    assert len(found) <= 3
    assert found or listed.name in NOT_FOR_ADD
    hashes = [p.pair.hash for p in found]
    assert len(set(hashes)) == len(hashes), "each once"
    assert given.seen.isdisjoint(hashes), "nothing that was proposed before"
    for p in found:
        parent = next(t for t in given.history if t.candidate.id == p.parent).candidate.pair
        assert p.change
        assert "\n" not in p.change
        assert set(p.pair.tiling) == set(parent.tiling), "no file comes or goes"
        assert set(p.pair.kernel) == set(parent.kernel)
        assert listed.stage == JOINT or listed.stage == 2 or p.pair.kernel == parent.kernel
        assert not breaks_syntax(parent.tiling, p.pair.tiling)
        assert not breaks_syntax(parent.kernel, p.pair.kernel)


@pytest.mark.parametrize("name", [p.name for p in RULES])
def test_rules_propose_the_same_again(name: str) -> None:
    rule = next(p for p in RULES if p.name == name)
    once, again = (rule.propose(state(rule.stage), 5) for _ in range(2))
    assert [p.pair.hash for p in once] == [p.pair.hash for p in again]


def test_what_is_exhausted_says_so(tmp_path: Path) -> None:
    for rule in RULES:
        given = state(rule.stage)
        for _ in range(200):
            found = rule.propose(given, 20)
            if not found:
                break
            given = replace(given, seen=given.seen | {p.pair.hash for p in found})
        assert not found, f"{rule.name} never ends"
