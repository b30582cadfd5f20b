"""A kernel written small for motifs: what its head says, a gate with its formula, and what rewrites of it gain.

The head of a file: ``// case: x=float32[8,64] -> y=float32[8,64], 8 blocks``, and, where one motif is to meet it,
``// motif: NAME, N places`` (or ``alternatives``, ways to change one place) on the next line.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.motifs.motif import Rewrite
from ascendopt_tune.search.kernel.rules import applied, rewrites_of
from ascendopt_tune.sources.arguments import direct_signature, parse_domain, parse_tensor
from ascendopt_tune.sources.project import load_direct

Formula = Callable[..., Any]
Formulas = Mapping[str, Formula]
_CASE = re.compile(r"// case: (.*) -> (.*), (\d+) blocks\n(?:// motif: ([\w-]+), (\d) (places?|alternatives)\n)?")


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b4", workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


@dataclasses.dataclass(frozen=True)
class Form:
    """One kernel behind its gate. ``motif``: the one that its head names, if any, with ``count`` rewrites; ``places``:
    they are places, which may be changed all at once."""

    name: str
    gate: Gate
    motif: str
    count: int
    places: bool

    @property
    def baseline(self) -> Pair:
        return self.gate.operator.baseline

    @property
    def auto_sync(self) -> bool:
        return self.gate.operator.auto_sync

    @cached_property
    def before_us(self) -> float:
        return self.modelled_us(self.baseline)

    def rewrites(self, motif: str = "", pair: Pair | None = None) -> Sequence[Rewrite]:
        """What the motif (that of the head by default) would change."""
        return rewrites_of(pair or self.baseline, self.auto_sync).get(motif or self.motif, ())

    def changed(self, rewrites: Sequence[Rewrite], pair: Pair | None = None) -> Pair:
        out = applied(pair or self.baseline, tuple(rewrites))
        assert out is not None, [r.site for r in rewrites]
        return out

    def modelled_us(self, pair: Pair) -> float:
        """The pair's modelled time; it has to pass the gate."""
        outcome = self.gate.evaluate(pair).outcome
        assert isinstance(outcome, Timed), (self.name, outcome)
        return outcome.profile.task_duration_us

    def gain(self, pair: Pair, what: str) -> float:
        """The modelled speedup over the kernel as written, which is printed."""
        gain = self.before_us / self.modelled_us(pair)
        print(f"{self.name}, {what}: modelled {gain:.3f}x")
        return gain


def open_form(
    path: Path,
    formula: Formula,
    evaluator: Evaluator,
    *,
    domains: Sequence[str] = (),
    changes: Sequence[tuple[str, str]] = (),
) -> Form:
    """The kernel of ``path`` and the gate for its case. ``formula`` gets the inputs in float64; ``domains`` say how
    they are drawn (``x=0.5:4``); ``changes`` are made to the text first."""
    text = path.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    found = _CASE.search(text)
    assert found is not None, path
    inputs, outputs = (dict(map(parse_tensor, found[i].split())) for i in (1, 2))
    operator = load_direct(path, path.stem, int(found[3]))
    signature = direct_signature(operator, inputs, outputs, {})
    domain = dict(parse_domain(each, signature) for each in domains)
    dtypes = [getattr(torch, t.dtype) for t in outputs.values()]

    def reference(*tensors: Any, **_: Any) -> Any:
        out = formula(*(t.double() for t in tensors))
        if isinstance(out, tuple):
            return tuple(t.to(dtype) for t, dtype in zip(out, dtypes, strict=True))
        return out.to(dtypes[0])

    kernel = dict(operator.baseline.kernel)
    for old, new in changes:
        kernel = {where: code.replace(old, new) for where, code in kernel.items()}
    operator = dataclasses.replace(
        operator,
        baseline=Pair(operator.baseline.tiling, kernel),
        reference=reference,
        settings={"domain": domain} if domain else {},
    )
    case = Case(tuple(inputs.values()), tuple(outputs.values()))
    gate = Gate(operator, case, evaluator, signature=signature)
    return Form(path.stem, gate, found[4] or "", int(found[5] or 0), found[6] != "alternatives")
