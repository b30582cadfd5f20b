"""``torch.ops.ascendopt``: the registry's operators on the CPU, on device npu, under autograd and by opcheck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ascendopt_tune as aot  # isort: skip  (before torch, which loads torch_npu)

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.sources.registry import operator_names  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402

pytestmark = pytest.mark.skipif(not is_virtual(), reason="a real CANN serves")

Arguments = tuple[Any, ...]


def _random(*shape: int, dtype: Any = None) -> Any:
    return torch.randn(*shape).to(dtype or torch.float32)


# name -> arguments on the CPU
CALLS: dict[str, Callable[[], Arguments]] = {
    "add": lambda: (_random(4, 64), _random(4, 64)),
    "dynamic_quant": lambda: (_random(4, 64, dtype=torch.float16),),
    "flash_attention": lambda: (*(_random(2, n, 32, dtype=torch.float16) for n in (40, 70, 70)), 0.2, True),
    "foreach_mul_scalar": lambda: ([_random(4, 16), _random(40)], torch.tensor([1.5])),
    "grouped_matmul": lambda: (
        _random(40, 64, dtype=torch.float16),
        _random(3, 64, 24, dtype=torch.float16),
        torch.tensor([9, 0, 4]),
    ),
    "layer_norm": lambda: (_random(4, 64), _random(64), _random(64), 1e-5),
    "masked_fill": lambda: (_random(4, 64), _random(4, 64) > 0, 2.0),
    "matmul": lambda: (*(_random(*s, dtype=torch.float16) for s in ((40, 64), (24, 64), (24,))), True),
    "matmul_gelu": lambda: (_random(40, 64, dtype=torch.float16), _random(64, 24, dtype=torch.float16)),
    "moe_gather_rows": lambda: (_random(8, 64), torch.tensor([3, 0, 7, 3], dtype=torch.int32)),
    "quant_matmul": lambda: (
        torch.randint(-9, 9, (40, 64), dtype=torch.int8),
        torch.randint(-9, 9, (24, 64), dtype=torch.int8),
        torch.full((24,), 0.01).view(torch.int32).long(),
    ),
    "reduce_sum_last": lambda: (_random(4, 64),),
    "rms_norm": lambda: (_random(4, 64), _random(64), 1e-6),
    "rope": lambda: (_random(8, 2, 64), _random(8, 64), _random(8, 64)),
    "silu": lambda: (_random(4, 64),),
    "softmax": lambda: (_random(4, 64),),
    "swiglu": lambda: (_random(4, 128),),
}


@pytest.fixture(scope="module")
def ops() -> Any:
    assert aot.registry_ops() == tuple(operator_names()) == tuple(CALLS)
    assert aot.registry_ops() == tuple(CALLS)  # harmless when repeated
    return torch.ops.ascendopt


def on_npu(value: Any) -> Any:
    return [t.npu() for t in value] if isinstance(value, list) else value.npu() if hasattr(value, "npu") else value


def flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("name", CALLS)
def test_each_operator_computes_on_the_device_what_it_does_on_the_cpu(name: str, ops: Any) -> None:
    torch.manual_seed(0)
    args = CALLS[name]()
    op = getattr(ops, name)
    expected, found = op(*args), op(*map(on_npu, args))
    assert type(found) is type(expected)
    for a, b in zip(flat(found), flat(expected), strict=True):
        assert a.device.type == "npu"
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype == torch.int8:
            assert (a.cpu().int() - b.int()).abs().max() <= 1
        else:
            torch.testing.assert_close(a.cpu(), b, rtol=1e-3, atol=1e-3)
    # opcheck's other tests know no device but CPU and CUDA
    torch.library.opcheck(op.default, tuple(map(on_npu, args)), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("name", CALLS)
def test_each_operator_keeps_torch_s_rules(name: str, ops: Any) -> None:
    args = CALLS[name]()
    if flat(getattr(ops, name)(*args))[0].is_floating_point():  # opcheck adds the outputs up, beginning with the first
        args = tuple(a.requires_grad_() if hasattr(a, "dim") and a.is_floating_point() else a for a in args)
    torch.library.opcheck(getattr(ops, name).default, args)


def test_gradients_are_those_of_the_formula(ops: Any) -> None:
    x, gamma = _random(4, 64).requires_grad_(), _random(64).requires_grad_()
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gamma
    expected = torch.autograd.grad(y.square().sum(), [x, gamma])
    near, weight = x.detach().npu().requires_grad_(), gamma.detach().npu().requires_grad_()
    found = torch.autograd.grad(ops.rms_norm(near, weight).square().sum(), [near, weight])
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-4)


def test_a_tensor_that_is_not_contiguous_is_taken(ops: Any) -> None:
    x = _random(64, 4)
    torch.testing.assert_close(ops.silu(x.npu().t()).cpu(), ops.silu(x.t()), rtol=1e-4, atol=1e-4)


def test_the_device_s_clock_shows_the_pair_as_written(ops: Any) -> None:
    start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    x = _random(4, 64).npu()
    ops.silu(x)
    start.record()
    ops.silu(x)
    end.record()
    torch.npu.synchronize()
    assert 1 < start.elapsed_time(end) * 1e3 < 100  # us, modelled


def test_what_an_operator_refuses_is_an_error_with_the_reason(ops: Any) -> None:
    with pytest.raises(aot.AscendOptError, match="float64"):
        ops.silu(_random(4, 64, dtype=torch.float64).npu())
