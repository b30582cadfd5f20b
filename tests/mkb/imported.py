"""Runs the operator of a folder, as ``ascendopt-tune run`` does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ascendopt_tune.cli.options import CaseFlags
from ascendopt_tune.cli.subject import make_subject
from ascendopt_tune.evaluate.compare import tolerance, wrong_elements
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Checked, Gate
from ascendopt_tune.evaluate.protocol import load_arrays
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.arguments import Array


def gate_of(
    operator: Operator, evaluator: Evaluator, kinds: tuple[str, ...] = (), arrays: Mapping[str, Array] | None = None
) -> Gate:
    """The gate of the first case of op.toml; ``kinds`` and ``arrays`` as :class:`Gate` takes them."""
    subject = make_subject(operator, evaluator, CaseFlags())
    return Gate(subject.operator, subject.case, evaluator, signature=subject.signature, kinds=kinds, arrays=arrays)


def checked(
    operator: Operator, evaluator: Evaluator, kinds: tuple[str, ...] = (), arrays: Mapping[str, Array] | None = None
) -> Checked:
    """The gate's verdict on the operator as it is written."""
    gate = gate_of(operator, evaluator, kinds, arrays)
    return gate.evaluate(gate.operator.baseline)


def microseconds(found: Checked) -> float:
    """The modelled time of what passed."""
    assert isinstance(found.outcome, Timed), getattr(found.outcome, "reason", "")
    return found.outcome.profile.task_duration_us


def wrong_on(gate: Gate, evaluator: Evaluator) -> dict[str, float]:
    """Stress inputs on which the operator as written is wrong -> the largest share of an output's elements.

    The gate takes an original for undefined there; whoever wrote it may want to know. Counted is what is finite and not
    larger than 1e20, so that no intermediate result had to overflow.
    """
    trials = gate.trials()
    found = evaluator.evaluate(gate._request(gate.operator.baseline, trials, keep=True, measure=False))
    shares: dict[str, float] = {}
    for trial, outputs in zip(trials, found.outputs, strict=False):
        for i, output in enumerate(outputs):
            want, got = load_arrays(trial.expected[i]), load_arrays(output)  # type: ignore[index]
            free = load_arrays(trial.leeway[i]) if trial.leeway is not None else np.zeros(want.shape, np.float32)
            free = np.where(np.isfinite(free), free, np.float32(0))
            with np.errstate(invalid="ignore"):
                usual = np.isfinite(want.astype(np.float64)) & (np.abs(want.astype(np.float64)) < 1e20)
            wrong = wrong_elements(got, want, tolerance(str(want.dtype), gate.operator.settings), free) & usual
            share = float(wrong.mean()) if wrong.size else 0.0
            if share > 0:
                shares[trial.distribution] = max(share, shares.get(trial.distribution, 0.0))
    return shares
