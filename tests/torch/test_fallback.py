"""ATen operators on npu tensors: the CPU's results, in place, as views, and with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]


def both(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = torch.float32) -> None:
    """The function gives the same on CPU and npu tensors, and changes its arguments in the same way."""
    torch.manual_seed(0)
    inputs = [torch.randn(shape).to(dtype) for shape in shapes]
    moved = [x.npu() for x in inputs]
    expected, actual = function(*inputs), function(*moved)
    for e, a in zip(*(r if isinstance(r, (list, tuple)) else [r] for r in (expected, actual)), strict=True):
        if isinstance(e, torch.Tensor):
            assert a.device.type == "npu"
            assert a.stride() == e.stride()
            torch.testing.assert_close(a.cpu(), e)
        else:
            assert a == e
    for x, y in zip(inputs, moved, strict=True):
        assert x.shape == y.shape
        assert x.stride() == y.stride()
        torch.testing.assert_close(y.cpu(), x)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "scalar": lambda x, y: 2 * x - 1 / (y * y + 1),
    "compare": lambda x, y: torch.where(x > y, x, y),
    "add_": lambda x, y: x.add_(y),
    "slice_": lambda x, y: x[1:, 2:].mul_(3),
    "setitem": lambda x, y: x.__setitem__((slice(None), 0), y[:, 1]),
    "transpose_": lambda x, y: x.transpose_(0, 1),
    "transposed": lambda x, y: x.t().contiguous() + y.t(),
    "out": lambda x, y: torch.add(x, y, out=torch.empty_like(x)),
    "cast": lambda x, y: x.half().float() + y.to(torch.int32),
    "reduce": lambda x, y: [x.sum(), x.mean(0), y.max(1).values, y.argmax(), x.std()],
    "sort": lambda x, y: list(x.sort(1)),
    "chunk": lambda x, y: list(x.chunk(2)),
    "cat": lambda x, y: torch.cat([x, y], 1),
    "matmul": lambda x, y: x @ y.t(),
    "softmax": lambda x, y: torch.softmax(x, -1),
    "norm": lambda x, y: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "index": lambda x, y: x[torch.tensor([2, 0], device=x.device)],
    "mask": lambda x, y: x[y > 0],
    "item": lambda x, y: x[0, 0].item(),
    "equal": lambda x, y: torch.equal(x, x.clone()),
    "foreach": lambda x, y: torch._foreach_mul([x, y], 2.0),
    "complex": lambda x, y: torch.view_as_real(torch.complex(x, y).conj().resolve_conj()),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_matches_the_cpu(name: str) -> None:
    both(ELEMENTWISE[name], (6, 8), (6, 8))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_dtypes(dtype: Any) -> None:
    both(lambda x, y: x * y + x, (5, 7), (5, 7), dtype=dtype)


def test_factories() -> None:
    assert torch.equal(torch.ones(3, device="npu").cpu(), torch.ones(3))
    assert torch.equal(torch.arange(5, device="npu").cpu(), torch.arange(5))
    assert torch.equal(torch.zeros(2, 3).npu().new_full((2,), 7.0).cpu(), torch.full((2,), 7.0))
    x = torch.randn(1000, device="npu")
    assert x.device.type == "npu"
    assert 0.8 < x.cpu().std() < 1.2
    assert torch.empty_like(x, device="cpu").device.type == "cpu"
    assert "npu:0" in repr(x)


def test_gradients() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    x, target = torch.randn(2, 5, 16), torch.randint(0, 16, (10,))

    def gradients(device: str) -> list[Any]:
        model = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        model.load_state_dict(layer.state_dict())
        model = model.to(device)
        # Not Adam: it blows up the noise in gradients that are zero, as those of the keys' bias are.
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        loss = torch.nn.functional.cross_entropy(model(x.to(device)).flatten(0, 1), target.to(device))
        loss.backward()
        optimizer.step()
        values = [loss, *(p.grad for p in model.parameters()), *model.parameters()]
        return [value.detach().cpu() for value in values]

    for expected, actual in zip(gradients("cpu"), gradients("npu"), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_remove_brings_the_original_back() -> None:
    x = torch.ones(3).npu()
    assert fallback.take_over() == 0
    fallback.remove()
    with pytest.raises(RuntimeError, match="operator Add is not available"):
        _ = x + x
    assert fallback.take_over() > 1000
    assert torch.equal((x + x).cpu(), torch.full((3,), 2.0))
