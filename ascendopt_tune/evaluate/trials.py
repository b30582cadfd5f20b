"""The trials of a gate: inputs, what is expected of them, and how exact a candidate has to be.

Expected is the reference's formula in float64 (reference.py); without a reference, what the baseline computes. The
baseline runs on every trial first. Its errors set the candidates' limits (accuracy.py). Where it is wrong itself the
operator isn't defined: on those elements a candidate may do what it likes, on all others it is held to what the
baseline gets right.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..device.launch import as_tuple
from ..errors import AscendOptError, CaseError, HostProgramStuck, OperatorError
from ..nouns.case import Case, flatten
from ..nouns.operator import Operator, Signature
from ..nouns.outcome import CompileFailed, Timed, TimedOut, reason_of
from ..sources.arguments import Array, dtype_name, numpy_dtype
from .accuracy import Limit, doubtful, limits
from .compare import Tolerance, compare, drift, tolerance, untouched, wrong_elements
from .evaluator import Evaluator
from .inputs import HALVES, PLAIN, TIES, make_inputs, schedule
from .moves import exact, negated, of_inputs, same_but_nan, tensors, turned
from .protocol import ArrayArgument, EvaluateRequest, EvaluationResult, GateTrial, Habits, load_arrays, save_array
from .reference import HUGE, Formula, formula, mapped

# NaN and -1; a large value (float16: 203, others: 1.5e16), so that no result is near it. Trials take them in turn.
_POISON = (0xFF, 0x5A)
_BYTES = 64 << 20  # of tensors of all trials together; large cases get fewer trials, but at least these
_LEAST, _MOST = 7, 30
_COPIES = 3  # of a case's tensors that a trial holds: as they were drawn, on the device, and what is expected
# Of a leeway: about 2**21 of it is what was added up, and another order may go beyond what float32 holds.
_NEAR_OVERFLOW = 2.0**100
_HELD = 1.0 / 64  # of a trial's elements the baseline has to get right, or the trial says nothing

Ask = Callable[[Sequence[GateTrial]], EvaluateRequest]


@dataclass(frozen=True)
class Trials:
    """``skipped``: why a trial is not among them. ``habits``: the baseline's; None where it doesn't run.

    ``steps``: lengths at whose multiples their outliers are. ``unwritten``: outputs that the baseline, where it is the
    specification, leaves as they were in every trial: how many elements, and of how many. ``stuck``: what became of
    the baseline where it doesn't end on the first, plain inputs: nobody waits for it on others.
    """

    trials: tuple[GateTrial, ...]
    skipped: tuple[str, ...] = ()
    habits: Habits | None = None
    steps: tuple[int, ...] = ()
    unwritten: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    stuck: EvaluationResult | None = None


def check_memory(size: int) -> None:
    """Raises CaseError if this machine's memory can't hold a trial of ``size`` bytes of tensors."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if _COPIES * size > there:
        raise CaseError(
            f"the tensors of this case take {size / 2**30:.1f} GiB, and a trial holds them {_COPIES} times; this "
            f"machine has {there / 2**30:.1f} GiB of memory.",
            "Take a smaller shape.",
        )


@dataclass(frozen=True)
class TrialMaker:
    """Makes the trials of one operator and case; ``arrays``: the user's own inputs by name, for the first trial."""

    operator: Operator
    case: Case
    evaluator: Evaluator
    signature: Signature | None
    arrays: Mapping[str, Array]
    seed: int
    kinds: tuple[str, ...] = ()  # of the trials; none: what the case's size allows

    # -- inputs -------------------------------------------------------------------------------------------------------

    def inputs(self, most: int | None = None, steps: Sequence[int] = ()) -> tuple[GateTrial, ...]:
        """Trials without anything expected; ``most`` of them. Raises CaseError where no memory can hold one."""
        names = self._names()
        size = sum(t.nbytes for t in flatten((*self.case.inputs, *self.case.outputs)))
        check_memory(size)
        count = min(_MOST, max(_LEAST, _BYTES // max(size, 1)))
        kinds = self.kinds or schedule(self.case, names, self.operator.settings, count)
        if sum(t.numel for t in flatten((*self.case.inputs, *self.case.outputs))) > HUGE:
            kinds = ("normal", "large", "uniform", "zeros")  # nothing tells what float32 loses on the others
        value_depend = [p.value_depend for p in self.signature.inputs] if self.signature is not None else []
        trials: list[GateTrial] = []
        first: tuple[Any, ...] = ()
        for i, kind in enumerate(kinds[:most]):
            seed = self.seed * _MOST + i
            arrays = list(make_inputs(self.case, names, self.operator.settings, kind, seed, steps))
            first = first or tuple(arrays)
            for k, depends in enumerate(value_depend):
                if depends:  # one tiling serves all trials, so what it reads is the same in all
                    arrays[k] = first[k]
            if i == 0:
                arrays = [self._users(n, a) for n, a in zip(names, arrays, strict=True)]
                first = tuple(arrays)
            trials.append(GateTrial(seed, kind, self._save(arrays, f"input-{i}"), poison=_POISON[i % len(_POISON)]))
        return tuple(trials)

    def _names(self) -> tuple[str, ...]:
        if self.signature is not None:
            return tuple(p.name for p in self.signature.inputs)
        direct = self.operator.direct
        assert direct is not None
        attrs = dict(self.case.attrs)
        pointers = [n for n, _ in direct.parameters if n not in attrs and n != "workspace"]
        return tuple(pointers[: len(self.case.inputs)])

    def _users(self, name: str, made: Any) -> Any:
        """The user's array of that name, or what was made."""
        if isinstance(made, tuple):
            return tuple(self._users(f"{name}.{i}", a) for i, a in enumerate(made))
        given = self.arrays.get(name)
        if given is None:
            return made
        if given.shape != made.shape or given.dtype != made.dtype:
            wanted = f"{made.dtype}{list(made.shape)}"
            raise CaseError(f"the array {name} is {given.dtype}{list(given.shape)}, the case has {wanted}.")
        return given

    def _save(self, arrays: Sequence[Any], what: str) -> tuple[ArrayArgument, ...]:
        folder = Path(tempfile.mkdtemp(dir=self.evaluator.folder, prefix=f"{what}-"))

        def one(name: str, value: Any) -> ArrayArgument:
            if value is None:
                return None
            if isinstance(value, tuple):
                return tuple(save_array(folder / f"{name}.{i}", v) for i, v in enumerate(value))
            return save_array(folder / name, value)

        return tuple(one(str(i), a) for i, a in enumerate(arrays))

    # -- what is expected ---------------------------------------------------------------------------------------------

    def make(self, ask: Ask, steps: Sequence[int] = ()) -> Trials:
        """All trials, with what is expected.

        Args:
            ask: for the evaluation of the baseline on trials, its outputs kept, nothing measured.
            steps: lengths of a candidate's tiling, at whose multiples outliers are put as at those of the baseline's.

        Raises:
            OperatorError: the reference fails.
            HostProgramError: the baseline's tiling function refuses the case.
        """
        try:
            steps = (*steps, *self._steps(ask))
        except HostProgramStuck as error:
            return Trials(self.inputs(1), stuck=EvaluationResult(TimedOut(error.message)))
        bare = self.inputs(steps=steps)
        formulas: list[Formula | None] = [None] * len(bare)
        skipped: list[str] = []
        if self.operator.reference is not None:
            try:
                formulas = [self._formula(t, skipped) for t in bare]
            except OperatorError:
                # A case that the operator itself refuses is no fault of its reference.
                self.evaluator.tile(ask(bare[:1]))
                raise
            bare = tuple(t for t, f in zip(bare, formulas, strict=True) if f is not None)
            formulas = [f for f in formulas if f is not None]
        if not bare:
            return Trials((), tuple(skipped))
        ran = self._run(ask, bare)
        if isinstance(ran[0].outcome, TimedOut) and bare[0].distribution in PLAIN:
            return Trials(bare[:1], tuple(skipped), stuck=ran[0])
        alone = self._alone(ask, bare, formulas, ran)
        moved = self._moved(ask, bare, formulas, ran)
        made: list[GateTrial] = []
        habits: Habits | None = None
        for i, (trial, found, result) in enumerate(zip(bare, formulas, ran, strict=True)):
            if not isinstance(result.outcome, Timed):
                if trial.distribution not in PLAIN:
                    skipped.append(f"{trial}: {reason_of(result.outcome)}")
                elif found is not None:
                    made.append(replace(trial, expected=self._save(found.expected, f"expected-{i}")))
                else:
                    return Trials(bare, tuple(skipped))  # the baseline's own evaluation then tells what is wrong
                continue
            habits = joined(habits, result.habits)
            if found is None:
                made.append(self._as_the_baseline(trial, result.outputs[0], i, trial.seed in alone))
                continue
            one, drifts, why = self._held(trial, found, result.outputs[0], i)
            habits = joined(habits, Habits(drift=drifts))
            made += [one] if one is not None else []
            skipped += [why] if why else []
        made = [self._exact(trial, moved) for trial in made]
        if made and habits is not None and habits.repeats:
            made.insert(min(2, len(made)), replace(made[0], again=True, poison=made[0].poison ^ 0x3C))
        its_own = [(t, r) for t, f, r in zip(bare, formulas, ran, strict=True) if f is None]
        return Trials(tuple(made), tuple(skipped), habits, steps, self._unwritten(its_own))

    def _moved(
        self,
        ask: Ask,
        trials: Sequence[GateTrial],
        formulas: Sequence[Formula | None],
        ran: Sequence[EvaluationResult],
    ) -> set[int]:
        """Outputs whose elements are moved and not computed (moves.py), by their place among all tensors of outputs.

        Only those of which the baseline gives all bits that are expected, in every trial.
        """
        if trials[0].distribution != PLAIN[0] or not isinstance(ran[0].outcome, Timed):
            return set()
        found: set[int] | None = None
        for trial, formula_, result in zip(trials, formulas, ran, strict=True):
            if not isinstance(result.outcome, Timed):
                continue
            got = list(tensors([load_arrays(a) for a in result.outputs[0]]))
            want = got if formula_ is None else list(tensors(formula_.expected))
            inputs = [load_arrays(a) for a in trial.inputs]
            left = range(len(got)) if found is None else found
            found = {k for k in left if of_inputs(got[k], inputs) and same_but_nan(got[k], want[k])}
            if not found:
                return set()
        inputs = [load_arrays(a) for a in trials[0].inputs]
        kept = [p.value_depend for p in self.signature.inputs] if self.signature is not None else [False] * len(inputs)
        other = replace(trials[0], inputs=self._save(negated(inputs, kept), "negated"))
        (again,) = self._run(ask, [other])
        if not isinstance(again.outcome, Timed):
            return set()
        before, after = (list(tensors([load_arrays(a) for a in r.outputs[0]])) for r in (ran[0], again))
        return {k for k in found or () if turned(before[k], after[k], inputs)}

    def _exact(self, trial: GateTrial, moved: set[int]) -> GateTrial:
        """The trial with nothing but the same bits asked of outputs that are moved."""
        if trial.expected is None or not moved:
            return trial
        expected = [load_arrays(a) for a in trial.expected]
        leeways = [load_arrays(a) for a in trial.leeway] if trial.leeway is not None else [None] * len(expected)
        made: list[Array | tuple[Array, ...] | None] = []
        number = 0
        for want, free in zip(expected, leeways, strict=True):
            listed = as_tuple(free) or (None,) * len(as_tuple(want))
            parts = []
            for one, more in zip(as_tuple(want), listed, strict=True):
                plain = np.zeros(one.shape, np.float32) if more is None else more
                parts.append(exact(one, more) if number in moved else plain)
                number += 1
            made.append(None if want is None else tuple(parts) if isinstance(want, tuple) else parts[0])
        return replace(trial, leeway=self._save(made, f"exact-{trial.seed}"))

    def _unwritten(self, ran: Sequence[tuple[GateTrial, EvaluationResult]]) -> dict[str, tuple[int, int]]:
        """By output: elements that no trial has written, and all. One byte to tell by would be a result by chance."""
        left: dict[str, Array] = {}
        for trial, result in ran if len({t.poison for t, _ in ran}) > 1 else ():
            if isinstance(result.outcome, Timed):
                for name, array in self._arrays_of(result.outputs[0]):
                    here = untouched(array, trial.poison)
                    left[name] = here & left[name] if name in left and left[name].shape == here.shape else here
        return {name: (int(np.count_nonzero(e)), e.size) for name, e in left.items() if e.any()}

    def _steps(self, ask: Ask) -> tuple[int, ...]:
        """Numbers of the baseline's tiling that may be lengths: of tiles, rows, cores' shares."""
        if self.operator.direct is not None:
            return ()
        try:
            tiling = self.evaluator.tile(ask(self.inputs(1)))
        except HostProgramStuck:
            raise
        except AscendOptError:
            return ()
        return steps_of(tiling.data, tiling.block_dim)

    def _formula(self, trial: GateTrial, skipped: list[str]) -> Formula | None:
        """None where the reference itself refuses a stress trial."""
        try:
            arrays = [load_arrays(a) for a in trial.inputs]
            halves = trial.distribution if trial.distribution in (HALVES, TIES) else ""
            return formula(self.operator, self.case, arrays, trial.seed, self._close, halves)
        except OperatorError as error:
            if trial.distribution in PLAIN:
                raise
            skipped.append(f"{trial}: {error.message}")
            return None

    def _close(self, plain: Array, exact: Array, leeway: Array) -> Array:
        return np.asarray(~wrong_elements(exact, plain, self._tolerance(plain), leeway))

    def _tolerance(self, array: Array) -> Tolerance:
        return tolerance(dtype_name(array.dtype), self.operator.settings)

    def _run(self, ask: Ask, trials: Sequence[GateTrial]) -> list[EvaluationResult]:
        """The baseline on every trial, one result each."""
        again = replace(trials[0], again=True, poison=trials[0].poison ^ 0x3C)
        together = self.evaluator.evaluate(ask([*trials, again]))
        if isinstance(together.outcome, Timed) and len(together.outputs) == len(trials) + 1:
            return [replace(together, outputs=(o,)) for o in together.outputs[:-1]]
        if isinstance(together.outcome, CompileFailed):
            return [together] * len(trials)  # whatever the inputs
        if isinstance(together.outcome, TimedOut) and trials[0].distribution in PLAIN:
            # All together may take long; who doesn't end on the first inputs alone would take the limit on each.
            first = self.evaluator.evaluate(ask([trials[0], again]))
            if isinstance(first.outcome, TimedOut):
                return [first] * len(trials)
        found = dict(self.evaluator.evaluate_many([ask([t, again] if t is trials[0] else [t]) for t in trials]))
        return [found[i] for i in range(len(trials))]

    def _alone(
        self,
        ask: Ask,
        trials: Sequence[GateTrial],
        formulas: Sequence[Formula | None],
        ran: Sequence[EvaluationResult],
    ) -> set[int]:
        """Seeds of trials in which results that are not finite say nothing of others in their line.

        There the baseline gives the others bit for bit when the inputs behind such results are 1: what went beyond the
        dtype stayed where it was. Asked once, of a trial that has both.
        """
        if self.operator.settings.get("specials"):
            return set()
        changed: dict[int, tuple[GateTrial, Array, Array]] = {}
        for i, (trial, found, result) in enumerate(zip(trials, formulas, ran, strict=True)):
            if found is None and trial.distribution not in PLAIN and isinstance(result.outcome, Timed):
                one = self._without_the_infinite(trial, result.outputs[0], i)
                if one is not None:
                    changed[trial.seed] = one
        if not changed:
            return set()
        again = self._run(ask, [t for t, _, _ in changed.values()])
        found_alone = set()
        for (seed, (_, got, finite)), result in zip(changed.items(), again, strict=True):
            if isinstance(result.outcome, Timed):
                (other,) = map(load_arrays, result.outputs[0])
                if isinstance(other, np.ndarray) and np.array_equal(got[finite], other[finite]):
                    found_alone.add(seed)
        return found_alone

    def _without_the_infinite(
        self, trial: GateTrial, outputs: tuple[ArrayArgument, ...], number: int
    ) -> tuple[GateTrial, Array, Array] | None:
        """The trial with 1 where a result is not finite, the results, and where they are; None where that is nowhere,
        everywhere, or not to be told: several outputs, no input of the output's shape."""
        arrays = [load_arrays(a) for a in outputs]
        if len(arrays) != 1 or not isinstance(arrays[0], np.ndarray) or arrays[0].dtype.kind in "iub":
            return None
        with np.errstate(invalid="ignore"):
            finite = np.isfinite(arrays[0].astype(np.complex128))
        made, changed = [], False
        for one in (load_arrays(a) for a in trial.inputs):
            beside = isinstance(one, np.ndarray) and one.shape == finite.shape and one.dtype.kind not in "iub"
            made.append(np.where(finite, one, one.dtype.type(1)) if beside and isinstance(one, np.ndarray) else one)
            changed = changed or beside
        if finite.all() or not finite.any() or not changed:
            return None
        return replace(trial, inputs=self._save(made, f"alone-{number}")), arrays[0], finite

    def _as_the_baseline(
        self, trial: GateTrial, outputs: tuple[ArrayArgument, ...], number: int, alone: bool
    ) -> GateTrial:
        """The baseline is the specification: what it computes is what is expected, where it is finite.

        ``alone``: what is not finite says nothing of others in its line.
        """
        if trial.distribution in PLAIN or self.operator.settings.get("specials"):
            return replace(trial, expected=outputs)
        leeways = [mapped(_infinite if alone else _finite_lines, load_arrays(a)) for a in outputs]
        return replace(trial, expected=outputs, leeway=self._save(leeways, f"leeway-{number}"))

    def _held(
        self, trial: GateTrial, found: Formula, outputs: tuple[ArrayArgument, ...], number: int
    ) -> tuple[GateTrial | None, dict[str, float], str]:
        """The trial with what is asked of candidates, how the baseline drifts in it, and why it says nothing."""
        stress = trial.distribution not in PLAIN
        specials = bool(self.operator.settings.get("specials"))
        leeways: list[Array | tuple[Array, ...] | None] = []
        drifts: dict[str, float] = {}
        most: dict[str, Limit] = {}
        judged = count = 0
        reasons: list[str] = []
        got = iter(self._arrays_of(outputs))
        for expected, leeway in zip(found.expected, found.leeway, strict=True):
            parts = []
            for want, free in zip(as_tuple(expected), as_tuple(leeway), strict=True):
                name, array = next(got)
                free = _firm_as_the_baseline(array, want, _settled(free, stress))
                if stress and not specials and want.dtype.kind not in "iub":
                    with np.errstate(invalid="ignore"):  # beyond what the dtype holds, undefined
                        held = np.isfinite(want.astype(np.complex128))
                        held |= np.isinf(want) & (free > 0) & (want.dtype == np.float16)  # but for the last rounding
                        free = np.where(held, free, np.float32(np.inf))
                        free = np.where(free < _NEAR_OVERFLOW, free, np.float32(np.inf))
                why, errors = compare(name, array, want, self._tolerance(want), trial.poison, free)
                if why is not None and stress:
                    reasons.append(why)
                    free = np.where(self._wrong(array, want, free), np.float32(np.inf), free)
                    _, errors = compare(name, array, want, self._tolerance(want), trial.poison, free)
                doubt = doubtful(want, free)
                limit = limits(dtype_name(want.dtype), want.size, errors, doubt)
                if limit is not None and found.exact:
                    most[name] = Limit(limit, want.size, errors, doubt)
                drifts[name] = drift(array, want, free)
                judged += int(np.count_nonzero(free < np.inf))
                count += want.size
                parts.append(free)
            leeways.append(None if expected is None else tuple(parts) if isinstance(expected, tuple) else parts[0])
        if judged < count * _HELD:
            return None, {}, f"{trial}: {reasons[0]}" if reasons else ""
        asked = replace(
            trial,
            expected=self._save(found.expected, f"expected-{number}"),
            leeway=self._save(leeways, f"leeway-{number}"),
            limits=tuple(most.items()),
        )
        return asked, drifts, ""

    def _wrong(self, got: Array, want: Array, leeway: Array) -> Array:
        """Elements the baseline gets wrong, and whole lines where it is right by chance.

        Those are lines of which it gets most wrong, or one by more than half (an intermediate result overflows; where
        there are whole numbers only, that says nothing of others).
        """
        wrong = wrong_elements(got, want, self._tolerance(want), leeway)
        floats = any(numpy_dtype(t.dtype).kind not in "iub" for t in flatten((*self.case.inputs, *self.case.outputs)))
        if wrong.ndim and wrong.shape[-1] > 1 and not floats:
            return np.asarray(wrong | (wrong.mean(-1, keepdims=True) > 0.5))
        if wrong.ndim and wrong.shape[-1] > 1:
            with np.errstate(invalid="ignore", over="ignore"):
                error = np.abs(got.astype(np.complex128) - want.astype(np.complex128))
                overflow = wrong & ~(error <= np.abs(want.astype(np.complex128)) / 2 + (want.dtype.kind in "iu"))
            wrong = wrong | overflow.any(-1, keepdims=True) | (wrong.mean(-1, keepdims=True) > 0.5)
        return np.asarray(wrong)

    def _arrays_of(self, outputs: Sequence[ArrayArgument]) -> list[tuple[str, Array]]:
        """Outputs by the names that reasons give them."""
        names = [p.name for p in self.signature.outputs] if self.signature is not None else []
        names += self.operator.in_place
        if len(names) != len(outputs):
            direct = self.operator.direct
            attrs = dict(self.case.attrs)
            pointers = [n for n, _ in direct.parameters if n not in attrs and n != "workspace"] if direct else []
            names = pointers[len(self.case.inputs) :]
        found = []
        for name, argument in zip(names, map(load_arrays, outputs), strict=True):
            for k, array in enumerate(as_tuple(argument)):
                found.append((f"{name}.{k}" if isinstance(argument, tuple) else name, array))
        return found


def _finite_lines(expected: Array) -> Array:
    """Leeway without a formula: none, and all in a line whose results are beyond what the dtype holds."""
    leeway = _infinite(expected)
    if leeway.ndim and leeway.shape[-1] > 1:
        leeway = np.broadcast_to(leeway.max(-1, keepdims=True), leeway.shape)
    return leeway


def _infinite(expected: Array) -> Array:
    """The same, and all where a result is beyond what the dtype holds."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(expected.astype(np.complex128)), np.float32(0), np.float32(np.inf))


def _settled(leeway: Array, stress: bool) -> Array:
    """Without NaN: where the reference's own precision decides it is taken at its word on plain inputs.

    On others it overflows like that, and so does the whole line.
    """
    own = np.isnan(leeway)
    if not own.any():
        return leeway
    if stress and own.ndim and own.shape[-1] > 1:
        own = np.broadcast_to(own.any(-1, keepdims=True), own.shape)
    return np.where(own, np.float32(np.inf if stress else 0.0), leeway)


def _firm_as_the_baseline(got: Array, want: Array, leeway: Array) -> Array:
    """Without minus infinities (nothing else will do) where the baseline itself is on another side of a half."""
    firm = leeway == -np.inf
    return np.where(firm, np.float32(0), leeway) if np.any(got[firm] != want[firm]) else leeway


def steps_of(data: bytes, block_dim: int) -> tuple[int, ...]:
    """Whole numbers in tiling data, as 32-bit words: lengths of tiles, rows and shares are among them."""
    words = np.frombuffer(data[: len(data) // 4 * 4], np.uint32)
    return tuple(sorted({int(w) for w in words if 1 < w < 1 << 24} | {block_dim}))


def joined(a: Habits | None, b: Habits | None) -> Habits | None:
    """What somebody with either habit does."""
    if a is None or b is None:
        return a or b
    drifts = {n: max(a.drift.get(n, 0.0), b.drift.get(n, 0.0), key=abs) for n in (*a.drift, *b.drift)}
    return Habits(
        relies_on=tuple(sorted({*a.relies_on, *b.relies_on})),
        slack={p: max(a.slack.get(p, 0), b.slack.get(p, 0)) for p in (*a.slack, *b.slack)},
        drift=drifts,
        variables=tuple(dict.fromkeys((*a.variables, *b.variables))),
        repeats=a.repeats and b.repeats,
        bare=a.bare or b.bare,
    )
