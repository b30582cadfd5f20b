"""Other people's spelling, written small: what motifs make of each kernel of motif_forms/ is right, and not slower.

The head of each file says what it computes, its case, and the motif that is to meet it, with the number of its places,
or of ways to change one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
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
from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.search.kernel.rules import applied, rewrites_of
from ascendopt_tune.sources.arguments import direct_signature, parse_domain, parse_tensor
from ascendopt_tune.sources.project import load_direct

FOLDER = Path(__file__).with_name("motif_forms")
_HEAD = re.compile(r"// case: (.*) -> (.*), (\d+) blocks\n// motif: ([\w-]+), (\d) (places?|alternatives)\n")

_Tensor = Any
FORMULAS: dict[str, Callable[..., _Tensor]] = {
    "added_then_copied": lambda a, b: a + 3 * b,
    "barrier_a_row": lambda x, m: torch.exp(x - m),
    "bias_a_row": lambda x, b: torch.exp(x) + b,
    "cast_again": lambda x: torch.exp(x) * x + x,
    "cleared_by_one": lambda x: x.sum(0),
    "columns_of_values": lambda g: g[None].expand(160, 48),
    "computed_comparison": lambda x, g: x <= g,
    "copied_rows": lambda x, g, s: x * g / s[:, None],
    "eight_bits": lambda x: torch.round(20 * x).clamp(-128, 127),
    "factor_a_row": lambda x, s: x * s[:, None],
    "factor_of_row": lambda x, s: x * s[:, None] + s[:, None],
    "fetched_rows": lambda x, order, scale: x[order.long()] * scale[:, None],
    "filled_by_difference": lambda x: x * x * (torch.arange(256) < 128)[:, None],
    "filled_constants": lambda x: torch.where(x > 1, x / 3, -1.0),
    "in_slices": lambda x: x.abs() - x * x,
    "kept_type": lambda x: 3 * torch.exp(x),
    "loaded_or_cast": torch.sigmoid,
    "lower_triangle": torch.tril,
    "many_rooms": lambda x: torch.exp(x) * x + torch.exp(x) + x,
    "mean_of_squares": lambda x: x / torch.sqrt((x * x).mean(1) + 1)[:, None],
    "offsets_by_hand": lambda x: x[:, 8:],
    "padded_rows": lambda x: torch.cat([torch.exp(x), x.new_ones(256, 25), x.new_full((256, 3), 2)], 1),
    "polynomial": lambda x: ((x / 2 + 1) * x - 3) * x + 5,
    "repeated_row": lambda x, g: (x - g) * g,
    "rest_by_element": lambda x: x * x,
    "rings_of_rooms": lambda x, w: torch.exp(x) * w + x,
    "rooms_for_others": torch.abs,
    "root_of_one": lambda x: x / torch.sqrt((x * x).mean(1) + 1)[:, None],
    "row_for_all": lambda x, w: x * w,
    "rows_normalized": lambda x: (x - x.mean(1)[:, None]) / torch.sqrt(x.var(1, correction=0) + 1)[:, None] + 9,
    "rows_scaled": lambda x: (x + 1) * 100 / (x + 1).abs().max(1).values[:, None],
    "rows_again": lambda x: x.repeat_interleave(12, 0),
    "rows_going_on": lambda x: torch.exp(x[:, :24]),
    "rows_to_places": lambda x, place: torch.empty_like(x).index_copy(0, place.long(), 3 * x),
    "scaled_sum": lambda a, b, c: a + 3 * b + 5 * c,
    "scattered_values": lambda x, order: torch.empty_like(x).index_copy(0, order.long(), x + x),
    "short_rows": lambda x, g: x * x.max(1).values[:, None] * g,
    "spread_row": lambda x, g: (x - g) * g,
    "spread_values": lambda x, s: (x - 2 * s[:, None]) / s[:, None],
    "sums_in_place": lambda x: x.sum(1),
    "sums_set_by_hand": lambda x: (x * x).sum(1),
    "sums_of_rows": lambda x: x.max(1).values + x.sum(1),
    "three_terms": lambda x, w: x[:64] * w[0] + x[64:128] * w[1] + x[128:] * w[2],
    "waits_in_functions": lambda x: x * x,
    "window_sums": lambda x: torch.stack([x[8 * i : 8 * i + 16].sum(0) for i in range(64)]),
    "weights_a_row": lambda x, w, b: x * w + b,
}
DOMAINS = {"fetched_rows": "order=0:255", "spread_values": "s=0.5:4"}
DOMAINS = {"copied_rows": "s=0.5:4", "spread_values": "s=0.5:4"}
DOMAINS = {
    "fetched_rows": "order=0:255",
    "rows_to_places": f"place={[(5 * i + 3) % 512 for i in range(512)]}",
    "scattered_values": f"order={[(5 * i + 3) % 512 for i in range(512)]}",
    "spread_values": "s=0.5:4",
}


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b4", workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS)


def form(name: str, evaluator: Evaluator) -> tuple[re.Match[str], Gate]:
    """What the file's head says, and a gate for its kernel."""
    path = FOLDER / f"{name}.cpp"
    found = _HEAD.search(path.read_text())
    assert found is not None
    inputs, outputs = (dict(map(parse_tensor, found[i].split())) for i in (1, 2))
    operator = load_direct(path, name, int(found[3]))
    signature = direct_signature(operator, inputs, outputs, {})
    domain = dict([parse_domain(DOMAINS[name], signature)]) if name in DOMAINS else {}
    dtype = getattr(torch, next(iter(outputs.values())).dtype)

    def reference(*tensors: _Tensor, **_: Any) -> _Tensor:
        return FORMULAS[name](*(t.double() for t in tensors)).to(dtype)

    operator = dataclasses.replace(operator, reference=reference, settings={"domain": domain})
    case = Case(tuple(inputs.values()), tuple(outputs.values()))
    return found, Gate(operator, case, evaluator, signature=signature)


def modelled_us(gate: Gate, pair: Pair) -> float:
    outcome = gate.evaluate(pair).outcome
    assert isinstance(outcome, Timed), outcome
    return outcome.profile.task_duration_us


def test_rows_come_and_go_in_rings_too(evaluator: Evaluator) -> None:
    _, gate = form("short_rows", evaluator)
    pair = gate.operator.baseline
    times = [modelled_us(gate, pair)]
    for motif in ("rings-for-queues", "rows-per-turn"):
        changed = applied(pair, rewrites_of(pair, gate.operator.auto_sync)[motif][:1])
        assert changed is not None
        pair = changed
        times.append(modelled_us(gate, pair))
    assert times[0] > times[1] > 2 * times[2]
    one = applied(pair, [r for r in find("double-buffer").rewind(KernelProgram(pair.kernel)) if r.site == "all"])
    assert one is not None  # rings of rows are known as queues whose buffers have a number
    assert modelled_us(gate, one) > 0


def test_rings_and_buffers_are_made_at_once(evaluator: Evaluator) -> None:
    _, gate = form("rings_of_rooms", evaluator)
    pair = gate.operator.baseline
    times = [modelled_us(gate, pair)]
    for motif in ("rings-for-queues", "shared-buffers"):
        changed = applied(pair, rewrites_of(pair, gate.operator.auto_sync)[motif][:1])
        assert changed is not None
        pair = changed
        times.append(modelled_us(gate, pair))
    print(f"rings_of_rooms: modelled {times}")
    assert times[0] > times[1] > 1.01 * times[2]
    alone = applied(pair, list(find("shared-buffers").rewind(KernelProgram(pair.kernel))))
    assert alone is not None
    assert modelled_us(gate, alone) > times[2]


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_what_motifs_make_of_it_is_right_and_not_slower(name: str, evaluator: Evaluator) -> None:
    found, gate = form(name, evaluator)
    operator = gate.operator
    before = gate.evaluate(operator.baseline).outcome
    assert isinstance(before, Timed), before
    rewrites = [
        r for r in rewrites_of(operator.baseline, operator.auto_sync)[found[4]] if r.site not in ("all", "needless")
    ]
    assert len(rewrites) == int(found[5])
    together = [tuple(rewrites)] if len(rewrites) > 1 and found[6] == "places" else []
    for group in [(r,) for r in rewrites] + together:
        pair = applied(operator.baseline, group)
        assert pair is not None
        after = gate.evaluate(pair).outcome
        assert isinstance(after, Timed), (group[0].site, after)
        gain = before.profile.task_duration_us / after.profile.task_duration_us
        print(f"{name}, {', '.join(r.site for r in group)}: modelled {gain:.2f}x")
        assert gain >= 1 / 1.001, group[0].site
