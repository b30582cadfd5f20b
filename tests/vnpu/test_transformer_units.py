"""Mixed kernels of ops-transformer, unmodified, against a formula: attention whose products vector cores ask for.

The sources are found through ``ASCENDOPT_OPS_TRANSFORMER``; without it tests are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import torch
from cann_ops.table import arguments, in_float64
from test_vllm_ascend import evaluator

from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project

__all__ = ["evaluator"]
Tensor = torch.Tensor


@dataclass(frozen=True)
class Attention:
    """``heads`` of queries share ``kept`` heads of keys and values; sizes [batch, tokens, keys, elements of a head]."""

    heads: int
    kept: int
    batch: int
    tokens: int
    keys: int
    size: int
    layout: str = "BNSD"
    dtype: str = "float16"

    def shape(self, heads: int, tokens: int) -> str:
        sizes = {"BNSD": (self.batch, heads, tokens, self.size), "BSND": (self.batch, tokens, heads, self.size),
                 "BSH": (self.batch, tokens, heads * self.size)}[self.layout]  # fmt: skip
        return f"T[{','.join(map(str, sizes))}]"


def by_heads(x: Tensor, layout: str, heads: int) -> Tensor:
    """[batch, heads, tokens, elements]"""
    if layout == "BSH":
        x = x.unflatten(-1, (heads, -1))
    return x if layout == "BNSD" else x.transpose(1, 2)


def attend(query: Tensor, key: Any, value: Any, *_: Any, num_heads: int, scale_value: float, input_layout: str,
           num_key_value_heads: int, **__: Any) -> Tensor:  # fmt: skip
    q = by_heads(query, input_layout, num_heads)
    k, v = (by_heads(x[0] if isinstance(x, list) else x, input_layout, num_key_value_heads) for x in (key, value))
    k, v = (x.repeat_interleave(num_heads // num_key_value_heads, 1) for x in (k, v))
    scores = q @ k.mT * scale_value
    out = scores.softmax(-1) @ v
    if input_layout != "BNSD":
        out = out.transpose(1, 2)
    return out.flatten(2) if input_layout == "BSH" else out


INCRE = [Attention(8, 2, 2, 1, 512, 128), Attention(8, 2, 2, 1, 512, 128, dtype="bfloat16"),
         Attention(16, 1, 3, 1, 1000, 128, layout="BSH"), Attention(12, 4, 1, 1, 2048, 64, layout="BSND")]  # fmt: skip
UNITS = {"incre_flash_attention": INCRE}


def name(a: Attention) -> str:
    return f"{a.layout}-{a.heads}-{a.kept}-{a.tokens}-{a.keys}-{a.size}-{a.dtype}"


@pytest.mark.parametrize(
    ("unit", "a"), [pytest.param(unit, a, id=f"{unit}-{name(a)}") for unit, all_ in UNITS.items() for a in all_]
)
def test_attention(unit: str, a: Attention, evaluator: Evaluator) -> None:
    checkout = settings().ops_transformer
    if checkout is None:
        pytest.skip("ASCENDOPT_OPS_TRANSFORMER is not set")
    query, kept = a.shape(a.heads, a.tokens), a.shape(a.kept, a.keys)
    attrs = {"num_heads": a.heads, "num_key_value_heads": a.kept, "scale_value": a.size**-0.5,
             "input_layout": a.layout, "block_size": 0, "inner_precise": 1}  # fmt: skip
    case = f"{query} ({kept}) ({kept}) {'- ' * 12}-> {query}"  # keys and values are lists of tensors
    operator = load_project(checkout / "attention" / unit)
    operator = replace(operator, reference=in_float64(attend))
    checked = Case(*arguments(case, {"T": a.dtype}), tuple(sorted(attrs.items())))
    signature = evaluator.describe(operator).signature
    outcome = Gate(operator, checked, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Timed), f"{type(outcome).__name__}: {getattr(outcome, 'reason', outcome)}"
    assert outcome.profile.kind == "mix"
