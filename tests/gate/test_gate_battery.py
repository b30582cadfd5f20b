"""The battery of the gate: no wrong variant passes, no right one is refused.

``make gate-battery`` runs at least 600 wrong variants over at least 40 operators (those of the registry; those of
cann-ops with ASCENDOPT_CANN_OPS) and at least 150 right ones; CI runs a few of each. What is accepted does what the
original does (battery.py), or is named in ``RIGHT`` with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from battery import REGISTRY, Bench, Subject, cann_ops
from right import variants
from tree_mutants import some
from wrong_by_hand import faults
from wrong_ideas import ideas

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.nouns.outcome import Outcome, Timed

_PER_REGISTRY, _PER_CANN_OPS, _IN_CI = 40, 12, 4
# What other checks refuse of a motif's rewrites, which promise values and no more (motif.py).
_OTHER_CHECKS = re.compile(
    r"not ordered after|nobody has written|nothing was written|Unified Buffer|past the end of its buffer|queue"
)

#: Accepted though their bits differ: operator, part of the change, and why that is right.
RIGHT = (
    ("pooling/global_avg_pool", "global_avg_pool.cpp:141: == -> !=", "adds up one by one instead of by ReduceSum"),
    ("softmax", "0.0f -> 0.001f", "what is added to a whole line before its softmax is divided out again"),
    ("softmax", "static_cast<uint32_t>(tileCols) -> (static_cast<uint32_t>(tileCols)) + 1", "tiles of another length"),
    ("pooling/avg_pool3_d_grad", "GetBlockIdx() -> (GetBlockIdx() ^ 1)", "cores swap shares that are added atomically"),
    ("math/sin", "sin.cpp:509: processDataNum -> (processDataNum) - 1",
     "the last term of a polynomial for one element: 2.7e-6 * (pi/4)**9, 0.001 units in the last place"),
    ("image/multi_scale_deformable_attention_grad", "GetBlockIdx() -> (GetBlockIdx() ^ 1)",
     "cores swap shares that are added atomically"),
    ("pooling/adaptive_avg_pool3d_grad", "GetBlockIdx() -> (GetBlockIdx() ^ 1)",
     "cores swap shares that are added atomically"),
    ("norm/quantize_add_layer_norm", "single_row_kernel.h:195: numLastDim -> ((numLastDim) > 8",
     "leaves a rounding to bfloat16 on the way out, which the formula doesn't have"),
    ("norm/group_norm_silu", "group_norm_silu_base.h:46: 220 -> 110",
     "rounds exact halves to the even neighbour, as the formula does; the original rounds them away from zero"),
)  # fmt: skip
# Rewrites of motifs that are wrong in the case of this battery: refused for their values, and rightly.
WRONG_REWRITES = (
    "optimize alignment-512",  # rounds up the share of a core, which more than alignment depends on
    "rewind loop-invariant RowReciprocalRoot/Duplicate(square",  # a sum has to begin anew with every row
    "rewind extra-copy FromFloat/Muls(dst, rowFloat",  # DataCopy within UB drops a tail shorter than a block
    "optimize copy-without-pad",  # drops the tail of a length that is no multiple of a block
    # Adds in place, and the caller goes on with the elements.
    "optimize add-tree Sum/ReduceSum(sum, src, work, rowLength); ReduceSum of Sum by halves, in place",
    "rewind cast-once Quantize/Cast(rowHalf, rowInt16",  # casts anew what lies where the first result is
)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), "ascend910b3", limits=ProcessLimits(run_s=20), workers=2) as opened:
        yield opened


@pytest.fixture(scope="module")
def seen() -> Counter[str]:
    """What became of the battery's variants, and in how many operators."""
    return Counter()


def holes(bench: Bench, count: int, seen: Counter[str]) -> list[str]:
    """Wrong variants among ``count`` that are accepted, in words."""
    mutants = some(bench.operator, count, tiling_key=bench.tiling_key)
    found = []
    for number, outcome, same in bench.judge({i: m.pair for i, m in enumerate(mutants)}):
        what = mutants[number].what
        why = same or next((r for path, w, r in RIGHT if path == bench.subject.operator and w in what), "")
        seen[f"refused: {type(outcome).__name__}" if not isinstance(outcome, Timed) else why or "accepted"] += 1
        if isinstance(outcome, Timed) and not why:
            found.append(f"{bench.subject}: {mutants[number].kind}: {what}")
    return found


def refused(bench: Bench, some_of: slice, seen: Counter[str]) -> list[str]:
    """Right variants that are refused, in words."""
    named = list(variants(bench.operator, bench.tiling_key))[some_of]
    found = []
    for number, checked in bench.gate.evaluate_many({i: pair for i, (_, pair) in enumerate(named)}):
        name = named[number][0]
        if isinstance(checked.outcome, Timed):
            seen["right"] += 1
        elif not _excused(name, checked.outcome):
            found.append(f"{bench.subject}: {name}: {checked.outcome.reason}")
    return found


def _excused(name: str, outcome: Outcome) -> bool:
    if not name.startswith("motif: "):
        return False
    reason = getattr(outcome, "reason", "")
    return bool(_OTHER_CHECKS.search(reason)) or any(w in name for w in WRONG_REWRITES)


def plain(subject: Subject) -> Subject:
    return replace(subject, constants=())


def test_a_few_wrong_variants_are_refused(evaluator: Evaluator, seen: Counter[str]) -> None:
    bench = Bench(REGISTRY[11], evaluator)
    assert holes(bench, 2 * _IN_CI, seen) == []


def test_a_few_right_variants_are_accepted(evaluator: Evaluator, seen: Counter[str]) -> None:
    assert refused(Bench(plain(REGISTRY[11]), evaluator), slice(5, 5 + 2 * _IN_CI), seen) == []


@pytest.mark.battery
@pytest.mark.parametrize("subject", REGISTRY, ids=str)
def test_wrong_variants_of_the_registry(subject: Subject, evaluator: Evaluator, seen: Counter[str]) -> None:
    assert holes(Bench(subject, evaluator), _PER_REGISTRY, seen) == []
    seen[f"operator {subject.operator}"] += 1


@pytest.mark.battery
@pytest.mark.parametrize("subject", cann_ops(), ids=str)
def test_wrong_variants_of_cann_ops(subject: Subject, evaluator: Evaluator, seen: Counter[str]) -> None:
    assert holes(Bench(subject, evaluator), _PER_CANN_OPS, seen) == []
    seen[f"operator {subject.operator}"] += 1


@pytest.mark.battery
@pytest.mark.parametrize("subject", REGISTRY, ids=str)
def test_right_variants_of_the_registry(subject: Subject, evaluator: Evaluator, seen: Counter[str]) -> None:
    assert refused(Bench(plain(subject), evaluator), slice(None), seen) == []


@pytest.mark.battery
def test_the_counts_of_the_battery(seen: Counter[str], capsys: pytest.CaptureFixture[str]) -> None:
    operators, by_hand = sum(key.startswith("operator ") for key in seen), len([*faults(), *ideas()])
    with capsys.disabled():
        print(f"\n{operators} operators, {by_hand} wrong variants by hand")
        print("\n".join(f"{n:5d} {what}" for what, n in seen.most_common() if not what.startswith("operator ")))
    assert seen["right"] >= 150
    if cann_ops():
        assert operators >= 40
        assert sum(n for what, n in seen.items() if what.startswith("refused")) + by_hand >= 600
