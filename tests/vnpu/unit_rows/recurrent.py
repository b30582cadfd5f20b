"""Recurrent networks: formulas step by step."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Row

Tensor = torch.Tensor
# Both products of a gate are rounded to half before they are added.
HALF = {"float16": 4e-3}


def lstm(x: Tensor, weight: Tensor, bias: Tensor, _: Any, hidden: Tensor | None, cell: Tensor | None, *__: Any,
         gate_order: str, **___: Any) -> tuple[Tensor, ...]:  # fmt: skip
    """One layer, forwards: the input and the last output make four gates, whose order is an attribute."""
    width = weight.shape[1] // 4
    h = x.new_zeros(x.shape[1], width) if hidden is None else hidden[0]
    c = x.new_zeros(x.shape[1], width) if cell is None else cell[0]
    kept: list[tuple[Tensor, ...]] = []
    for step in x:
        gates = (torch.cat([step, h], 1) @ weight + bias).chunk(4, 1)
        named = dict(zip(gate_order, gates, strict=True))
        i, f, o = (named[name].sigmoid() for name in "ifo")
        j = named["j"].tanh()
        c = c * f + i * j
        h = c.tanh() * o
        kept.append((h, h, c, i, j, f, o, c.tanh()))
    return tuple(map(torch.stack, zip(*kept, strict=True)))


def lstm_of_two(x: Tensor, of_input: Tensor, of_hidden: Tensor, *rest: Any, **attrs: Any) -> tuple[Tensor, ...]:
    """The same with a matrix for the input and one for the last output."""
    return lstm(x, torch.cat([of_input, of_hidden]), *rest, **attrs)


def gru(x: Tensor, of_input: Tensor, of_hidden: Tensor, bias: Tensor, more_bias: Tensor, _: Any, hidden: Tensor,
        **__: Any) -> tuple[Tensor, ...]:  # fmt: skip
    """One layer, forwards; the outputs twice, as the kernel gives them to its caller."""
    h, kept = hidden[0], []
    for step in x:
        r_in, z_in, n_in = (step @ of_input + bias).chunk(3, 1)
        r_last, z_last, n_last = (h @ of_hidden + more_bias).chunk(3, 1)
        r, z = (r_in + r_last).sigmoid(), (z_in + z_last).sigmoid()
        n = (n_in + r * n_last).tanh()
        h = (1 - z) * n + z * h
        kept.append((h, h, r, z, n, n_last))
    return tuple(map(torch.stack, zip(*kept, strict=True)))


def _lstm(path: str, order: str, *, apart: bool) -> Row:
    def case(steps: int, batch: int, size: int, width: int) -> str:
        weight = f"T[{size},{4 * width}] T[{width},{4 * width}]" if apart else f"T[{size + width},{4 * width}]"
        state = f"T[1,{batch},{width}]"
        given = f"T[{steps},{batch},{size}] {weight} T[{4 * width}] - {state} {state} - - - -"
        return f"{given} -> {' '.join([f'T[{steps},{batch},{width}]'] * 8)}"

    formula = lstm_of_two if apart else lstm
    return Row(path, (case(3, 16, 32, 64), case(2, 32, 48, 128)), formula, ("float32", "float16"),
               attrs={"gate_order": order}, tolerance=HALF)  # fmt: skip


_LSTMS = (_lstm("rnn/dynamic_rnn", "ifjo", apart=False), _lstm("rnn/dynamic_rnnv2", "ijfo", apart=True))
_GRU = Row(
    "rnn/gru",
    (f"T[3,16,32] T[32,192] T[64,192] T[192] T[192] - T[1,16,64] -> {' '.join(['T[3,16,64]'] * 6)}",
     f"T[2,32,48] T[48,384] T[128,384] T[384] T[384] - T[1,32,128] -> {' '.join(['T[2,32,128]'] * 6)}"),
    gru, ("float32", "float16"), attrs={"direction": "UNIDIRECTIONAL", "is_training": True}, tolerance=HALF,
)  # fmt: skip
ROWS: dict[str, tuple[Row, ...]] = {"cann-ops": _LSTMS, "ops-nn": (*_LSTMS, _GRU)}
