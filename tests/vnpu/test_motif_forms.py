"""Other people's spelling, written small: what motifs make of each kernel of motif_forms/ is right, and not slower.

The head of each file says what it computes, its case, and the motif that is to meet it (written_small.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from written_small import Form, evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

__all__ = ["evaluator"]

FOLDER = Path(__file__).with_name("motif_forms")
FORMULAS: dict[str, Callable[..., Any]] = {
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
DOMAINS = {
    "fetched_rows": "order=0:255",
    "rows_to_places": f"place={[(5 * i + 3) % 512 for i in range(512)]}",
    "scattered_values": f"order={[(5 * i + 3) % 512 for i in range(512)]}",
    "spread_values": "s=0.5:4",
}


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS)


def form(name: str, evaluator: Evaluator) -> Form:
    domains = [DOMAINS[name]] if name in DOMAINS else []
    return open_form(FOLDER / f"{name}.cpp", FORMULAS[name], evaluator, domains=domains)


def test_rows_come_and_go_in_rings_too(evaluator: Evaluator) -> None:
    rows = form("short_rows", evaluator)
    rings = rows.changed(rows.rewrites("rings-for-queues")[:1])
    pair = rows.changed(rows.rewrites("rows-per-turn", rings)[:1], rings)
    assert rows.before_us > rows.modelled_us(rings) > 2 * rows.modelled_us(pair)
    # rings of rows are known as queues whose buffers have a number
    one = [r for r in find("double-buffer").rewind(KernelProgram(pair.kernel)) if r.site == "all"]
    assert rows.modelled_us(rows.changed(one, pair)) > 0


def test_rings_and_buffers_are_made_at_once(evaluator: Evaluator) -> None:
    rooms = form("rings_of_rooms", evaluator)
    rings = rooms.changed(rooms.rewrites("rings-for-queues")[:1])
    shared = rooms.changed(rooms.rewrites("shared-buffers", rings)[:1], rings)
    least = rooms.modelled_us(shared)
    assert rooms.before_us > rooms.modelled_us(rings) > 1.01 * least
    alone = rooms.changed(list(find("shared-buffers").rewind(KernelProgram(shared.kernel))), shared)
    assert rooms.modelled_us(alone) > least


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_what_motifs_make_of_it_is_right_and_not_slower(name: str, evaluator: Evaluator) -> None:
    kernel = form(name, evaluator)
    rewrites = [r for r in kernel.rewrites() if r.site not in ("all", "needless")]
    assert len(rewrites) == kernel.count
    together = [rewrites] if len(rewrites) > 1 and kernel.places else []
    for group in [[r] for r in rewrites] + together:
        sites = ", ".join(r.site for r in group)
        assert kernel.gain(kernel.changed(group), sites) >= 1 / 1.001, sites
