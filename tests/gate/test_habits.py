"""No worse habits than the original, also in a search, which asks for several pairs at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.sources.registry import load_operator

PATH = "op_kernel/silu.cpp"
SPEC = TensorSpec("float16", (64, 1024))


def test_a_search_holds_candidates_to_the_originals_habits(tmp_path: Path) -> None:
    operator = replace(load_operator("silu"), reference=None)
    text = operator.baseline.kernel[PATH]
    leaning = operator.baseline.with_kernel(PATH, text.replace("CAST_RINT", "CAST_FLOOR"))
    assert leaning.kernel != operator.baseline.kernel
    with Evaluator(toolkit.virtual(), workers=1, build_dir=tmp_path) as evaluator:
        gate = Gate(operator, Case((SPEC,), (SPEC,)), evaluator)
        ((_, first),) = gate.evaluate_many({0: operator.baseline})
        assert isinstance(first.outcome, Timed), first.outcome
        ((_, second),) = gate.evaluate_many({1: leaning})
    assert isinstance(second.outcome, WrongResult), second.outcome
