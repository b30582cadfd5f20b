"""An ordinary training program on device npu: a small transformer, step by step what it is on the CPU."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import ascendopt_tune  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

VOCABULARY, WIDTH, HEADS, LENGTH = 32, 16, 2, 6


class Block(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.projection, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        heads = self.projection(self.first(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.dropout(self.output(attended))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


class Transformer(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(2))
        self.encoder = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        x = x + self.encoder(x, x, x, need_weights=False)[0]
        return self.head(self.norm(x))


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    return Transformer()


def loss_of(model: Any, tokens: Any) -> Any:
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def train(model: Any, device: str, make: Callable[..., Any], dtype: Any = torch.float64) -> list[Any]:
    """Losses, parameters and the optimizer's states after five steps. In float64, so that rounding doesn't add up."""
    model = copy.deepcopy(model).to(device, dtype)
    optimizer = make(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    tokens = torch.randint(VOCABULARY, (20, LENGTH), generator=torch.Generator().manual_seed(1))
    values = []
    for (batch,) in DataLoader(TensorDataset(tokens), batch_size=4, pin_memory=device == "npu"):
        optimizer.zero_grad()
        loss = loss_of(model, batch.to(device, non_blocking=True))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        values += [loss, norm]
    state = optimizer.state_dict()["state"]
    values += [*model.parameters(), *(t for s in state.values() for t in s.values() if isinstance(t, torch.Tensor))]
    return [value.detach().cpu() for value in values]


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw-single": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "adam-amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, eps=1e-3),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01, eps=1e-3),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(model: Any, name: str) -> None:
    expected, actual = train(model, "cpu", OPTIMIZERS[name]), train(model, "npu", OPTIMIZERS[name])
    assert expected[0] > expected[8], "the loss falls"
    for e, a in zip(expected, actual, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-9, atol=1e-10)


def test_one_step_in_float32(model: Any) -> None:
    tokens = torch.randint(VOCABULARY, (4, LENGTH), generator=torch.Generator().manual_seed(2))
    ours, theirs = copy.deepcopy(model).npu(), copy.deepcopy(model)
    torch.testing.assert_close(ours(tokens.npu()).cpu(), theirs(tokens))
    loss_of(ours, tokens.npu()).backward()
    loss_of(theirs, tokens).backward()
    for a, e in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad.cpu(), e.grad)


def test_it_is_said_to_be_not_modelled(model: Any) -> None:
    before = ascendopt_tune.not_modelled()
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    start.record()
    copy.deepcopy(model).npu()(torch.zeros(1, 3, dtype=torch.long).npu())
    end.record()
    end.synchronize()
    after = ascendopt_tune.not_modelled()
    assert after["native_layer_norm"] == before.get("native_layer_norm", 0) + 5
    assert after["embedding"] == before.get("embedding", 0) + 2
    assert start.elapsed_time(end) == 0
    assert str(ascendopt_tune.status()).splitlines()[-1].startswith("on the CPU, not modelled: ")


def test_saved_states_and_copies(model: Any) -> None:
    tokens = torch.arange(10).view(2, 5)
    expected = model(tokens)
    ours = copy.deepcopy(model).npu()
    file = io.BytesIO()
    torch.save({"model": ours.state_dict()}, file)
    for location in ("cpu", "npu"):
        file.seek(0)
        state = torch.load(file, map_location=location)["model"]
        other = Transformer().to(location)
        other.load_state_dict(state)
        torch.testing.assert_close(other(tokens.to(location)).cpu(), expected)
    torch.testing.assert_close(copy.deepcopy(ours)(tokens.npu()).cpu(), expected)
    torch.testing.assert_close(ours.cpu()(tokens), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(model: Any, dtype: Any) -> None:
    ours, tokens = copy.deepcopy(model).npu(), torch.arange(10).view(2, 5)
    with torch.autocast("npu", dtype):
        result = ours(tokens.npu())
        loss = loss_of(ours, tokens.npu())
    assert result.dtype == dtype
    loss.backward()
    assert all(p.grad.dtype == torch.float32 for p in ours.parameters() if p.grad is not None)
    torch.testing.assert_close(result.float().cpu(), model(tokens), rtol=0.05, atol=0.05)


def test_gradient_scaler(model: Any) -> None:
    ours, tokens = copy.deepcopy(model).npu(), torch.arange(10).view(2, 5).npu()
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("npu", init_scale=4.0)
    before = ours.head.weight.detach().clone()
    scaler.scale(loss_of(ours, tokens)).backward()
    scaler.step(optimizer)
    scaler.update()
    plain = copy.deepcopy(model).npu()
    loss_of(plain, tokens).backward()
    torch.testing.assert_close(ours.head.weight, before - 0.1 * plain.head.weight.grad)
    assert scaler.get_scale() == 4.0


def test_random_numbers_follow_seeds_and_states() -> None:
    torch.manual_seed(3)
    first, second = torch.randn(5, device="npu"), torch.rand(5, device="npu")
    state = torch.npu.get_rng_state()
    third = F.dropout(torch.ones(100, device="npu"), 0.5)
    torch.npu.set_rng_state(state)
    assert torch.equal(F.dropout(torch.ones(100, device="npu"), 0.5), third)
    torch.npu.manual_seed(3)
    assert torch.equal(torch.randn(5, device="npu"), first)
    assert torch.equal(torch.rand(5, device="npu"), second)
    assert not torch.equal(torch.randn(5, device="npu"), first)
    generator = torch.Generator("npu").manual_seed(4)
    values = [torch.randn(5, device="npu", generator=generator) for _ in range(2)]
    assert not torch.equal(*values)
    generator.manual_seed(4)
    assert torch.equal(torch.randn(5, device="npu", generator=generator), values[0])
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    torch.randperm(10, device="npu")
    assert torch.equal(torch.rand(3), expected), "the CPU's own numbers are not touched"


def test_recomputed_dropout_is_the_same() -> None:
    torch.manual_seed(0)
    block, x = Block(0.5).npu(), torch.randn(2, 4, WIDTH).npu().requires_grad_()
    gradients = []
    for call in (block, lambda x: checkpoint(block, x, use_reentrant=False)):
        torch.npu.manual_seed(1)
        gradients.append(torch.autograd.grad(call(x).square().sum(), x)[0])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent(kind: Any, bias: bool) -> None:
    torch.manual_seed(0)
    theirs = kind(3, 4, num_layers=2, bias=bias, bidirectional=True).double()
    ours = copy.deepcopy(theirs).npu()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    lengths = torch.tensor([5, 3])
    for e, a in ((theirs(x)[0], ours(x.npu())[0]), (packed(theirs, x, lengths), packed(ours, x.npu(), lengths))):
        torch.testing.assert_close(a.cpu(), e)
        for module, y in ((theirs, e), (ours, a)):
            module.zero_grad()
            y.square().sum().backward()
        for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
            torch.testing.assert_close(q.grad.cpu(), p.grad)


def packed(module: Any, x: Any, lengths: Any) -> Any:
    sequence = nn.utils.rnn.pack_padded_sequence(x, lengths)
    return nn.utils.rnn.pad_packed_sequence(module(sequence)[0])[0]


def views_and_in_place(device: str) -> list[Any]:
    x = torch.arange(24.0, device=device).view(4, 6)
    results = [x]
    x[1:3, ::2] *= 2
    x[:, 1].fill_(7)
    x.t()[0].add_(1)
    x[torch.tensor([0, 2], device=device), 3:] = -1
    x[x > 15] = 0
    results += [x.real, x.view(torch.int32), x[..., None].expand(4, 6, 2), x.unfold(1, 2, 2), x.diagonal()]
    y = x.clone().requires_grad_()
    z = y * 1
    z[0].mul_(3)
    z.narrow(1, 2, 2).copy_(z.narrow(1, 0, 2).clone())
    z.sum().backward()
    results += [y.grad, torch.nonzero(x), *torch.unique(x, return_counts=True), x.masked_select(x > 1)]
    out = torch.empty(0, device=device)
    torch.add(x, 1, out=out)
    shared = out.view(-1)
    out.transpose_(0, 1).squeeze_()
    out.zero_()
    results += [out, shared, torch.complex(x, -x).conj(), torch.complex(x, x).mH @ torch.complex(x, x)]
    x.resize_(2, 3)
    results += [x, x.split(1)[1], torch.stack([x, x]).movedim(0, -1), x.to(torch.bool).any(0)]
    return results


def test_views_and_in_place() -> None:
    for e, a in zip(views_and_in_place("cpu"), views_and_in_place("npu"), strict=True):
        assert (a.shape, a.stride(), a.is_conj(), a._is_view()) == (e.shape, e.stride(), e.is_conj(), e._is_view())
        torch.testing.assert_close(a.cpu(), e)


def test_default_device() -> None:
    with torch.device("npu"):
        x = torch.ones(3) * torch.arange(3)
        assert nn.Linear(3, 2)(x).device.type == "npu"
    assert torch.equal(x.cpu(), torch.arange(3.0))


OWN_OPERATORS: dict[str, Callable[[Any], Any]] = {
    "Cast": lambda x: torch.ops.npu.npu_dtype_cast(x, torch.float16),
    "RmsNorm": lambda x: torch.ops.npu.npu_rms_norm(x, x[0]),
    "Conv2D": lambda x: torch.ops.npu.npu_convolution(x[None, None], x[None, None], None, [1, 1], [0, 0], [1, 1], 1),
    "Identity": lambda x: torch.ops.npu.npu_format_cast(x, 29),
}


@pytest.mark.parametrize("name", OWN_OPERATORS)
def test_operators_of_torch_npu_raise_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # torch_npu leaves the operator's inputs in files there
    with pytest.raises(RuntimeError, match=f"operator {name} is not available"):
        OWN_OPERATORS[name](torch.eye(4).npu())


def test_what_is_not_there_raises_by_name() -> None:
    x = torch.eye(3).npu()
    with pytest.raises(NotImplementedError, match="sparse_coo results can't be had on the virtual NPU"):
        x.to_sparse()
