"""What the rules of Stage I choose values by: the chip, and the case's shapes and element sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...nouns.case import DTYPES, TensorSpec, flatten
from ...nouns.outcome import Timed
from ...nouns.trial import Trial
from ...sources.cpp import Edit
from ..proposer import SearchState
from .cores_seen import core_costs
from .slice import EvolvableSite

# Worth of a number of cores that is modelled to cost a tenth of the task's time more: a seventh. Chosen by judgement.
_DECAY, _LEAST_WORTH = 20.0, 0.1


@dataclass(frozen=True)
class CubeCores:
    """Cube cores of a chip, and bytes of the memories of each."""

    cores: int
    l1: int
    l0a: int
    l0b: int
    l0c: int

    @staticmethod
    def of(chip: Mapping[str, str | int | float]) -> CubeCores:
        """``chip``: the chip's values by name."""
        names = ("core.aic", "memory.l1_bytes", "memory.l0a_bytes", "memory.l0b_bytes", "memory.l0c_bytes")
        return CubeCores(*(int(chip[name]) for name in names))


@dataclass(frozen=True)
class ProductShape:
    """The case taken for ``count`` products of matrices, m x k by k x n. Means nothing for other operators."""

    count: int
    m: int
    n: int
    k: int
    b_along_n: bool = False  # rows of b in memory have n elements, not k

    @staticmethod
    def of(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> ProductShape:
        """The first output is m x n, the first input ends in k; a second one with more axes has a matrix a group."""
        out = outputs[0].shape if outputs else ()
        rows, columns = (1, 1, *out)[-2:]
        batches, k = math.prod(out[:-2]), inputs[0].shape[-1] if inputs and inputs[0].shape else 1
        along_n = len(inputs) > 1 and inputs[1].shape[-2:] == (k, columns)
        if len(inputs) > 1 and len(inputs[1].shape) == len(out) + 1:
            groups = max(1, inputs[1].shape[0])
            return ProductShape(groups, max(1, math.ceil(rows / groups)), max(1, columns), max(1, k), along_n)
        return ProductShape(max(1, batches), max(1, rows), max(1, columns), max(1, k), along_n)


@dataclass(frozen=True)
class Context:
    """Facts the rules choose values by: the chip, and the case's shapes and element sizes."""

    cores: int
    ub_bytes: int
    element_bytes: int  # of the first tensor of the case
    tensors: int  # inputs and outputs, lists opened
    elements_per_core: int  # of the largest tensor, when all cores share it
    even_cores: tuple[int, ...]  # core counts below ``cores`` that need no more rows a core than ``cores`` do
    tiling_keys: tuple[int, ...]  # keys the kernel tests for
    product: ProductShape
    cube: CubeCores
    result_bytes: int = 2  # of an element of the first output
    queues: bool = True  # the kernel's buffers are queues
    blocks: int | None = None  # of the parent's launch
    task_us: float | None = None  # what the parent takes
    word_us: float = 0.0  # what 8 bytes of tiling data take on their way to a core's stack
    listed: int = 0  # tensors of the longest list among the case's arguments
    core_costs: tuple[float, ...] = ()  # us that the parent's work costs on 1, 2, ... cores; empty: nobody can tell

    @property
    def paying_cores(self) -> int | None:
        """As many as the parent's work is worth; None: its profile doesn't tell."""
        return min(range(len(self.core_costs)), key=self.core_costs.__getitem__) + 1 if self.core_costs else None

    def worth_of_cores(self, cores: int) -> float:
        """1 for as many as pay best, less the more of the parent's time another number would cost; at most 1."""
        if not self.core_costs or not self.task_us or not 1 <= cores <= len(self.core_costs):
            return 1.0
        lost = (self.core_costs[cores - 1] - min(self.core_costs)) / self.task_us
        return max(_LEAST_WORTH, math.exp(-_DECAY * lost))

    @staticmethod
    def of(state: SearchState, parent: Trial | None = None) -> Context:
        """``parent``: whose pair the rules change, and whose launch they go by; by default the incumbent."""
        trial = parent or state.incumbent
        tensors = [*flatten(state.case.inputs), *flatten(state.case.outputs)]
        rows = {math.prod(t.shape[:-1]) for t in tensors if len(t.shape) > 1} | {t.shape[0] for t in tensors if t.shape}
        even = {math.ceil(r / math.ceil(r / state.cores)) for r in rows if r > 0}
        return Context(
            cores=state.cores,
            ub_bytes=state.ub_bytes,
            element_bytes=DTYPES[tensors[0].dtype][0] if tensors else 4,
            tensors=max(1, len(tensors)),
            elements_per_core=math.ceil(max((t.numel for t in tensors), default=1) / state.cores),
            even_cores=tuple(sorted(n for n in even if 1 <= n < state.cores)),
            tiling_keys=keys_of(trial.candidate.pair.kernel),
            product=ProductShape.of(flatten(state.case.inputs), flatten(state.case.outputs)),
            cube=CubeCores.of(state.chip.values),
            result_bytes=DTYPES[flatten(state.case.outputs)[0].dtype][0] if state.case.outputs else 2,
            queues=_has_queues(trial.candidate.pair.kernel),
            blocks=_blocks(trial),
            task_us=trial.time_us,
            word_us=_word_us(state.chip.values),
            listed=max((len(a) for a in state.case.inputs + state.case.outputs if isinstance(a, tuple)), default=0),
            core_costs=core_costs(trial, state),
        )


def _word_us(chip: Mapping[str, str | int | float]) -> float:
    return float(chip.get("scalar.tiling_word_cycles", 0.0)) / float(chip["core.clock_mhz"])


def _blocks(trial: Trial) -> int | None:
    outcome = trial.outcome
    return outcome.profile.block_dim or None if isinstance(outcome, Timed) else None


def _has_queues(kernel: Mapping[str, str]) -> bool:
    return any(re.search(r"\bTQue\s*<", text) for text in kernel.values())


def keys_of(kernel: Mapping[str, str]) -> tuple[int, ...]:
    """The tiling keys that a kernel program tests for."""
    found = re.findall(r"TILING_KEY_IS\(\s*(\d+)", "\n".join(kernel.values()))
    return tuple(sorted({int(k) for k in found}))


def number(site: EvolvableSite, value: int) -> Edit:
    """Write ``value`` for the site's number: once, or at both places of ``x / 256 * 256``; suffixes and braces stay."""
    literal = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|\d+)(?=[uUlL]*\b)")
    numbers = literal.findall(site.text)
    if len(set(numbers)) == 1 and int(numbers[0], 0 if "x" in numbers[0].lower() else 10) == site.value:
        return Edit(site.path, site.start, site.end, literal.sub(str(value), site.text))
    return Edit(site.path, site.start, site.end, str(value))  # a product of several, such as 16 * 1024
