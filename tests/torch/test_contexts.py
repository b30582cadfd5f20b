"""A tuned function inside of what changes a call without changing its arguments: autocast, tracing, transforms."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import dispatch, keys  # noqa: E402
from ascendopt_tune.torch_ops.serving.decorator import tune  # noqa: E402
from ascendopt_tune.torch_ops.serving.fast_path import FastTable  # noqa: E402
from ascendopt_tune.torch_ops.serving.form import CallForm  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402
from ascendopt_tune.torch_ops.serving.status import stats  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def aten() -> None:
    fallback.take_over()


@pytest.fixture(autouse=True)
def no_leftovers(monkeypatch: pytest.MonkeyPatch) -> None:
    registered.clear()
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_S", 0.0)


def tensors(seed: int = 0, dtype: Any = torch.float16) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn((64, 512), generator=generator).to(dtype).npu() for _ in range(2))


def hits() -> int:
    return int(stats()["registry/add"]["hits"])


def served(original: Any = lambda x, y: x + y) -> Any:
    """A tuned function whose launcher serves alone."""
    function = tune("registry/add", policy="lookup")(original)
    for seed in range(8):
        function(*tensors(seed))
    assert hits() >= 8
    return function


def test_autocast_is_part_of_a_call(own_cache: Path, layer: Path) -> None:
    function = served(lambda x, y: (x + y).float() if torch.is_autocast_enabled("npu") else x + y)
    x, y = tensors(1)
    with torch.autocast("npu", dtype=torch.bfloat16):
        assert function(x, y).dtype == torch.float32
    assert function(x, y).dtype == torch.float16
    before = hits()
    plain = served()
    with torch.autocast("npu", dtype=torch.bfloat16):
        for seed in range(8):
            plain(*tensors(seed))
    assert hits() >= before + 4


def test_a_trace_holds_the_original(own_cache: Path, layer: Path) -> None:
    function = served()
    x, y = tensors(1)
    traced = torch.jit.trace(lambda a, b: function(a, b), (x, y), check_trace=False)
    a, b = tensors(2)
    torch.testing.assert_close(traced(a, b).cpu(), (a + b).cpu())


def test_make_fx_sees_the_original(own_cache: Path, layer: Path) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    function = served()
    x, y = tensors(1)
    graph = make_fx(lambda a, b: function(a, b) * 2)(x, y)
    a, b = tensors(2)
    torch.testing.assert_close(graph(a, b).cpu(), ((a + b) * 2).cpu())


def test_a_tangent_is_the_originals(own_cache: Path, layer: Path) -> None:
    import torch.autograd.forward_ad as forward

    function = served()
    x, y = tensors(1)
    with forward.dual_level():
        result = function(forward.make_dual(x, torch.ones_like(x)), y)
        tangent = forward.unpack_dual(result).tangent
    assert tangent is not None
    assert bool((tangent.cpu() == 1).all())


def test_transforms_do_not_take_a_pair_out_of_service(own_cache: Path, layer: Path) -> None:
    function = served()
    x, y = tensors(1)
    for _ in range(5):
        out = torch.vmap(function)(torch.stack([x, y]), torch.stack([y, x]))
        torch.testing.assert_close(out[0].cpu(), (x + y).cpu())
        _, tangent = torch.func.jvp(function, (x, y), (torch.ones_like(x), torch.zeros_like(y)))
        assert bool((tangent.cpu() == 1).all())
    before = hits()
    function(x, y)
    assert hits() == before + 1


def test_a_negated_view_is_not_taken_for_its_memory(own_cache: Path, layer: Path) -> None:
    function = served()
    x, y = tensors(1)
    torch.testing.assert_close(function(torch._neg_view(x), y).cpu(), (y - x).cpu())


def test_dispatch_modes_see_the_original(own_cache: Path, layer: Path) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    function = served()
    with Seen():
        function(*tensors(1))
    assert any("add" in name for name in seen)


def test_zeros_of_either_sign_are_two_values_and_nan_is_one() -> None:
    schema = torch._C.parse_schema("a::b(Tensor x, float f, float[] w) -> Tensor")
    for key in (keys.of_function, keys.of_operator(schema, grad=True)[0]):
        (x, _), (same, _) = tensors(0), tensors(1)

        def made(f: float, w: float, key: Any = key, x: Any = x) -> Any:
            return key((x, f, [w]), {})

        assert made(0.0, 1.0) == key((same, 0.0, [1.0]), {})
        assert made(0.0, 1.0) != made(-0.0, 1.0)
        assert made(1.0, 0.0) != made(1.0, -0.0)
        assert made(float("nan"), 1.0) == made(float("nan"), 1.0)
        assert made(1.0, float("nan")) == made(1.0, float("nan"))
        assert len({made(f, 1.0) for f in (0.0, -0.0, 1.0, 1.0, float("nan"), float("nan"))}) == 4


@pytest.mark.parametrize("bound", [False, True], ids=["dispatched", "bound"])
def test_cpp_tells_zeros_apart_by_their_sign(bound: bool, fast_library: Any) -> None:
    lib = torch.library.Library("aot_zero", "DEF")
    lib.define("f(Tensor x, float f, float[] w) -> Tensor")
    lib.impl("f", lambda x, *rest: torch.ones(1).npu(), "PrivateUse1")
    launch = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 6)(lambda *_: 0)
    op, (x, _) = torch.ops.aot_zero.f.default, tensors(0)
    form = CallForm.of(op._schema, (x, 0.0, [-0.0, 1.0]), {}, x.device)
    assert form is not None
    number = fast_library.dtype_number
    case = fast_library.Case(
        key=[(p[0], number(p[1])) if isinstance(p, tuple) else p for p in form.key],
        device=0, several=False, function=0, block_dim=1, tiling=0, workspace_bytes=0, system_bytes=0,
        launch=ctypes.cast(launch, ctypes.c_void_p).value, inputs=[0], returned=[0],
        outputs=[fast_library.Output(fast_library.Output.NEW, -1, True, ((2, 2), number(torch.int32)), None)],
    )  # fmt: skip
    table = FastTable(fast_library, grad=True)
    table.table.put(case)
    override = fast_library.Override("aot_zero::f", "", table.table)
    call: Any = op
    if bound:
        call, handle = table.bound("f", "here")
        handle.set(case, (), [0, 1, 2], [op], op, 0)
        handle.set_otherwise(lambda *args: torch.ones(1))
    try:
        assert call(x, 0.0, [-0.0, 1.0]).shape == (2, 2)
        assert call(x, -0.0, [-0.0, 1.0]).shape == (1,)
        assert call(x, 0.0, [0.0, 1.0]).shape == (1,)
    finally:
        override.undo()
        lib._destroy()
