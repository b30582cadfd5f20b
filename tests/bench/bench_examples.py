"""A subject that needs no device: the registry's add, timed by a formula over the numbers in its texts."""

from __future__ import annotations

import re
import zlib
from collections import Counter

from ascendopt_tune.evaluate.gate import Checked
from ascendopt_tune.evaluate.protocol import EvaluationResult
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import LaunchFailed, Outcome, Timed, WrongResult
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.sources.registry import load_operator

SPEC = TensorSpec("float16", (1024, 1024))


class FakeSubject:
    """Every third text fails; ``refused``: pairs that don't pass their confirmation; ``over_clocks``: speedups under
    plausible clocks."""

    def __init__(self) -> None:
        self.operator = load_operator("add")
        self.case = Case((SPEC, SPEC), (SPEC,))
        self.chip = load_chip("ascend910b4")
        self.signature = None
        self.seconds = 0.0
        self.asked: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.over_clocks: dict[str, tuple[float, ...]] = {}
        self.kept: list[str] = []

    def outcome(self, pair: Pair) -> Outcome:
        self.asked[pair.hash] += 1
        if pair.hash == self.operator.baseline.hash:
            return Timed(Profile(100.0))
        number = zlib.crc32(self.launch(pair).encode())
        return LaunchFailed("overflow") if number % 3 == 0 else Timed(Profile(60.0 + number % 80))

    def launch(self, pair: Pair) -> str:
        """Comments and blanks change no launch."""
        texts = "\n".join([*pair.tiling.values(), *pair.kernel.values()])
        return re.sub(r"//[^\n]*|\s", "", texts)

    def confirm(self, pair: Pair) -> Checked:
        outcome = WrongResult("on unseen inputs") if pair.hash in self.refused else Timed(Profile(1.0))
        return Checked(EvaluationResult(outcome), {})

    def speedups(self, pair: Pair) -> tuple[float, ...]:
        return self.over_clocks.get(pair.hash, ())

    def keep(self, pair: Pair) -> None:
        self.kept.append(pair.hash)

    def commented(self, text: str) -> Pair:
        """The baseline with another comment: another text, the same launch."""
        base = self.operator.baseline
        path = sorted(base.kernel)[0]
        return base.with_kernel(path, base.kernel[path] + f"\n// {text}\n")

    def changed(self, number: int) -> Pair:
        base = self.operator.baseline
        path = sorted(base.kernel)[0]
        return base.with_kernel(path, base.kernel[path] + f"\nint x{number};\n")
