"""Runs the operator of a folder, as ``ascendopt-tune run`` does."""

from __future__ import annotations

from collections.abc import Mapping

from ascendopt_tune.arguments import Array
from ascendopt_tune.cli import options
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Checked, Gate
from ascendopt_tune.operator import Operator
from ascendopt_tune.outcome import Timed


def checked(
    operator: Operator, evaluator: Evaluator, kinds: tuple[str, ...] = (), arrays: Mapping[str, Array] | None = None
) -> Checked:
    """The gate's verdict on the first case of op.toml; ``kinds`` and ``arrays`` as :class:`Gate` takes them."""
    subject = options.make_subject(operator, evaluator, input=[], inputs=None, output=[], attr=[], outputs=None)
    gate = Gate(subject.operator, subject.case, evaluator, signature=subject.signature, kinds=kinds, arrays=arrays)
    return gate.evaluate(subject.operator.baseline)


def microseconds(found: Checked) -> float:
    """The modelled time of what passed."""
    assert isinstance(found.outcome, Timed), getattr(found.outcome, "reason", "")
    return found.outcome.profile.task_duration_us
