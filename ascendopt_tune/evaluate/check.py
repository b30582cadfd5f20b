"""What a candidate's launches have to hold against: its trials, checked one by one as they end.

Runs in the worker, which knows what is expected; the launches themselves are other processes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..device.launch import Arrays, as_tuple, same_bytes
from ..nouns.outcome import Hazard, WrongResult
from ..sources.arguments import Array, dtype_name
from .accuracy import Errors, ErrorsSoFar, Limit, too_inaccurate
from .compare import compare, drift, tolerance, too_much_drift
from .execute import LaunchPlan
from .protocol import ArrayArgument, EvaluateRequest, GateTrial, Habits, load_arrays, save_array
from .verdict import Failed, failure_of, slack_of


@dataclass
class Checks:
    """The checks of one evaluation, and what they have seen so far.

    ``foreign``: folders whose source lines are not the user's. ``kept_in``: where outputs are kept, if they are to be.
    ``again``: whether a launch of the same inputs is compared bit by bit with the first one.
    """

    request: EvaluateRequest
    plan: LaunchPlan
    foreign: Sequence[Path]
    kept_in: Path
    again: bool

    done: list[dict[str, Any]] = field(default_factory=list)  #: What execute.execute told of each trial.
    count: int = 0  #: Outputs compared.
    kept: list[tuple[ArrayArgument, ...]] = field(default_factory=list)
    #: Whether this process may still hold values that are expected: no other candidate's may be forked from it then.
    knows_expected: bool = False

    def __post_init__(self) -> None:
        self._seen = ErrorsSoFar()
        self._first: list[Array] = []
        self._repeats = True
        operator, (inputs, self._outputs) = self.request.operator, self.plan.names
        written = self._outputs[: len(self._outputs) - len(operator.in_place)]
        parameters = (*inputs, *written, "the workspace", "tiling")
        self._parameters = parameters if operator.direct is None else [name for name, _ in operator.direct.parameters]

    def hear(self, trial: dict[str, Any]) -> None:
        """Checks a trial that has ended, or the launch that was timed. Raises Failed when it doesn't hold."""
        trial["names"] = self._parameters
        if trial.get("timed"):
            self._check(0, trial)
            return
        number = len(self.done)
        self.done.append(trial)
        self.count += self._check(number, trial)
        if self.again:
            self._repeats &= self._repeated(number)
        if self.request.keep_outputs:
            outputs = enumerate(self.plan.outputs)
            self.kept.append(tuple(_save(self.kept_in / f"output-{number}.{k}", a) for k, a in outputs))

    def habits(self, variables: tuple[str, ...], bare: bool) -> Habits:
        """What the kernel was seen to do (protocol.Habits), with what only others know of."""
        slack: dict[str, int] = {}
        for trial in self.done:
            for place, count in slack_of(trial["report"], trial["names"]).items():
                slack[place] = max(slack.get(place, 0), count)
        relies_on = sorted({r for t in self.done for r in t["report"].get("relies_on", ())})
        return Habits(tuple(relies_on), slack, self._seen.drifts, variables, self._repeats, bare)

    # -- one trial ----------------------------------------------------------------------------------------------------

    def _check(self, number: int, done: dict[str, Any]) -> int:
        """Number of outputs compared of trial ``number`` (from 0)."""
        request, trial = self.request, self.request.trials[number]
        label = f"trial {number + 1} of {len(request.trials)}: {trial}"
        binary = Path(self.plan.launchable.binary_path)
        failure = failure_of(done, binary, self.foreign, label, request.allowed)
        if failure is not None:
            raise Failed(failure, getattr(failure, "reports", ()))
        if trial.expected is None:
            return 0
        checks = 0
        leeways = map(load_arrays, trial.leeway or (None,) * len(trial.expected))
        expectations = map(load_arrays, trial.expected)
        for name, got, expected, leeway in zip(self._outputs, self.plan.outputs, expectations, leeways, strict=True):
            free = as_tuple(leeway) or (None,) * len(as_tuple(expected))
            for k, (a, b, more) in enumerate(zip(as_tuple(got), as_tuple(expected), free, strict=True)):
                checks += 1
                full = f"{name}.{k}" if isinstance(expected, tuple) else name
                text = self._compare(number, (name, k, full), a, b, more)
                if text is not None:
                    raise Failed(WrongResult(f"{text} [{label}]"))
            if number == len(request.trials) - 1 and request.allowed is not None and as_tuple(expected):
                text = self._seen.together(name, dtype_name(as_tuple(expected)[0].dtype))
                if text is not None:
                    raise Failed(WrongResult(text))
        return checks

    def _compare(
        self, number: int, place: tuple[str, int, str], got: Array, want: Array, more: Array | None
    ) -> str | None:
        """Why one tensor is wrong, or None; what it is off by is noted. ``place``: output, number in its list, name."""
        (name, k, full), request, trial = place, self.request, self.request.trials[number]
        limit: Limit | None = dict(trial.limits).get(full)
        if same_bytes(got, want):
            self._seen.note(name, (number, k), Errors(), limit)
            return None
        self.knows_expected = True  # in freed memory
        allowed = tolerance(dtype_name(want.dtype), request.operator.settings)
        there = functools.partial(_inputs_at, self.plan.names[0], trial, k, want.shape)
        text, errors = compare(full, got, want, allowed, trial.poison, more, there)
        self._seen.note(name, (number, k), errors, limit)
        if text is None and limit is not None and request.allowed is not None:
            text = too_inaccurate(full, errors, limit.most)
        drifts = self._seen.drifts
        drifts[full] = max(drifts.get(full, 0.0), drift(got, want, more), key=abs)
        if text is None and request.allowed is not None:
            text = too_much_drift(full, drifts[full], request.allowed.drift.get(full, 0.0))
        return text

    def _repeated(self, number: int) -> bool:
        """Whether the outputs of trial ``number``, where it repeats the first one, are that one's bits.

        Raises Failed where the baseline's are and these aren't.
        """
        request = self.request
        outputs = [a for arrays in self.plan.outputs for a in as_tuple(arrays)]
        if number == 0:
            self._first = [a.copy() for a in outputs]
        if not request.trials[number].again or all(map(same_bytes, self._first, outputs)):
            return True
        if request.allowed is None or not request.allowed.repeats:
            return False
        text = "launched again on the same inputs, at other addresses, the kernel leaves other results: something"
        raise Failed(Hazard(f"{text} decides them that nobody wrote in this launch (its stack, an earlier launch)"))


def _save(path: Path, arrays: Arrays) -> ArrayArgument:
    if arrays is None:
        return None
    if isinstance(arrays, tuple):
        return tuple(save_array(path.with_name(f"{path.name}.{i}"), a) for i, a in enumerate(arrays))
    return save_array(path, arrays)


def _inputs_at(
    names: Sequence[str], trial: GateTrial, number: int, shape: tuple[int, ...], index: tuple[int, ...]
) -> str:
    """What inputs of an output's shape hold where that is wrong: ``; there x is -32768``. ``number``: within lists."""
    found = []
    for name, argument in zip(names, map(load_arrays, trial.inputs), strict=False):
        listed = isinstance(argument, tuple)
        array = as_tuple(argument)[number] if listed and number < len(as_tuple(argument)) else argument
        if isinstance(array, np.ndarray) and array.shape == shape:
            found.append(f"{name}.{number} is {array[index]}" if listed else f"{name} is {array[index]}")
    return f"; there {', '.join(found[:4])}" if found else ""
