"""Operators taken over that others registered: in C++, with torch.library.Library, with custom_op; now or later."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune import paths  # noqa: E402
from ascendopt_tune.build.toolkit import host_compiler  # noqa: E402
from ascendopt_tune.errors import OperatorError, SettingsError  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import dispatch, intercept  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import interceptions, registered  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

SHAPE = (64, 512)  # the tuned case of conftest.tuned_add


@pytest.fixture(scope="module", autouse=True)
def aten() -> None:
    fallback.take_over()


@pytest.fixture(autouse=True, params=["1", "0"], ids=["fast", "python"])
def no_leftovers(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test with hits served in C++, and with hits served in Python."""
    monkeypatch.setenv("ASCENDOPT_FAST_PATH", request.param)
    if request.param == "1":
        request.getfixturevalue("fast_library")
    registered.clear()
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_S", 0.0)
    yield
    assert interceptions == []
    assert intercept._hooks == {}
    assert intercept._installed == []
    assert intercept._unpatch == []


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled third party's library; not loaded yet."""
    file = tmp_path_factory.mktemp("extension") / "third_party.so"
    include = Path(torch.__file__).parent / "include"
    command = [host_compiler(), "-std=c++17", "-O0", "-fPIC", "-shared", "-w", f"-I{include}"]
    command += [
        f"-I{include}/torch/csrc/api/include",
        f"-I{sysconfig.get_path('include')}",
        str(Path(__file__).parent / "extension.cpp"),
        f"-L{include.parent / 'lib'}",
        "-ltorch_cpu",
        "-lc10",
        "-o",
        str(file),
    ]
    subprocess.run(command, check=True)
    return file


@pytest.fixture(scope="session")
def third_party(extension: Path) -> Any:
    torch.ops.load_library(str(extension))
    return torch.ops.aot_third_party


@pytest.fixture
def library() -> Iterator[Any]:
    """A namespace of Python's with the forms an operator may have; calls of the originals are counted."""
    lib = torch.library.Library("aot_python", "DEF")
    calls: list[str] = []

    def define(schema: str, name: str, function: Callable[..., Any]) -> None:
        lib.define(schema)

        def counted(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return function(*args, **kwargs)

        lib.impl(name, counted, "PrivateUse1")

    define("add(Tensor x, Tensor y) -> Tensor", "add", torch.add)
    define("add.out(Tensor x, Tensor y, *, Tensor(a!) out) -> Tensor(a!)", "add.out", torch.add)
    define("add_(Tensor(a!) x, Tensor y) -> Tensor(a!)", "add_", lambda x, y: x.add_(y))
    define("pair(Tensor x, Tensor y, Tensor? z=None, float scale=1.0) -> (Tensor, Tensor)", "pair",
           lambda x, y, z=None, scale=1.0: (x + y, x - y))  # fmt: skip
    define("scale(Tensor[] x, Tensor scalar) -> Tensor[]", "scale", lambda x, scalar: [t * scalar for t in x])
    lib.calls = calls
    yield lib
    lib._destroy()


def tensors(seed: int = 0, shape: tuple[int, ...] = SHAPE) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator).half().npu() for _ in range(2))


def counts(name: str) -> tuple[int, int, int]:
    row = aot.stats()[name]
    return row["hits"], row["misses"], sum(row["fallbacks"].values())


def check_forms(ops: Any, prefix: str) -> None:
    """add, add.out and add_ of a namespace: three calls each, the last two served by the tuned pair alone."""
    for seed in range(3):
        x, y = tensors(seed)
        want = (x + y).cpu()
        assert torch.equal(ops.add(x, y).cpu(), want)
        out = torch.empty_like(x)
        version = out._version
        assert ops.add(x, y, out=out) is out
        assert out._version > version
        assert torch.equal(out.cpu(), want)
        version = x._version
        assert ops.add_(x, y) is x
        assert x._version > version
        assert torch.equal(x.cpu(), want)
    assert [counts(f"{prefix}::{name}") for name in ("add", "add.out", "add_")] == [(3, 0, 0)] * 3, aot.status()


def test_an_extension_in_cpp(third_party: Any, layer: Path) -> None:
    with (
        aot.intercept("aot_third_party::add", source="registry/add") as taken,
        aot.intercept("aot_third_party::add_", source="registry/add"),
    ):
        assert taken.overloads == ("aot_third_party::add", "aot_third_party::add.out")
        check_forms(third_party, "aot_third_party")
        x, y = tensors()
        x.requires_grad_()
        z = third_party.add(x, y)
        z.sum().backward()
        assert (x.grad.cpu() == 2).all()  # the extension's own formula
        assert counts("aot_third_party::add") == (4, 0, 0)  # and yet the forward pass was the tuned pair's
    x, y = tensors()
    assert torch.equal(third_party.add(x, y).cpu(), (x + y).cpu())
    assert counts("aot_third_party::add") == (4, 0, 0)


def test_a_library_of_pythons(library: Any, layer: Path) -> None:
    with aot.intercept("aot_python::add", "add"), aot.intercept("aot_python::add_", "add"):
        check_forms(torch.ops.aot_python, "aot_python")
        assert library.calls == ["add", "add.out", "add_"]  # one comparison each


def test_a_gradient_without_a_formula_is_left_to_the_original(library: Any, layer: Path) -> None:
    """The original's body is differentiated; a launch would cut the graph."""
    with aot.intercept("aot_python::add", "add"):
        x, y = tensors()
        x.requires_grad_()
        for _ in range(2):
            torch.ops.aot_python.add(x, y).sum().backward()
        assert (x.grad.cpu() == 2).all()
        assert counts("aot_python::add") == (0, 0, 2)
        with torch.no_grad():
            torch.ops.aot_python.add(x, y)
        assert counts("aot_python::add") == (1, 0, 2)


def test_custom_op(layer: Path) -> None:
    calls = []

    @torch.library.custom_op("aot_custom::add", mutates_args=())
    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + y

    @torch.library.custom_op("aot_custom::add_into", mutates_args=("out",), device_types="npu")
    def add_into(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
        calls.append(2)
        out.copy_(x + y)

    add.register_fake(lambda x, y: torch.empty_like(x))
    add.register_autograd(lambda ctx, grad: (grad * 3, None))
    with aot.intercept("aot_custom::add", "add"), aot.intercept("aot_custom::add_into", "add"):
        for seed in range(3):
            x, y = tensors(seed)
            out = torch.empty_like(x)
            add_into(x, y, out)
            x.requires_grad_()
            z = add(x, y)
            assert torch.equal(z.detach().cpu(), out.cpu())
            z.sum().backward()
            assert (x.grad.cpu() == 3).all()
        assert sorted(calls) == [1, 2]
        assert counts("aot_custom::add") == counts("aot_custom::add_into") == (3, 0, 0)
        x, y = tensors()
        on_npu = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")  # the fourth knows no npu
        torch.library.opcheck(torch.ops.aot_custom.add, (x.requires_grad_(), y), test_utils=on_npu)
        torch.library.opcheck(torch.ops.aot_custom.add, (x.cpu(), y.cpu()))
        assert counts("aot_custom::add")[0] > 3


def test_several_outputs_optional_arguments_and_scalars(library: Any, layer: Path) -> None:
    """What binds by name and what doesn't: the original serves what isn't the operator's."""
    op = torch.ops.aot_python.pair
    with aot.intercept("aot_python::pair", "add"):
        x, y = tensors()
        for args in ((x, y), (x, y, x), (x, y, None, 2.0)):
            total, difference = op(*args)
            assert torch.equal(total.cpu(), (x + y).cpu())
            assert torch.equal(difference.cpu(), (x - y).cpu())
        assert counts("aot_python::pair") == (0, 0, 3)
        assert all(
            "'scale' is neither" in r or "'z' is neither" in r for r in aot.stats()["aot_python::pair"]["fallbacks"]
        )


def test_tensor_lists(library: Any) -> None:
    with aot.intercept("aot_python::scale", "foreach_mul_scalar", policy="blocking", budget=1):
        xs = [torch.full(shape, 3.0).npu() for shape in ((40, 64), (7,))]
        for _ in range(2):
            ys = torch.ops.aot_python.scale(xs, torch.tensor([2.0]).npu())
            assert isinstance(ys, list)
            assert all((y.cpu() == 6.0).all() for y in ys)
        row = aot.stats()["aot_python::scale"]
        assert row["hits"] + row["kept"] == 2


def test_a_tensor_that_is_read_and_written_is_the_originals(library: Any, layer: Path) -> None:
    with aot.intercept("aot_python::add", "add"):
        op = torch.ops.aot_python.add
        op(*tensors(), out=torch.empty(SHAPE, dtype=torch.float16, device="npu"))
        for out_of in (lambda x: x, lambda x: torch.empty(SHAPE, dtype=torch.float32, device="npu")):
            x, y = tensors()
            want = (x + y).cpu()
            out = out_of(x)
            assert op(x, y, out=out) is out
            assert torch.equal(out.cpu().half(), want)
        reasons = " ".join(aot.stats()["aot_python::add.out"]["fallbacks"])
        assert "shares memory" in reasons
        assert "the original returns" in reasons or "to write into is" in reasons


# -- undo -----


def test_undo_in_any_order(library: Any, layer: Path) -> None:
    x, y = tensors()
    op = torch.ops.aot_python.add
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        taken = [
            aot.intercept("aot_python::add", "add"),
            aot.intercept("aot_python::add", "add"),
            aot.intercept("aot_python::add", "no_such_operator"),
        ]
        for i in order:
            taken[i].undo()
            taken[i].undo()
            assert torch.equal(op(x, y).cpu(), (x + y).cpu())
        before = len(library.calls)
        op(x, y)
        assert len(library.calls) == before + 1


def test_an_override_on_top_of_ours_stays_alive(library: Any, layer: Path) -> None:
    taken = aot.intercept("aot_python::add", "add")
    below = torch.library.get_kernel("aot_python::add", "PrivateUse1")
    theirs = torch.library.Library("aot_python", "IMPL")
    theirs.impl("add", lambda ks, x, y: below.call_boxed(ks, x, y), "PrivateUse1", with_keyset=True)
    x, y = tensors()
    op = torch.ops.aot_python.add
    op(x, y)
    taken.undo()
    for _ in range(2):
        assert torch.equal(op(x, y).cpu(), (x + y).cpu())
    theirs._destroy()
    assert torch.equal(op(x, y).cpu(), (x + y).cpu())


def test_an_original_that_goes_away_ends_the_interception(library: Any, layer: Path) -> None:
    other = torch.library.Library("aot_python", "IMPL")
    other.impl("add", lambda x, y: x * y, "PrivateUse1")
    x, y = tensors(shape=(3, 5))
    with aot.intercept("aot_python::add", "add"):
        assert torch.equal(torch.ops.aot_python.add(x, y).cpu(), (x * y).cpu())
        other._destroy()
        for _ in range(2):
            assert torch.equal(torch.ops.aot_python.add(x, y).cpu(), (x + y).cpu())
    assert torch.equal(torch.ops.aot_python.add(x, y).cpu(), (x + y).cpu())


def test_rollback_and_restore(library: Any, layer: Path) -> None:
    op = torch.ops.aot_python.add
    x, y = tensors()
    tuned = aot.tune("add")(lambda x, y: x + y)
    with aot.intercept("aot_python::add", "add"):
        for _ in range(2):
            op(x, y)
            tuned(x, y)
        assert library.calls == ["add"]
        assert aot.rollback() == 3  # add.out is one
        op(x, y)
        tuned(x, y)
        assert library.calls == ["add", "add"]
        assert counts("aot_python::add") == counts("add") == (2, 0, 0)
        aot.restore()
        for _ in range(2):
            op(x, y)
            tuned(x, y)
        assert counts("aot_python::add") == counts("add") == (4, 0, 0)
        assert len(library.calls) == 3


# -- what can't be taken over -----


def test_errors(library: Any) -> None:
    with pytest.raises(OperatorError, match="not registered for device npu"):
        aot.intercept("aot_python::no_such", "add")
    library.define("nothing(Tensor x) -> Tensor")
    with pytest.raises(OperatorError, match="not registered for device npu"):
        aot.intercept("aot_python::nothing", "add")
    with pytest.raises(OperatorError, match="no registry operator stands for aot_python::add"):
        aot.intercept("aot_python::add")
    with pytest.raises(SettingsError):
        aot.intercept("aot_python::add", "add", policy="always")


def test_a_composite_operator_keeps_its_formula(library: Any) -> None:
    library.define("composite(Tensor x, Tensor y) -> Tensor")
    library.impl("composite", torch.add, "CompositeImplicitAutograd")
    with pytest.raises(OperatorError, match="not registered for device npu"):
        aot.intercept("aot_python::composite", "add")


# -- registrations that come later -----


def source_for(tmp_path: Path, torch_op: str) -> Path:
    """A copy of registry/add that stands for another operator."""
    folder = tmp_path / "op"
    shutil.copytree(paths.shipped("registry") / "add", folder)
    text = (folder / "op.toml").read_text().replace('"ascendopt::add"', f'"{torch_op}"')
    (folder / "op.toml").write_text(text)
    return folder


def test_install_finds_what_is_there_and_what_comes(library: Any, layer: Path, tmp_path: Path) -> None:
    x, y = tensors()
    with aot.install(source_for(tmp_path, "aot_python::add")) as installed:
        assert set(installed.overloads) >= {"aot_python::add", "aot_python::add.out"}
        for _ in range(2):
            torch.ops.aot_python.add(x, y)
        assert library.calls == ["add"]
        again = torch.library.Library("aot_python", "IMPL")  # registered anew: that is the original then
        again.impl("add", lambda x, y: x - y, "PrivateUse1")
        assert torch.equal(torch.ops.aot_python.add(x, y).cpu(), (x - y).cpu())
        again._destroy()
        assert torch.equal(torch.ops.aot_python.add(x, y).cpu(), (x + y).cpu())
    assert torch.equal(torch.ops.aot_python.add(x, y).cpu(), (x + y).cpu())


def in_child(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_install_serves_registry_operators_by_name(layer: Path) -> None:
    """In a process of its own: ``aot.registry_ops()`` defines the same operators for good."""
    code = f"""
import ascendopt_tune as aot
import torch
calls = []
installed = aot.install()
lib = torch.library.Library("ascendopt", "FRAGMENT")
lib.define("add(Tensor x, Tensor y) -> Tensor")
lib.impl("add", lambda x, y: calls.append(1) or x + y, "PrivateUse1")
assert installed.overloads == ("ascendopt::add",), installed.overloads
x = torch.ones({SHAPE}, dtype=torch.float16).npu()
for _ in range(3):
    assert (torch.ops.ascendopt.add(x, x).cpu() == 2).all()
row = aot.stats()["ascendopt::add"]
assert (len(calls), row["hits"], row["misses"], row["fallbacks"]) == (1, 3, 0, {{}}), (calls, row)
"""
    in_child(code)


def test_install_sees_custom_ops(layer: Path, tmp_path: Path) -> None:
    name = f"aot_later::add{os.environ['ASCENDOPT_FAST_PATH']}"  # custom_op defines for good
    with aot.install(source_for(tmp_path, name)) as installed:
        before = installed.overloads  # of the registry's operators, if aot.registry_ops() was called

        @torch.library.custom_op(name, mutates_args=())
        def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

        assert set(installed.overloads) - set(before) == {name}
        x, y = tensors()
        for _ in range(2):
            assert torch.equal(add(x, y).cpu(), (x + y).cpu())
        assert counts(name) == (2, 0, 0)


@pytest.mark.parametrize("how", ["load_library", "import"])
def test_install_sees_libraries_that_are_loaded(how: str, extension: Path, layer: Path, tmp_path: Path) -> None:
    """In a process of its own: a C++ library can't be unloaded."""
    load = {
        "load_library": f"torch.ops.load_library({str(extension)!r})",
        "import": f"import sys; sys.path.insert(0, {str(extension.parent)!r}); import third_party",
    }[how]
    code = f"""
import ascendopt_tune as aot
import torch
installed = aot.install({str(source_for(tmp_path, "aot_third_party::add"))!r})
assert installed.overloads == ()
{load}
assert set(installed.overloads) == {{"aot_third_party::add", "aot_third_party::add.out"}}, installed.overloads
x = torch.ones({SHAPE}, dtype=torch.float16).npu()
for _ in range(2):
    assert (torch.ops.aot_third_party.add(x, x).cpu() == 2).all()
assert aot.stats()["aot_third_party::add"]["hits"] == 2, aot.status()
installed.undo()
assert (torch.ops.aot_third_party.add(x, x).cpu() == 2).all()
"""
    in_child(code)
