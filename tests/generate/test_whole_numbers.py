"""Functions that make whole numbers, and conversions: each element as torch's, at ties and where digits end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from generated_modules import Of
from torch import Tensor

from ascendopt_tune.dsl import on_tensors
from ascendopt_tune.generator import NotGenerated, generate

#: Ties, their neighbours, and floats of 2 to the 22nd and 23rd, behind which halves and then ones are the last digits.
EDGES = (0.0, 0.5, 1.5, 2.5, 0.49999997, 0.50000006, 1.0, 4194303.5, 4194304.5, 4194305.5, 8388607.5, 8388608.0,
         16777218.0, 3e9, 1e30, float("inf"))  # fmt: skip


def edges() -> Tensor:
    return torch.tensor([*EDGES, *(-x for x in EDGES)]).reshape(2, -1)


def of_program(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    generated = generate(
        Of(function), [torch.randn(4, 40)], name="whole"
    )  # raises where the two differ at small shapes
    (name,) = (t.name for t in generated.program.of_kind("input"))
    return on_tensors(generated.program, {name: x})["y"]


@pytest.mark.parametrize("name", ["round", "floor", "ceil", "trunc", "sign"])
def test_every_element_is_torchs(name: str) -> None:
    function, x = getattr(torch, name), edges()
    assert torch.equal(of_program(lambda x: function(x), x), function(x))


def test_digits_behind_the_point_are_rounded() -> None:
    x = torch.randn(4, 40)
    torch.testing.assert_close(of_program(lambda x: torch.round(x, decimals=2), x), torch.round(x, decimals=2))


@pytest.mark.parametrize("name", ["exp2", "log2", "log10", "sinh", "cosh", "frac"])
def test_functions_made_of_others(name: str) -> None:
    function = getattr(torch, name)
    x = torch.cat([torch.linspace(1e-6, 0.1, 60), torch.linspace(0.2, 20, 60)]).reshape(2, 60)
    torch.testing.assert_close(of_program(lambda x: function(x), x), function(x), rtol=3e-6, atol=1e-6)


def test_a_conversion_to_a_whole_number_goes_towards_0() -> None:
    x = torch.tensor([[2.7, -2.7, 0.9, -0.9, 1e6 + 0.75, -5.0]])
    assert torch.equal(of_program(lambda x: (x * 2).int().float() + 1, x), (x * 2).int().float() + 1)


def test_what_is_not() -> None:
    x = torch.randn(4, 40)
    found = of_program(lambda x: torch.where(~((x > 0) & (x < 1)), x, -x), x)
    assert torch.equal(found, torch.where((x > 0) & (x < 1), -x, x))


def test_numbers_that_go_through_16_bits_are_refused_unless_that_is_the_result() -> None:
    a, b = torch.randn(4, 40), torch.randn(4, 40)
    with pytest.raises(NotGenerated, match="rounding to float16 in the middle of a module has no rule"):
        generate(Of(lambda x, y: (x.half() + y.half()).float()), [a, b], name="narrow")
    assert generate(Of(lambda x, y: (x + y).half()), [a, b], name="last").graph.outputs[0].dtype == "float16"
    half = [a.half(), b.half()]
    assert (
        generate(Of(lambda x, y: (x.float() * 2).half() * y), half, name="as_given").graph.outputs[0].dtype == "float16"
    )
