"""Tensors on more than one device are refused as torch refuses them, and empty tensors give empty ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def operators() -> None:
    aot.registry_ops()


def cpu(*shape: int) -> Any:
    return torch.ones(shape)


def npu(*shape: int) -> Any:
    return torch.ones(shape).npu()


@pytest.mark.parametrize(
    "call",
    [
        lambda: npu(4, 8) + cpu(4, 8),
        lambda: cpu(4, 8) + npu(4, 8),
        lambda: npu(4, 8).add_(cpu(4, 8)),
        lambda: cpu(4, 8).add_(npu(4, 8)),
        lambda: torch.add(npu(4), npu(4), out=cpu(4)),
        lambda: torch.cat([npu(4), cpu(4)]),
        lambda: npu(4, 8) @ cpu(8, 4),
        lambda: torch.nn.functional.linear(npu(4, 8), cpu(4, 8)),
        lambda: torch.gather(npu(4, 8), 0, torch.zeros(1, 8).long()),
        lambda: torch.where(npu(4) > 0, npu(4), cpu(4)),
        lambda: npu(4, 8).index_put_((torch.tensor([0]),), cpu(8)),
        lambda: torch.equal(npu(4), cpu(4)),
        lambda: torch.ops.ascendopt.rms_norm(npu(4, 8), cpu(8)),
        lambda: torch.ops.ascendopt.rms_norm(cpu(4, 8), npu(8)),
        lambda: aot.tune("rms_norm")(torch.ops.ascendopt.rms_norm)(npu(4, 8), cpu(8)),
        lambda: aot.tune("add")(lambda x, y: x + y)(npu(4, 8), cpu(4, 8)),
    ],
)
def test_two_devices_are_refused(call: Callable[[], Any]) -> None:
    message = "Expected all tensors to be on the same device, but found at least two devices, npu:0 and cpu!"
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: cpu(4)[torch.tensor([0, 1]).npu()],
        lambda: cpu(4).index_put_((torch.tensor([0]).npu(),), cpu(1)),
    ],
)
def test_indices_of_the_device_are_refused_by_the_host(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device as the indexed"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: npu(4) + torch.tensor(2.0),
        lambda: npu(4).masked_fill(npu(4) > 0, torch.tensor(2.0)),
        lambda: npu(4)[torch.tensor([0, 1])],
        lambda: npu(4).index_put_((torch.tensor([0]),), npu(1)),
        lambda: npu(4).copy_(cpu(4)),
        lambda: cpu(4).copy_(npu(4)),
        lambda: torch.nn.utils.rnn.pack_padded_sequence(npu(4, 8, 1), torch.tensor([8, 8, 7, 3]), batch_first=True),
        lambda: torch.tensor_split(npu(4), torch.tensor([1])),
        lambda: cpu(4).type_as(npu(4)),
    ],
)
def test_what_torch_takes_from_the_host_it_takes(call: Callable[[], Any]) -> None:
    assert call() is not None


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda: torch.ops.ascendopt.rms_norm(npu(0, 8), npu(8)), (0, 8)),
        (lambda: torch.ops.ascendopt.softmax(npu(3, 0)), (3, 0)),
        (lambda: torch.ops.ascendopt.add(npu(0), npu(0)), (0,)),
        (lambda: aot.tune("add")(lambda x, y: x + y)(npu(0, 4), npu(0, 4)), (0, 4)),
    ],
)
def test_empty_tensors_give_empty_ones(call: Callable[[], Any], shape: tuple[int, ...]) -> None:
    result = call()
    assert (result.device.type, tuple(result.shape)) == ("npu", shape)


def test_a_list_of_nothing_gives_a_list_of_nothing() -> None:
    assert list(torch.ops.ascendopt.foreach_mul_scalar([], npu(1).float())) == []


def test_a_sum_over_nothing_is_zero() -> None:
    result = torch.ops.ascendopt.reduce_sum_last(npu(3, 0))
    assert result.flatten().tolist() == [0.0, 0.0, 0.0]
