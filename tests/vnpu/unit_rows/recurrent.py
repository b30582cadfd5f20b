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


def gru_backwards(x: Tensor, of_input: Tensor, of_hidden: Tensor, first: Tensor, outputs: Tensor, r: Tensor, z: Tensor,
                  n: Tensor, n_last: Tensor, dy: Tensor, carry: Tensor,
                  *_: Any, **__: Any) -> tuple[Tensor, ...]:  # fmt: skip
    """From the last step to the first; weights lie as [3 gates, inputs], as torch has them."""
    before = torch.cat([first, outputs[:-1]])
    carry, into, back = carry[0], torch.zeros(*r.shape[:2], 3 * r.shape[2], dtype=x.dtype), []
    for t in reversed(range(len(x))):
        dh = dy[t] + carry
        dn = dh * (1 - z[t]) * (1 - n[t] ** 2)
        dr, dz = dn * n_last[t] * r[t] * (1 - r[t]), dh * (before[t] - n[t]) * z[t] * (1 - z[t])
        into[t] = torch.cat([dr, dz, dn], 1)
        back.append(torch.cat([dr, dz, dn * r[t]], 1))
        carry = dh * z[t] + back[-1] @ of_hidden
    hidden = torch.stack(back[::-1])
    weights = (torch.einsum("tbg,tbi->gi", d, v) for d, v in ((into, x), (hidden, before)))
    return into @ of_input, carry[None], *weights, into.sum((0, 1)), hidden.sum((0, 1))


def lstm_backwards(x: Tensor, weight: Tensor, _: Tensor, __: Tensor, h0: Tensor, c0: Tensor, h: Tensor, c: Tensor,
                   dy: Tensor, dh: Tensor, dc: Tensor, i: Tensor, j: Tensor, f: Tensor, o: Tensor, tanh_c: Tensor,
                   *___: Any, **____: Any) -> tuple[Tensor, ...]:  # fmt: skip
    """From the last step to the first; the gates lie in the order i, j, f, o."""
    before, cells, size = torch.cat([h0, h[:-1]]), torch.cat([c0, c[:-1]]), x.shape[2]
    carry, cell, into = dh[0], dc[0], []
    for t in reversed(range(len(x))):
        d = dy[t] + carry
        dcell = d * o[t] * (1 - tanh_c[t] ** 2) + cell
        di, dj = dcell * j[t] * i[t] * (1 - i[t]), dcell * i[t] * (1 - j[t] ** 2)
        df, do = dcell * cells[t] * f[t] * (1 - f[t]), d * tanh_c[t] * o[t] * (1 - o[t])
        into.append(torch.cat([di, dj, df, do], 1))
        carry, cell = (into[-1] @ weight)[:, size:], dcell * f[t]
    gates = torch.stack(into[::-1])
    dw = torch.einsum("tbg,tbi->gi", gates, torch.cat([x, before], 2))
    return dw, gates.sum((0, 1)), (gates @ weight)[..., :size], carry[None], cell[None]


def _lstm_grad(steps: int, batch: int, size: int, width: int) -> str:
    each, state = f"T[{steps},{batch},{width}]", f"T[1,{batch},{width}]"
    weight, bias, x = f"T[{4 * width},{size + width}]", f"T[{4 * width}]", f"T[{steps},{batch},{size}]"
    given = f"{x} {weight} {bias} {each} {state} {state} {each} {each} {each} {state} {state} {' '.join([each] * 5)} -"
    return f"{given} -> {weight} {bias} {x} {state} {state}"


def _gru_grad(steps: int, batch: int, size: int, width: int) -> str:
    each, state, gates = f"T[{steps},{batch},{width}]", f"T[1,{batch},{width}]", 3 * width
    weights = f"T[{gates},{size}] T[{gates},{width}]"
    made = f"T[{steps},{batch},{size}] {state} {weights} T[{gates}] T[{gates}]"
    return f"T[{steps},{batch},{size}] {weights} {state} {' '.join([each] * 6)} {state} - -> {made}"


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
_GRU_GRAD = Row(
    "rnn/gru_grad", (_gru_grad(3, 16, 64, 64), _gru_grad(2, 5, 48, 32)), gru_backwards, ("float16", "float32"),
    domain={1: (-0.3, 0.3), 2: (-0.3, 0.3), 5: (0.1, 0.9), 6: (0.1, 0.9), 7: (-0.9, 0.9)},
    attrs={"direction": "UNIDIRECTIONAL", "has_bias": True, "batch_first": False},
    tolerance={"float16": 1e-2, "float32": 1e-3},
)  # fmt: skip
# It counts its inputs as if the optional one were always there.
_LSTM_GRAD = Row(
    "rnn/single_layer_lstm_grad", (_lstm_grad(3, 16, 64, 64), _lstm_grad(2, 5, 48, 32)), lstm_backwards,
    ("float16", "float32"),
    domain={1: (-0.3, 0.3), 11: (0.1, 0.9), 12: (-0.9, 0.9), 13: (0.1, 0.9), 14: (0.1, 0.9), 15: (-0.9, 0.9)},
    attrs={"direction": "UNIDIRECTIONAL", "gate_order": "ijfo"}, tolerance={"float16": 1e-2, "float32": 1e-3},
)  # fmt: skip
ROWS: dict[str, tuple[Row, ...]] = {"cann-ops": _LSTMS, "ops-nn": (*_LSTMS, _GRU, _GRU_GRAD, _LSTM_GRAD)}
