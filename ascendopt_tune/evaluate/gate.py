"""The gate: what must hold before a candidate's time counts.

1. It compiles. 2. It launches without out-of-bounds, misaligned or unsupported access, queue misuse or deadlock. 3. No
hazard. 4. On inputs of several seeds and distributions, with poisoned outputs and workspace, its results are those of
the reference (without one: of the baseline pair) within the dtype's tolerance, and no byte that is not an output
changes. 5. It is measured. 6. :meth:`Gate.confirm`: once more, in a fresh process, on inputs the search never saw.

Where times are modelled, :meth:`Gate.speedups` tells what other clocks leave of a pair's win.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..build.host import TilingResult
from ..errors import AscendOptError, CaseError, DeviceError
from ..nouns.case import AttrValue, Case, flatten
from ..nouns.chip import WARM, load_chip
from ..nouns.clocks import plausible, speedups
from ..nouns.operator import AttrDef, Operator, Pair, Signature
from ..nouns.outcome import Outcome, Timed, reason_of
from ..nouns.profile import Profile
from ..sources.arguments import Array
from .evaluator import Evaluator
from .inputs import NEAR
from .protocol import ArrayArgument, ArrayFile, EvaluateRequest, EvaluationResult, GateTrial, Habits, Launchable
from .trials import TrialMaker, Trials, joined, steps_of

_CONFIRM_SEED = 0x5EED0000  # far from the seeds of the search
_OTHER_VALUES = 0x0DD  # the same, for inputs that the tiling function reads
_FEW = ("normal", "lines", "tiny")  # where only a value is another one
_OWN = ("lines", "outlier")
_MOST_STEPS = 16  # of a candidate's tiling that are tried
_LEAST_RUN_S = 10.0  # seconds for a candidate's launches, and for each launch so many times what the baseline's takes
_TIMES_BASELINE = 20.0
# Of other values of attributes: of more bits than numbers of 16 bits hold, so that rounding them shows.
_OTHER, _ABOVE, _BELOW = 0.7320508, 0.5176381, 0.6339746


@dataclass(frozen=True)
class Checked:
    """An evaluation that went through the gate. ``outputs`` (by name) are those of the first trial, where asked for."""

    result: EvaluationResult
    outputs: Mapping[str, Array]

    @property
    def outcome(self) -> Outcome:
        return self.result.outcome

    @property
    def profile(self) -> Profile | None:
        return self.result.outcome.profile if isinstance(self.result.outcome, Timed) else None

    @property
    def checks(self) -> int:
        return self.result.checks

    @property
    def hazards(self) -> tuple[Mapping[str, object], ...]:
        return self.result.hazards

    @property
    def timings_s(self) -> Mapping[str, float]:
        return self.result.timings_s

    @property
    def kernel_name(self) -> str:
        """The kernel's name in ``binary``."""
        return self.result.entry

    @property
    def tiling(self) -> TilingResult | None:
        """What the tiling function decided; for a kernel of direct launch its block dim and no data."""
        if self.result.tiling is None and self.result.binary_path is not None:
            return TilingResult(self.result.block_dim, 0, 0, b"")
        return self.result.tiling

    @property
    def binary(self) -> bytes:
        """The compiled kernel. Raises CaseError when there is none."""
        if self.result.binary_path is None:
            raise CaseError("the candidate has no binary: it didn't build.")
        with open(self.result.binary_path, "rb") as file:
            return file.read()


class Gate:
    """The gate of one operator and case; trials and expected outputs are made once and serve every candidate.

    Args:
        seed: of the random inputs.
        signature: names the parameters of a kernel for direct launch; others define it themselves.
        arrays: the user's own inputs by name (lists as ``x.0``, ``x.1``) for the first trial; others are random.
        kinds: distributions of the trials (inputs.py); default: what the case's size allows.
        state: what a timed launch finds, one of STATES of nouns/chip.py (virtual NPU only).

    Raises:
        HostProgramError: the baseline's definition doesn't compile.
        CaseError: an array doesn't fit the case.
    """

    def __init__(
        self,
        operator: Operator,
        case: Case,
        evaluator: Evaluator,
        *,
        seed: int = 0,
        signature: Signature | None = None,
        arrays: Mapping[str, Array] | None = None,
        kinds: tuple[str, ...] = (),
        state: str = WARM,
    ) -> None:
        self.operator, self.case, self.seed, self.state = operator, case, seed, state
        self._evaluator = evaluator
        if signature is None and operator.direct is None:
            signature = evaluator.describe(operator).signature
        self.signature = signature
        self._arrays = dict(arrays or {})
        self._kinds = kinds
        self._siblings: list[tuple[str, Gate]] | None = None
        self._own: dict[tuple[int, ...], Trials] = {}
        self._trials: Trials | None = None
        self._incumbent: Launchable | None = None
        self._baseline_habits: Habits | None = None
        #: Wall clock of one launch of the baseline, in seconds, as far as it is known.
        self._launch_s: float | None = None
        self._other: Gate | None = None
        #: By pair, its times in us under the plausible clocks.
        self._replayed: dict[str, list[float]] = {}

    # -- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, pair: Pair, *, trace: bool = False) -> Checked:
        """The pair through the gate (points 1 to 5), with the outputs of the first trial.

        Args:
            trace: the result's ``trace_path`` names the timeline of the first trial (virtual NPU only).

        Raises:
            CaseError: the case doesn't fit the operator.
        """
        trials = self.trials()
        request = replace(self._request(pair, trials, keep=True), trace=trace)
        result = self._stuck(pair) or self._evaluator.evaluate(request)
        self._learn(pair, result)
        result = self._beyond(pair, result, self._evaluator)
        names = [p.name for p in self.signature.outputs] if self.signature is not None else []
        names += self.operator.in_place
        arrays: dict[str, Array] = {}
        if result.outputs:
            names = names or [f"output{i}" for i in range(len(result.outputs[0]))]
            for name, argument in zip(names, result.outputs[0], strict=True):
                for suffix, file in _named(argument):
                    arrays[name + suffix] = file.load().copy()
        return Checked(result, arrays)

    def build(self, pair: Pair, clocks: Sequence[Mapping[str, float]] = ()) -> Checked:
        """What a launch of the pair needs, and its time, after a launch on random inputs that compares nothing.

        Args:
            clocks: as of :meth:`replay`; its times are the result's ``replayed``.
        """
        request = self._request(pair, self._maker().inputs(1))
        return Checked(self._evaluator.evaluate(replace(request, clocks=tuple(clocks), run_s=None)), {})

    def evaluate_many(self, pairs: Mapping[int, Pair]) -> Iterator[tuple[int, Checked]]:
        """(number, result) as evaluations end; several run at the same time."""
        trials = self.trials()
        numbers = [n for n in pairs if self._stuck(pairs[n]) is None]
        for n, pair in pairs.items():
            if (stuck := self._stuck(pair)) is not None:
                yield n, Checked(stuck, {})
        requests = [self._request(pairs[n], trials) for n in numbers]
        for position, result in self._evaluator.evaluate_many(requests):
            self._learn(pairs[numbers[position]], result)
            yield numbers[position], Checked(result, {})

    def _stuck(self, pair: Pair) -> EvaluationResult | None:
        """What became of the baseline, where it was asked for the trials and didn't end."""
        return self._made().stuck if pair.hash == self.operator.baseline.hash else None

    def _learn(self, pair: Pair, result: EvaluationResult) -> None:
        """Candidates that are asked for from now on may do what the baseline does, and for about as long."""
        if pair.hash == self.operator.baseline.hash and isinstance(result.outcome, Timed):
            self._baseline_habits = joined(self._baseline_habits, result.habits)
            self._launch_s = result.timings_s.get("launch", 0.0) / max(1, len(self.trials()))

    def confirm(self, pair: Pair) -> Checked:
        """Point 6: the whole gate once more, in a fresh server process, with inputs that no candidate has met."""
        other = self._unseen()
        with self._evaluator.fresh() as fresh:
            result = fresh.evaluate(other._request(pair, other.trials()))
            result = other._beyond(pair, result, fresh)
        return Checked(result, {})

    def _beyond(self, pair: Pair, result: EvaluationResult, evaluator: Evaluator) -> EvaluationResult:
        """What is asked of a candidate that passed, besides the trials that all have in common.

        Outliers where its own tiles begin and end; other values of attributes that the case doesn't fix, and of inputs
        that the tiling function reads.
        """
        if not isinstance(result.outcome, Timed) or pair.hash == self.operator.baseline.hash:
            return result
        own = self._at_its_own_boundaries(result)
        for what, gate, trials in [("", self, own), *((w, g, g.trials()) for w, g in self._with_other_values())]:
            if trials and all(t.expected is not None for t in trials):
                more = evaluator.evaluate(gate._request(pair, trials, measure=False))
                if not isinstance(more.outcome, Timed):
                    reason = f"{more.outcome.reason} [{what}]" if what else more.outcome.reason
                    return replace(result, outcome=replace(more.outcome, reason=reason), outputs=())
        return result

    def _at_its_own_boundaries(self, result: EvaluationResult) -> tuple[GateTrial, ...]:
        if result.tiling is None:
            return ()
        usual = set(self._made().steps)
        found = steps_of(result.tiling.data, result.tiling.block_dim)
        steps = tuple(s for s in found if s not in usual and s & (s - 1) and s <= self._longest())
        if not steps:
            return ()
        if steps not in self._own:
            maker = replace(self._maker(), kinds=_OWN, arrays={}, seed=self.seed + 1)
            self._own[steps] = maker.make(
                lambda trials: self._request(self.operator.baseline, trials, True, False), steps[:_MOST_STEPS]
            )
        return self._own[steps].trials

    def _longest(self) -> int:
        return max((t.numel for t in flatten(self.case.inputs)), default=0)

    def _with_other_values(self) -> list[tuple[str, Gate]]:
        """Gates of cases that a candidate has to serve as well, as far as the baseline runs in them."""
        if self._siblings is None:
            self._siblings = []
            for what, case, seed in self._other_cases():
                gate = Gate(self.operator, case, self._evaluator, seed=seed, signature=self.signature, kinds=_FEW)
                try:
                    trials = gate.trials()
                except AscendOptError:
                    continue
                result = self._evaluator.evaluate(gate._request(self.operator.baseline, trials, measure=False))
                if isinstance(result.outcome, Timed):
                    gate._baseline_habits = joined(gate._baseline_habits, self._baseline_habits)
                    gate._launch_s = self._launch_s
                    self._siblings.append((what, gate))
        return self._siblings

    def _other_cases(self) -> Iterator[tuple[str, Case, int]]:
        if self.signature is None or self.operator.direct is not None:
            return
        fixed = dict(self.case.attrs)
        for attr in self.signature.attrs:
            if attr.name in fixed:
                continue
            for other in other_values(attr):
                attrs = tuple(sorted({**fixed, attr.name: other}.items()))
                try:
                    outputs = self._evaluator.infer_outputs(self.operator, self.case.inputs, attrs)
                except AscendOptError:
                    outputs = self.case.outputs
                case = replace(self.case, attrs=attrs, outputs=(*outputs, *self.case.outputs[len(outputs) :]))
                yield f"with {attr.name}={other}, which the case doesn't fix", case, self.seed
        if any(p.value_depend for p in self.signature.inputs):
            yield "with other values of what the tiling function reads", self.case, self.seed + _OTHER_VALUES

    def _unseen(self) -> Gate:
        """The gate on the inputs of :meth:`confirm`, which are made once, as what is expected of them."""
        if self._other is None:
            seed = self.seed ^ _CONFIRM_SEED
            self._other = Gate(self.operator, self.case, self._evaluator, seed=seed, signature=self.signature)
            self._other._made()
        self._other._baseline_habits = joined(self._other._baseline_habits, self._baseline_habits)
        self._other._launch_s = self._launch_s
        return self._other

    def speedups(self, pair: Pair) -> tuple[float, ...]:
        """Over the baseline, under each of the plausible clocks (clocks.py); none where times are measured.

        Raises:
            DeviceError: one of the two doesn't get through a launch.
        """
        if self._evaluator.toolkit.target != "virtual":
            return ()
        return speedups(self._plausible_us(self.operator.baseline), self._plausible_us(pair))

    def _plausible_us(self, pair: Pair) -> list[float]:
        if pair.hash not in self._replayed:
            self._replayed[pair.hash] = self.replay(pair, plausible(load_chip(self._evaluator.chip)))
        return self._replayed[pair.hash]

    def replay(self, pair: Pair, clocks: Sequence[Mapping[str, float]], state: str | None = None) -> list[float]:
        """Modelled task durations (us) of one launch of the pair under other clocks, on the first trial's inputs.

        Args:
            clocks: chip constants to replace, by key (``launch.base_us``); an empty one is the chip's own clock.
            state: what the launch finds; default: what this gate's launches do.

        Raises:
            DeviceError: the pair doesn't get through a launch, or a constant is unknown.
        """
        request = self._request(pair, self.trials()[:1])
        request = replace(request, clocks=tuple(clocks), state=self.state if state is None else state, run_s=None)
        result = self._evaluator.evaluate(request)
        if not isinstance(result.outcome, Timed):
            raise DeviceError(f"the pair can't be timed again: {reason_of(result.outcome)}")
        return list(result.replayed)

    def prepare(self, pairs: Sequence[Pair]) -> None:
        """Starts what :meth:`fingerprint` will be asked for."""
        if self.operator.direct is None:
            self._evaluator.start_tiling([self._request(pair, self.trials()[:1]) for pair in pairs])

    def fingerprint(self, pair: Pair) -> str | None:
        """A name of the launch that the pair leads to: equal names, equal results. None if it can't be told."""
        if self.operator.direct is not None:
            return pair.kernel_hash
        try:
            tiling = self._evaluator.tile(self._request(pair, self.trials()[:1]))
        except AscendOptError:
            return None
        head = f"{tiling.block_dim} {tiling.tiling_key} {tiling.workspace_bytes} {tiling.schedule_mode}"
        return f"{pair.kernel_hash} {head} {tiling.data.hex()}"

    def set_incumbent(self, result: Checked) -> None:
        """From now on candidates are timed in turn with this one (only where times vary: target ``npu``)."""
        self._incumbent = result.result.launchable

    def _request(
        self, pair: Pair, trials: Sequence[GateTrial], keep: bool = False, measure: bool = True
    ) -> EvaluateRequest:
        baseline = pair.hash == self.operator.baseline.hash
        return EvaluateRequest(
            operator=self.operator,
            pair=pair,
            case=self.case,
            chip=self._evaluator.chip,
            target=self._evaluator.toolkit.target,
            trials=tuple(trials),
            measure=measure,
            keep_outputs=keep,
            incumbent=self._incumbent,
            signature=self.signature if self.operator.direct is not None else None,
            allowed=None if baseline else self._baseline_habits,
            state=self.state,
            run_s=None if baseline else self._run_s(len(trials)),
        )

    def _run_s(self, launches: int) -> float | None:
        """What a candidate's launches may take: one that simulates so much more work is no faster kernel.

        None where it isn't known what the baseline's take, and on a device, whose launches take next to nothing.
        """
        if self._launch_s is None or self._evaluator.toolkit.target != "virtual":
            return None
        return _LEAST_RUN_S + _TIMES_BASELINE * self._launch_s * launches

    # -- trials -------------------------------------------------------------------------------------------------------

    def trials(self) -> tuple[GateTrial, ...]:
        """The trials every candidate has to pass, with expected outputs; made on first use.

        Stress trials that say nothing because the baseline itself fails them are left out and named in ``skipped``.
        """
        return self._made().trials

    def _made(self) -> Trials:
        if self._trials is None:
            self._trials = self._maker().make(lambda trials: self._request(self.operator.baseline, trials, True, False))
            self._baseline_habits = self._trials.habits or self._baseline_habits
        return self._trials

    def _maker(self) -> TrialMaker:
        return TrialMaker(
            self.operator, self.case, self._evaluator, self.signature, self._arrays, self.seed, self._kinds
        )

    @property
    def habits(self) -> Habits:
        """What the baseline does that no rule forbids, as far as it is known."""
        return self._baseline_habits or Habits()

    @property
    def skipped(self) -> list[str]:
        """Why a stress trial is not part of the gate: the baseline itself fails it."""
        return list(self._trials.skipped) if self._trials is not None else []

    @property
    def unwritten(self) -> dict[str, tuple[int, int]]:
        """Of outputs that the operator as written leaves alone in part: elements that no trial writes, and all."""
        return dict(self._trials.unwritten) if self._trials is not None else {}

    @property
    def unwritten_notes(self) -> list[str]:
        """What a person is told of them."""
        return [
            f"the operator as written leaves {left} of {size} elements of {name} as they were, in every trial"
            for name, (left, size) in self.unwritten.items()
        ]


def _named(argument: ArrayArgument) -> list[tuple[str, ArrayFile]]:
    if argument is None:
        return []
    if isinstance(argument, tuple):
        return [(f".{i}", f) for i, f in enumerate(argument)]
    return [("", argument)]


def other_values(attr: AttrDef) -> tuple[AttrValue, ...]:
    """Other values than the attribute's default: a thousandfold for a small number, else one on either side of it,
    because who drops a sign is right on one side, and one so near that it may be taken for the default; none where
    none is at hand."""
    if isinstance(attr.default, bool):
        return (not attr.default,)
    if isinstance(attr.default, float):
        if 0 < abs(attr.default) < 1e-2:
            return (attr.default * 1e3,)
        near = attr.default + (attr.default or 1.0) * NEAR
        return attr.default * _OTHER + _ABOVE, -attr.default * _OTHER - _BELOW, near
    return (attr.default + 1, attr.default - 1) if isinstance(attr.default, int) else ()
