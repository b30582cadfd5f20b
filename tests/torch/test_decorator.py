"""``@aot.tune``: hits, misses, tuning, and every way back to the original, on the real torch_npu."""

from __future__ import annotations

import dataclasses
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.build import host  # noqa: E402
from ascendopt_tune.build.toolkit import find  # noqa: E402
from ascendopt_tune.errors import DeviceError, SettingsError  # noqa: E402
from ascendopt_tune.sources.registry import load_operator  # noqa: E402
from ascendopt_tune.store.cache import Cache, Entry  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import dispatch  # noqa: E402
from ascendopt_tune.torch_ops.serving.decorator import tune  # noqa: E402
from ascendopt_tune.torch_ops.serving.guard import Probation  # noqa: E402
from ascendopt_tune.torch_ops.serving.launcher import Launcher  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402
from ascendopt_tune.torch_ops.serving.status import stats, status  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

SHAPE = (64, 512)


@pytest.fixture(scope="module", autouse=True)
def aten() -> None:
    """Originals are written with torch's own operators, which the virtual NPU leaves to the CPU."""
    fallback.take_over()  # and stays: other modules share the process


@pytest.fixture(autouse=True)
def no_leftovers(monkeypatch: pytest.MonkeyPatch) -> None:
    registered.clear()
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_S", 0.0)


def tensors(shape: tuple[int, ...] = SHAPE, seed: int = 0, dtype: Any = torch.float16) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator).to(dtype).npu() for _ in range(2))


class Counted:
    """An original that counts its calls."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.calls = 0
        self.function = function or (lambda x, y: x + y)

    def __call__(self, x: Any, y: Any) -> Any:
        self.calls += 1
        return self.function(x, y)


def decorated(original: Any, source: Any = "registry/add", **options: Any) -> Any:
    return tune(source, **options)(original)


def counts(source: str = "registry/add") -> tuple[int, int, int, int]:
    row = stats()[source]
    return row["hits"], row["misses"], row["kept"], sum(row["fallbacks"].values())


def the_reason(source: str = "registry/add") -> str:
    (reason,) = stats()[source]["fallbacks"]
    return str(reason)


# -- hits and misses -----


def test_a_miss_serves_the_original(own_cache: Path) -> None:
    original = Counted()
    add = decorated(original)
    x, y = tensors()
    for calls in (1, 2):
        assert torch.equal(add(x, y).cpu(), (x + y).cpu())
        assert (original.calls, counts()) == (calls, (0, calls, 0, 0))
    assert not (own_cache / "entries").exists()


def test_a_hit_serves_the_tuned_pair(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first call of a shape the original is not called, nothing is compiled and no tiling function runs."""
    original = Counted()
    add = decorated(original)
    x, y = tensors()
    assert torch.equal(add(x, y).cpu(), (x + y).cpu())
    assert original.calls == 1  # both served, and agreed

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("work on the host during a hit")

    monkeypatch.setattr(subprocess, "Popen", never)
    monkeypatch.setattr(host.HostProgram, "tiling", never)
    monkeypatch.setattr(Cache, "find", never)
    for seed in range(1, 4):
        x, y = tensors(seed=seed)
        assert torch.equal(add(x, y=y).cpu() if seed == 0 else add(x, y).cpu(), (x + y).cpu())
    assert (original.calls, counts()) == (1, (4, 0, 0, 0))


def test_arguments_by_name_and_default_are_other_keys_of_the_same_case(layer: Path) -> None:
    original = Counted()
    add = decorated(original)
    x, y = tensors()
    for call in (lambda: add(x, y), lambda: add(x, y=y), lambda: add(y=y, x=x)):
        for _ in range(2):
            assert torch.equal(call().cpu(), (x + y).cpu())
    assert (original.calls, counts()) == (3, (6, 0, 0, 0))


def test_another_shape_dtype_or_operator_misses(layer: Path) -> None:
    add = decorated(Counted())
    add(*tensors((64, 513)))
    add(*tensors(dtype=torch.float32))
    assert counts() == (0, 2, 0, 0)


def test_blocking_tunes_and_a_new_process_hits(own_cache: Path) -> None:
    original = Counted()
    add = decorated(original, policy="blocking", budget=3, seed=1)
    x, y = tensors((8, 2048))
    for _ in range(2):
        assert torch.equal(add(x, y).cpu(), (x + y).cpu())
    row = stats()["registry/add"]
    assert (row["tuned"], row["misses"], row["fallbacks"]) == (1, 0, {})
    assert row["hits"] + row["kept"] == 2
    (summary,) = Cache().items("add")
    script = (
        "import json, torch, torch_npu\n"
        "from ascendopt_tune.torch_ops.device import fallback\n"
        "from ascendopt_tune import stats, tune\n"
        "fallback.take_over()\n"
        "@tune('add')\n"
        "def add(x, y):\n"
        "    return x + y\n"
        "x = torch.ones(8, 2048, dtype=torch.float16).npu()\n"
        "assert (add(x, x).cpu() == 2).all()\n"
        "print(json.dumps(stats()['add']))\n"
    )
    code = "import ascendopt_tune\nfrom ascendopt_tune.torch_ops.device.activate import activate\nactivate()\n" + script
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    other = json.loads(done.stdout)
    assert (other["hits"] + other["kept"], other["misses"], other["tuned"], other["fallbacks"]) == (1, 0, 0, {})
    assert summary.key.target == "virtual"


def test_a_result_that_arrives_later_is_found(tuned_add: Path, own_cache: Path) -> None:
    add = decorated(Counted())
    x, y = tensors()
    add(x, y)
    entry = the_entry(tuned_add)
    Cache().put(entry)
    add(x, y)
    add(x, y)
    assert counts() == (2, 1, 0, 0)


def the_entry(root: Path) -> Entry:
    cache = Cache(root, layers=())
    (summary,) = cache.items("add")
    entry = cache.get(summary.key)
    assert entry is not None
    return entry


def test_the_users_own_pair_may_be_the_best(tuned_add: Path) -> None:
    operator = load_operator("add")
    Cache().put(dataclasses.replace(the_entry(tuned_add), pair=operator.baseline))
    original = Counted()
    add = decorated(original)
    add(*tensors())
    add(*tensors())
    assert (original.calls, counts()) == (2, (0, 0, 2, 0))


def test_tensor_lists() -> None:
    foreach = tune("foreach_mul_scalar", policy="blocking", budget=2)(
        lambda x, scalar: [t * scalar.to(t.dtype) for t in x]
    )
    assert [p.name for p in load_signature("foreach_mul_scalar").inputs] == ["x", "scalar"]
    xs = [torch.full(shape, 3.0, dtype=torch.float32).npu() for shape in ((40, 64), (7,))]
    scalar = torch.tensor([2.0]).npu()
    for _ in range(3):
        ys = foreach(xs, scalar)
        assert isinstance(ys, list)
        assert [tuple(y.shape) for y in ys] == [(40, 64), (7,)]
        assert all((y.cpu() == 6.0).all() for y in ys)
    assert stats()["foreach_mul_scalar"]["fallbacks"] == {}


def load_signature(name: str) -> Any:
    from ascendopt_tune.evaluate.evaluator import Evaluator

    with Evaluator(find("virtual"), workers=1) as evaluator:
        return evaluator.describe(load_operator(name)).signature


# -- the original serves -----


def test_kill_switch_and_off(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Counted()
    add = decorated(original)
    x, y = tensors()
    add(x, y)
    add(x, y)
    assert original.calls == 1
    monkeypatch.setenv("ASCENDOPT_DISABLE", "1")
    add(x, y)
    assert (original.calls, counts()) == (2, (2, 0, 0, 0))
    monkeypatch.setenv("ASCENDOPT_DISABLE", "0")
    add(x, y)
    assert (original.calls, counts()) == (2, (3, 0, 0, 0))
    off = Counted()
    decorated(off, policy="off")(x, y)
    assert off.calls == 1


def test_cpu_tensors_are_nobodys_business(layer: Path) -> None:
    x = torch.ones(SHAPE, dtype=torch.float16)
    assert torch.equal(decorated(Counted())(x, x), x + x)
    assert counts() == (0, 0, 0, 0)


def test_gradients_are_the_originals(layer: Path) -> None:
    add = decorated(Counted())
    x, y = tensors()
    x.requires_grad_()
    add(x, y).sum().backward()
    assert (x.grad.cpu() == 1).all()
    assert "gradient" in the_reason()
    with torch.no_grad():
        add(x, y)
    assert counts() == (1, 0, 0, 1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda x: (x.t().contiguous().t(), x), "not contiguous"),
        (lambda x: (x, x.cpu()), "different devices"),
        (lambda x: (torch.cat([x.view(-1), x.view(-1)])[1 : 1 + x.numel()].view(SHAPE), x), "multiple of 32 bytes"),
        (lambda x: (x, 2.0), "must be a tensor, not float"),
        (lambda x: (x, np_like()), "an argument is a complex"),
    ],
)
def test_what_a_launcher_cannot_take(layer: Path, make: Callable[[Any], Any], reason: str) -> None:
    original = Counted()
    add = decorated(original)
    add(*tensors())
    original.function = lambda x, y: x
    x, y = make(tensors()[0])
    before = original.calls
    assert add(x, y) is x
    assert original.calls == before + 1
    assert any(reason in r for r in stats()["registry/add"]["fallbacks"])


def np_like() -> complex:
    return 1j


@pytest.mark.parametrize(
    ("original", "reason"),
    [
        (lambda x, y: (x + y, x), "Name the outputs the function returns"),
        (lambda x, y: (x + y).float(), "Name the outputs"),
        (lambda x, y: None, "returns a NoneType"),
        (lambda x, y: x.add_(y), "changes its arguments"),
    ],
)
def test_an_original_the_operator_does_not_match(layer: Path, original: Any, reason: str) -> None:
    counted = Counted(original)
    add = decorated(counted)
    x, y = tensors()
    want = original(x.clone(), y)
    got = add(x, y)
    assert (got is None and want is None) or type(got) is type(want)
    add(x, y)
    assert counted.calls == 2
    assert counts() == (0, 0, 0, 2)
    assert reason in the_reason()


def test_parameters_are_matched_by_name(layer: Path) -> None:
    x, y = tensors()
    assert torch.equal(tune("registry/add")(lambda x, other: x + other)(x, y).cpu(), (x + y).cpu())
    assert "'other' is neither an input nor an attribute of Add(" in the_reason() or "needs y" in the_reason()
    renamed = tune("registry/add", names={"other": "y"})(lambda x, other: x + other)
    assert torch.equal(renamed(x, other=y).cpu(), (x + y).cpu())
    assert counts() == (1, 0, 0, 1)


def test_a_parameter_the_operator_does_not_have_may_be_none(layer: Path) -> None:
    x, y = tensors()

    def original(x: Any, y: Any, bias: Any = None) -> Any:
        return x + y if bias is None else x + y + bias

    add = tune("registry/add")(original)
    assert torch.equal(add(x, y).cpu(), (x + y).cpu())
    assert counts() == (1, 0, 0, 0)
    assert torch.equal(add(x, y, bias=y).cpu(), (x + y + y).cpu())
    assert counts() == (1, 0, 0, 1)
    assert "'bias' is neither an input nor an attribute of Add(" in the_reason()


def test_an_error_of_the_original_is_the_callers(layer: Path) -> None:
    def broken(x: Any, y: Any) -> Any:
        raise ZeroDivisionError("the user's own")

    for policy in ("lookup", "off"):
        with pytest.raises(ZeroDivisionError, match="the user's own"):
            tune("registry/add", policy=policy)(broken)(*tensors())


def test_an_unknown_operator_or_policy(caplog: pytest.LogCaptureFixture) -> None:
    original = Counted()
    add = decorated(original, source="no_such_operator")
    with caplog.at_level(logging.WARNING, "ascendopt_tune"):
        add(*tensors())
        add(*tensors())
    assert original.calls == 2
    assert "unknown operator 'no_such_operator'" in the_reason("no_such_operator")
    assert len(caplog.records) == 1
    with pytest.raises(SettingsError, match="off, lookup, lazy, blocking"):
        tune("add", policy="always")


def test_a_failed_tuning_run_serves_the_original() -> None:
    original = Counted(lambda x, y: x)
    add = decorated(original, policy="blocking", budget=2)
    x = torch.ones(8, 8, dtype=torch.float64).npu()  # add has no such dtype
    assert add(x, x) is x
    assert add(x, x) is x
    assert (original.calls, counts()) == (2, (0, 0, 0, 2))
    assert "float64" in the_reason()


def test_a_launch_that_fails_is_served_by_the_original_and_dropped(
    layer: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Counted()
    add = decorated(original)
    x, y = tensors()
    add(x, y)

    (launcher,) = add.tuned.table.choices.values()
    assert isinstance(launcher, Launcher)

    def fail(args: Any, kwargs: Any) -> Any:
        raise DeviceError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr(launcher, "go", fail)
        for _ in range(dispatch.MAX_FAILURES + 1):
            assert torch.equal(add(x, y).cpu(), (x + y).cpu())
    add(x, y)
    quarantined = f"quarantined after {dispatch.MAX_FAILURES} failures: the device is gone"
    assert stats()["registry/add"]["fallbacks"] == {"the device is gone": dispatch.MAX_FAILURES, quarantined: 2}
    assert original.calls == dispatch.MAX_FAILURES + 3
    add.tuned.forget()  # as a new process: what is quarantined stays so
    add(x, y)
    assert stats()["registry/add"]["fallbacks"][quarantined] == 3
    (remark,) = own_cache.glob("remarks/*.json")
    remark.unlink()
    add.tuned.forget()
    add(x, y)
    add(x, y)
    assert original.calls == dispatch.MAX_FAILURES + 5


def test_a_damaged_binary_is_a_miss(tuned_add: Path, own_cache: Path) -> None:
    Cache().put(the_entry(tuned_add))
    (file,) = own_cache.glob("entries/add/*/kernel.bin")
    file.write_bytes(b"\x7fELF")
    add = decorated(Counted())
    x, y = tensors()
    with pytest.warns(UserWarning, match=r"kernel\.bin is altered"):
        assert torch.equal(add(x, y).cpu(), (x + y).cpu())
    assert counts() == (0, 1, 0, 0)


def test_a_binary_that_does_not_load(tuned_add: Path) -> None:
    Cache().put(dataclasses.replace(the_entry(tuned_add), binary=b"not a binary"))
    add = decorated(Counted())
    x, y = tensors()
    assert torch.equal(add(x, y).cpu(), (x + y).cpu())
    assert counts() == (0, 0, 0, 1)


# -- together with the rest of torch -----


def test_custom_ops_and_operators_of_torch(layer: Path) -> None:
    @torch.library.custom_op("aot_decorator_test::add", mutates_args=())
    def op(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    x, y = tensors()
    for original in (op, torch.ops.aot_decorator_test.add, torch.ops.aot_decorator_test.add.default):
        add = decorated(original)
        for _ in range(2):
            assert torch.equal(add(x, y).cpu(), (x + y).cpu())
    assert counts() == (6, 0, 0, 0)


def test_a_custom_op_that_mutates(layer: Path) -> None:
    @torch.library.custom_op("aot_decorator_test::add_into", mutates_args=("x",))
    def op(x: torch.Tensor, y: torch.Tensor) -> None:
        x.copy_(x + y)

    x, y = tensors()
    want = (x + y).cpu()
    decorated(op)(x, y)
    assert torch.equal(x.cpu(), want)
    assert counts() == (1, 0, 0, 0)
    x, y = tensors(seed=1)
    want = (x + y).cpu()
    version = x._version
    assert decorated(op)(x, y) is None
    assert torch.equal(x.cpu(), want)
    assert x._version > version


def test_launches_go_to_the_current_stream(layer: Path) -> None:
    """Modelled time passes on the stream that is current, and only there."""
    add = decorated(Counted())
    x, y = tensors()
    add(x, y)
    stream = torch.npu.Stream()
    start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    with torch.npu.stream(stream):
        start.record()
        z = add(x, y)
        end.record()
    stream.synchronize()
    assert start.elapsed_time(end) > 0
    assert torch.equal(z.cpu(), (x + y).cpu())
    assert counts() == (2, 0, 0, 0)


def test_compiled_code_calls_the_tuned_function(layer: Path) -> None:
    add = decorated(lambda x, y: x + y)
    x, y = tensors()
    compiled = torch.compile(lambda a, b: add(a, b) * 2, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x, y).cpu(), ((x + y) * 2).cpu())
    assert counts() == (1, 0, 0, 0)


def test_threads(layer: Path) -> None:
    add = decorated(Counted())
    x, y = tensors()
    want = (x + y).cpu()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: add(x, y).cpu(), range(20)))
    assert all(torch.equal(r, want) for r in results)
    assert counts() == (20, 0, 0, 0)


def test_a_case_enters_service_once(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads compare the case at the same time; what the first has served since is not counted anew, or lost."""
    add = decorated(Counted())
    x, y = tensors()
    entered: list[Any] = []
    enter = dispatch.TunedOp.enter_service
    both = threading.Barrier(2)

    def slowly(self: Any, original: Any, *args: Any) -> Any:
        both.wait(timeout=600)  # each has found the case under comparison before either leaves it
        return call(self, original, *args)

    def once(self: Any, *args: Any) -> None:
        entered.append(args[0])
        enter(self, *args)

    call = Probation.call
    monkeypatch.setattr(Probation, "call", slowly)
    monkeypatch.setattr(dispatch.TunedOp, "enter_service", once)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: add(x, y).cpu(), range(2)))
    assert len(entered) == 1
    assert counts() == (2, 0, 0, 0)


def test_the_wrapper_looks_like_the_function(layer: Path) -> None:
    @tune("registry/add")
    def my_add(x: Any, y: Any) -> Any:
        """Adds."""
        return x + y

    assert (my_add.__name__, my_add.__doc__) == ("my_add", "Adds.")
    my_add(*tensors())
    my_add(*tensors((3, 5)))
    assert str(status()).startswith("registry/add: 1 hits, 0 kept, 1 misses, 0 tuned, 0 fallbacks\n")
