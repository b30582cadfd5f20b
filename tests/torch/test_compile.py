"""``torch.compile(backend="ascendopt")``: tuned pairs bound into graphs, what stays dispatched, and every way back."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ascendopt_tune as aot  # isort: skip  (before torch, which loads torch_npu)

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.errors import DeviceError  # noqa: E402
from ascendopt_tune.torch_ops.compile import compile_pass, graph_ops  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import dispatch  # noqa: E402
from ascendopt_tune.torch_ops.serving.launcher import Launcher  # noqa: E402
from ascendopt_tune.torch_ops.serving.recording import recording  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402
from ascendopt_tune.torch_ops.serving.resolve import Resolver  # noqa: E402
from ascendopt_tune.torch_ops.serving.status import status  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

SHAPE = (64, 512)  # the one that conftest's layer has a result for
NAME = "aot_compile_test::add"
both = pytest.mark.parametrize("inner", ["eager", "aot_eager"])

_calls: list[str] = []  # of originals
_turns: list[bool] = []


@torch.library.custom_op(NAME, mutates_args=())
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    _calls.append("add")
    return x + y


@add.register_fake
def _(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


add.register_autograd(lambda ctx, gradient: (gradient, 2 * gradient))  # not add's: one sees whose formula it was


@torch.library.custom_op("aot_compile_test::turned", mutates_args=())
def turned(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t() if _turns else x.clone()  # its fake kernel promises a contiguous tensor


@turned.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@pytest.fixture(autouse=True)
def fresh(fast_library: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bound nodes launch in C++, unless a test says otherwise."""
    fallback.take_over()
    torch.compiler.reset()
    registered.clear()
    _calls.clear()
    _turns.clear()
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_S", 0.0)
    yield
    torch.compiler.reset()


@pytest.fixture
def taken(layer: Path) -> Iterator[Any]:
    with aot.intercept(NAME, "add") as interception:
        yield interception


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graphs that the pass went over."""
    seen: list[Any] = []
    run = compile_pass.compile_pass

    def spy(graph: Any, **kwargs: Any) -> Any:
        seen.append(run(graph, **kwargs))
        return seen[-1]

    monkeypatch.setattr(compile_pass, "compile_pass", spy)
    return seen


def compiled(function: Callable[..., Any], inner: Any, **options: Any) -> Any:
    return torch.compile(function, backend="ascendopt", fullgraph=True, options={"inner": inner}, **options)


def tensors(shape: tuple[int, ...] = SHAPE, seed: int = 0) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator).half().npu() for _ in range(2))


def rows(graphs: list[Any]) -> list[tuple[str, str]]:
    return [(row.served, row.reason) for graph in graphs for row in graph.meta["ascendopt"]]


def bound_nodes(graph: Any) -> list[str]:
    names = [(node.name, getattr(node.target, "__name__", "")) for node in graph.graph.nodes]
    return [name for name, target in names if target.startswith(("bound_", "original_"))]


def counts(name: str = NAME) -> tuple[int, int, int, int]:
    row = status().operators[name]
    return row.hits, row.misses, row.kept, sum(row.fallbacks.values())


def doubled(x: Any, y: Any) -> Any:
    return add(x, y) * 2


# -- bound ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inner", "fast"), [("eager", True), ("aot_eager", True), ("eager", False)])
def test_a_node_calls_the_launcher(
    inner: str, fast: bool, graphs: list[Any], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The first call compares; after it neither the original nor dispatch has a part in a call."""
    monkeypatch.setenv("ASCENDOPT_FAST_PATH", str(int(fast)))
    taken = request.getfixturevalue("taken")
    function = compiled(doubled, inner)
    x, y = tensors()
    assert torch.equal(function(x, y).cpu(), ((x + y) * 2).cpu())
    assert (_calls, counts()) == (["add"], (1, 0, 0, 0))
    assert rows(graphs) == [("bound", "")]
    assert len(bound_nodes(graphs[0])) == 1

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("dispatched")

    monkeypatch.setattr(taken.tuned[0], "_serve", never)
    monkeypatch.setattr(taken.tuned[0], "_key", never)
    for seed in (1, 2):
        x, y = tensors(seed=seed)
        assert torch.equal(function(x, y).cpu(), ((x + y) * 2).cpu())
    assert (_calls, counts()) == (["add"], (3, 0, 0, 0))
    assert status().operators[NAME].fast == (2 if fast else 0)


@both
def test_recompiling_resolves_nothing_again(
    inner: str, taken: Any, graphs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = tensors()
    compiled(doubled, inner)(x, y)
    monkeypatch.setattr(Resolver, "resolve", lambda *args: pytest.fail("resolved again"))
    torch.compiler.reset()
    compiled(lambda x, y: add(add(x, y), y), inner)(x, y)
    assert rows(graphs) == [("bound", "")] * 3
    assert (_calls, counts()) == (["add"], (3, 0, 0, 0))


@both
def test_a_decorated_function_is_one_node(inner: str, layer: Path, graphs: list[Any]) -> None:
    plain = aot.tune("registry/add")(lambda x, y: x + y)
    x, y = tensors()
    function = compiled(lambda x, y: plain(x, y=y) * 2, inner)
    for seed in range(3):
        x, y = tensors(seed=seed)
        assert torch.equal(function(x, y).cpu(), ((x + y) * 2).cpu())
    assert rows(graphs) == [("bound", "")]
    assert counts("registry/add") == (3, 0, 0, 0)


def test_a_decorated_function_under_another_backend_is_dispatched(layer: Path) -> None:
    plain = aot.tune("registry/add")(lambda x, y: x + y)
    x, y = tensors()
    for backend in ("eager", "aot_eager"):
        torch.compiler.reset()
        function = torch.compile(lambda x, y: plain(x, y) * 2, backend=backend, fullgraph=True)
        assert torch.equal(function(x, y).cpu(), ((x + y) * 2).cpu())
    assert counts("registry/add") == (1, 0, 0, 0)  # AOTAutograd looks into it


def test_a_pass_inside_another_backend(taken: Any, graphs: list[Any]) -> None:
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    backend = aot_autograd(fw_compiler=lambda graph, inputs: make_boxed_func(aot.compile_pass(graph).forward))
    x, y = tensors()
    function = torch.compile(doubled, backend=backend, fullgraph=True)
    for _ in range(2):
        assert torch.equal(function(x, y).cpu(), ((x + y) * 2).cpu())
    assert rows(graphs) == [("bound", "")]
    assert (_calls, counts()) == (["add"], (2, 0, 0, 0))


# -- what stays dispatched ------------------------------------------------------------------------------------------


@both
def test_sizes_with_symbols_are_dispatched(inner: str, taken: Any, graphs: list[Any]) -> None:
    function = compiled(doubled, inner)
    for rows_of in (32, 64, 48, 64):
        x, y = tensors((rows_of, 512))
        for tensor in (x, y):
            torch._dynamo.mark_dynamic(tensor, 0)
        assert torch.equal(function(x, y).cpu(), ((x + y) * 2).cpu())
    assert rows(graphs) == [("dispatched", "shapes with symbols")]
    assert counts() == (2, 2, 0, 0)


@both
def test_what_is_not_cached_is_dispatched(inner: str, taken: Any, graphs: list[Any]) -> None:
    x, y = tensors((3, 5))
    assert torch.equal(compiled(doubled, inner)(x, y).cpu(), ((x + y) * 2).cpu())
    assert rows(graphs) == [("dispatched", "not cached")]
    assert counts() == (0, 1, 0, 0)


def test_gradients_are_the_formulas(taken: Any, graphs: list[Any]) -> None:
    for inner, served in (("eager", ("dispatched", "a gradient is wanted")), ("aot_eager", ("bound", ""))):
        torch.compiler.reset()
        graphs.clear()
        x, y = (t.requires_grad_() for t in tensors())
        function = compiled(doubled, inner)
        for _ in range(2):
            x.grad = y.grad = None
            function(x, y).sum().backward()
            assert (x.grad.cpu() == 2).all()
            assert (y.grad.cpu() == 4).all()
        assert rows(graphs) == [served]
        with torch.no_grad():
            function(x, y)  # recompiled
        assert rows(graphs)[-1] == ("bound", "")
    assert (_calls, counts()) == (["add"], (6, 0, 0, 0))


def test_the_operator_made_of_a_function_keeps_torch_s_rules(layer: Path) -> None:
    plain = aot.tune("registry/add")(lambda x, y: x + y)
    x, y = tensors()
    compiled(lambda x, y: plain(x, y) * 2, "aot_eager")(x, y)
    overload = next(made for made, meaning in graph_ops._meaning.items() if meaning.op is plain.tuned)
    torch.library.opcheck(overload, ([x.cpu(), y.cpu()],))
    torch.library.opcheck(overload, ([x, y],), test_utils=("test_schema", "test_faketensor"))


@both
def test_a_decorated_function_in_training_is_differentiated(inner: str, layer: Path) -> None:
    plain = aot.tune("registry/add")(lambda x, y: x + y)
    x, y = (t.requires_grad_() for t in tensors())
    compiled(lambda x, y: plain(x, y) * 2, inner)(x, y).sum().backward()
    assert (x.grad.cpu() == 2).all()


# -- the original serves --------------------------------------------------------------------------------------------


@both
def test_a_launch_that_fails_is_served_by_the_original(
    inner: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """In Python; test_fast_path.py has the same for C++."""
    monkeypatch.setenv("ASCENDOPT_FAST_PATH", "0")
    taken = request.getfixturevalue("taken")
    function = compiled(doubled, inner)
    x, y = tensors()
    want = ((x + y) * 2).cpu()
    function(x, y)

    (launcher,) = taken.tuned[0].table.choices.values()
    assert isinstance(launcher, Launcher)

    def fail(args: Any, kwargs: Any) -> Any:
        raise DeviceError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr(launcher, "go", fail)
        for _ in range(dispatch.MAX_FAILURES):
            assert torch.equal(function(x, y).cpu(), want)
    assert torch.equal(function(x, y).cpu(), want)  # quarantined
    quarantined = f"quarantined after {dispatch.MAX_FAILURES} failures: the device is gone"
    assert status().operators[NAME].fallbacks == {"the device is gone": dispatch.MAX_FAILURES, quarantined: 1}
    assert len(_calls) == dispatch.MAX_FAILURES + 2


@both
@pytest.mark.parametrize("honest", [0, 2])
def test_a_fake_kernel_that_lies(inner: str, honest: int, taken: Any, graphs: list[Any]) -> None:
    """From the first call on, or from the third, when the pair is bound already."""
    function = compiled(lambda x, y: add(turned(x) * 1, y), inner)
    x, y = tensors()
    for _ in range(honest):
        assert torch.equal(function(x, y).cpu(), (x + y).cpu())
    _turns.append(True)
    _calls.clear()
    for calls in (1, 2):
        assert torch.equal(function(x, y).cpu(), (x + y).cpu())
        assert len(_calls) == calls
    assert rows(graphs) == [("bound", "")]
    assert status().operators[NAME].fallbacks == {"a tensor is not contiguous.": 2}


def test_switched_off_while_a_graph_is_bound(taken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function = compiled(doubled, "eager")
    x, y = tensors()
    for _ in range(2):
        function(x, y)
    assert len(_calls) == 1
    with aot.policy("off"):
        function(x, y)
    monkeypatch.setenv("ASCENDOPT_DISABLE", "1")
    function(x, y)
    monkeypatch.delenv("ASCENDOPT_DISABLE")
    aot.rollback()
    function(x, y)
    assert (len(_calls), counts()) == (4, (2, 0, 0, 0))
    aot.restore()
    function(x, y)  # looked up anew, and compared
    assert (len(_calls), counts()) == (5, (3, 0, 0, 0))
    with monkeypatch.context() as patch:  # and bound again
        patch.setattr(taken.tuned[0], "adopt", lambda *args: pytest.fail("dispatched"))
        function(x, y)
    assert (len(_calls), counts()) == (5, (4, 0, 0, 0))
    with recording() as recorder:
        function(x, y)
    assert [item.count for item in recorder.calls.values()] == [1]
    taken.undo()
    function(x, y)
    assert (len(_calls), counts()) == (7, (4, 0, 0, 0))


# -- graph capture --------------------------------------------------------------------------------------------------


def test_during_capture_nothing_is_tuned_and_what_is_bound_launches(
    taken: Any, graphs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The virtual NPU has no aclmdlRICapture*, so torch's own question is answered in its place."""
    x, y = tensors()
    function = compiled(doubled, "eager")
    with monkeypatch.context() as capture:
        capture.setattr(torch.npu, "is_current_stream_capturing", lambda: True)
        capture.setattr(Resolver, "resolve", lambda *args: pytest.fail("looked up during capture"))
        assert torch.equal(function(x, y).cpu(), ((x + y) * 2).cpu())
    assert rows([g for g in graphs if "ascendopt" in g.meta]) == []
    assert status().operators[NAME].captured == {"float16[64,512] float16[64,512]": 1}
    torch.compiler.reset()
    function = compiled(doubled, "eager")
    function(x, y)
    before = len(_calls)
    with monkeypatch.context() as capture:
        capture.setattr(torch.npu, "is_current_stream_capturing", lambda: True)
        function(x, y)
    assert len(_calls) == before
    assert counts()[0] == 2


# -- inner backends -------------------------------------------------------------------------------------------------


def test_another_inner_backend_gets_the_graph_as_it_is(taken: Any, graphs: list[Any]) -> None:
    x, y = tensors()
    function = compiled(doubled, lambda graph, inputs: graph.forward)
    assert torch.equal(function(x, y).cpu(), ((x + y) * 2).cpu())
    assert rows(graphs) == [("dispatched", "the inner backend traces the graph")]
    assert counts() == (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"inner": "npu"}, "inner backend 'npu' of ascendopt can't be loaded.*torchair"),
        ({"inner": "no_such"}, "inner backend 'no_such' of ascendopt can't be loaded"),
        ({"iner": "eager"}, "no option 'iner'"),
    ],
)
def test_an_inner_backend_that_is_not_there(options: dict[str, str], reason: str, taken: Any) -> None:
    function = torch.compile(doubled, backend="ascendopt", options=options)
    with pytest.raises(Exception, match=reason):
        function(*tensors())


# -- a model --------------------------------------------------------------------------------------------------------


ON_VECTORS = {"add": 2, "rms_norm": 3, "rope": 2, "softmax": 1, "swiglu": 1}
ON_CUBES = {"add": 2, "flash_attention": 1, "matmul": 5, "rms_norm": 3, "rope": 2, "swiglu": 1}


@pytest.mark.parametrize(("half", "expected_calls"), [(False, ON_VECTORS), (True, ON_CUBES)], ids=["float", "cubes"])
def test_the_decoder(
    half: bool, expected_calls: dict[str, int], graphs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """examples/05_warmup.py's: tuned while it is compiled, bound, and the same answers under both inner backends."""
    path = Path(__file__).parents[2] / "examples/05_warmup.py"
    spec = importlib.util.spec_from_file_location("decoder_example", path)
    assert spec is not None
    assert spec.loader is not None
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.LAYERS = 1
    monkeypatch.setenv("ASCENDOPT_BUDGET", "2")
    torch.manual_seed(0)
    model, near = example.Decoder().npu().eval(), 1e-3
    if half:
        model, near = model.half(), 1e-2
    nodes, tuned_cases = sum(expected_calls.values()), 10 if half else 5  # matmuls have five shapes
    with torch.no_grad():
        expected = model(*example.inputs(0, 8)).cpu()
        with aot.install():
            for inner in ("eager", "aot_eager"):
                torch.compiler.reset()
                graphs.clear()
                function = compiled(model, inner, dynamic=False)
                with aot.policy("blocking"):
                    torch.testing.assert_close(function(*example.inputs(0, 8)).cpu(), expected, rtol=near, atol=near)
                assert len(rows(graphs)) == nodes
                assert {served for served, _ in rows(graphs)} <= {"bound", "original"}
                assert len(bound_nodes(graphs[0])) == nodes
                before = {n: (r.hits + r.kept, r.misses, r.tuned) for n, r in status().operators.items()}
                torch.testing.assert_close(function(*example.inputs(0, 8)).cpu(), expected, rtol=near, atol=near)
                after = {n: (r.hits + r.kept, r.misses, r.tuned) for n, r in status().operators.items()}
                calls = {n.removeprefix("ascendopt::"): after[n][0] - before[n][0] for n in after if after[n][0]}
                assert calls == expected_calls
                assert sum(tuned for _, _, tuned in after.values()) == tuned_cases
                assert not any(misses for _, misses, _ in after.values())
