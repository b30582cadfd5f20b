"""Hits of calls in every form an operator may have, served in C++ and in Python: several outputs, optional inputs, a
workspace, ``out=`` and in-place forms, an operator that works in place.

Two operators of these tests' own are served as they are written: what is tested is how a call becomes a launch.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascendopt_tune as aot  # isort: skip  (before torch, which loads torch_npu)

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.build.toolkit import find  # noqa: E402
from ascendopt_tune.deploy.manifest import read_manifest  # noqa: E402
from ascendopt_tune.deploy.prebuild import resolve  # noqa: E402
from ascendopt_tune.evaluate.evaluator import Evaluator  # noqa: E402
from ascendopt_tune.store.entry import Entry  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import dispatch  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402
from ascendopt_tune.torch_ops.serving.status import status  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

OPERATORS = Path(__file__).parent / "operators"
SHAPE = (8, 64)


@pytest.fixture(scope="session")
def served_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the module's cases, evaluated by whichever test comes first."""
    return tmp_path_factory.mktemp("forms")


@pytest.fixture(params=["cpp", "python"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which path serves."""
    monkeypatch.setenv("ASCENDOPT_FAST_PATH", "1" if request.param == "cpp" else "0")
    if request.param == "cpp":
        request.getfixturevalue("fast_library")
    return str(request.param)


@pytest.fixture
def ops(path: str, served_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The operators, registered in Python and taken over."""
    fallback.take_over()
    registered.clear()
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(served_cache))
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(Entry, "improved", True)  # the pair as written is launched
    lib = torch.library.Library("aot_forms", "DEF")

    def pair(x: Any, y: Any, z: Any = None) -> Any:
        return (x + y if z is None else x + y + z), x - y

    def pair_(x: Any, y: Any, z: Any = None) -> Any:
        total, difference = pair(x, y, z)
        return x.copy_(total), difference

    def accumulate_quietly(x: Any, y: Any) -> None:
        x.add_(y)

    def pair_out(x: Any, y: Any, z: Any = None, *, sum: Any, difference: Any) -> Any:
        return tuple(a.copy_(b) for a, b in zip((sum, difference), pair(x, y, z), strict=True))

    for schema, function in (
        ("pair(Tensor x, Tensor y, Tensor? z=None) -> (Tensor, Tensor)", pair),
        ("pair_(Tensor(a!) x, Tensor y, Tensor? z=None) -> (Tensor(a!), Tensor)", pair_),
        (
            "pair.out(Tensor x, Tensor y, Tensor? z=None, *, Tensor(a!) sum, Tensor(b!) difference)"
            " -> (Tensor(a!), Tensor(b!))",
            pair_out,
        ),
        ("accumulate(Tensor(a!) x, Tensor y) -> Tensor(a!)", lambda x, y: x.add_(y)),
        ("accumulate_quietly(Tensor(a!) x, Tensor y) -> ()", accumulate_quietly),
    ):
        lib.define(schema)
        lib.impl(schema.partition("(")[0], function, "PrivateUse1")
    taken = [
        aot.intercept(f"aot_forms::{name}", OPERATORS / source, policy="blocking", budget=1)
        for name, source in (
            ("pair", "pair"),
            ("pair_", "pair"),
            ("accumulate", "accumulate"),
            ("accumulate_quietly", "accumulate"),
        )
    ]
    yield torch.ops.aot_forms
    for interception in taken:
        interception.undo()
    lib._destroy()


def tensors(seed: int, count: int = 3) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(-50, 50, SHAPE, generator=generator).float().npu() for _ in range(count)]


def same(found: Any, expected: Any) -> None:
    assert torch.equal(found.cpu(), expected.cpu())


def check_served(path: str, name: str, hits: int) -> None:
    """All calls were hits, and all but the first one, which is compared, were served on the path."""
    row = status().operators[f"aot_forms::{name}"]
    assert (row.hits, row.kept, row.misses, row.fallbacks) == (hits, 0, 0, {}), str(status())
    assert row.fast == (row.hits - row.compared if path == "cpp" else 0)


def test_several_outputs_and_an_optional_input(ops: Any, path: str) -> None:
    for seed in range(3):
        x, y, z = tensors(seed)
        for args, kwargs in (((x, y), {}), ((x, y, z), {}), ((x, y, None), {}), ((x, y), {"z": z})):
            result = ops.pair(*args, **kwargs)
            third = (*args, *kwargs.values(), None)[2]
            assert type(result) is tuple
            same(result[0], x + y if third is None else x + y + z)
            same(result[1], x - y)
            assert result[0].data_ptr() != result[1].data_ptr()
    check_served(path, "pair", 12)
    torch.library.opcheck(ops.pair.default, (x, y, z), test_utils=("test_schema",))


def test_a_new_tensor_and_one_that_is_changed(ops: Any, path: str) -> None:
    for seed in range(3):
        x, y, z = tensors(seed)
        total, difference, version = x + y + z, x - y, x._version
        results = ops.pair_(x, y, z)
        assert results[0] is x
        assert x._version > version
        same(x, total)
        same(results[1], difference)
    check_served(path, "pair_", 3)
    torch.library.opcheck(ops.pair_.default, (x, y, z), test_utils=("test_schema",))


def test_several_tensors_to_write_into(ops: Any, path: str) -> None:
    for seed in range(3):
        x, y, z = tensors(seed)
        a, b = torch.full_like(x, 7.0), torch.full_like(x, 7.0)
        versions = a._version, b._version
        results = ops.pair(x, y, z, sum=a, difference=b)
        assert results[0] is a
        assert results[1] is b
        assert a._version > versions[0]
        assert b._version > versions[1]
        same(a, x + y + z)
        same(b, x - y)
    check_served(path, "pair.out", 3)
    total = x + y + x
    ops.pair(x, y, x, sum=x, difference=b)  # the result lies over an input: the original's
    same(x, total)
    row = status().operators["aot_forms::pair.out"]
    assert (row.hits, list(row.fallbacks.values())) == (3, [1])
    assert "shares memory" in next(iter(row.fallbacks))


@pytest.mark.parametrize("name", ["accumulate", "accumulate_quietly"])
def test_an_operator_that_works_in_place(name: str, ops: Any, path: str) -> None:
    op = getattr(ops, name)
    for seed in range(3):
        x, y = tensors(seed, 2)
        expected, version, address = x + y, x._version, x.data_ptr()
        result = op(x, y)
        assert result is (x if name == "accumulate" else None)
        assert (x.data_ptr(), x._version > version) == (address, True)
        same(x, expected)
    check_served(path, name, 3)
    torch.library.opcheck(op.default, (x, y), test_utils=("test_schema",))


def test_a_view_that_ends_inside_a_block_is_the_original_s(ops: Any, path: str) -> None:
    """Pairs may write whole blocks of 32 bytes: what lies behind such a view in its storage is a neighbour's."""
    y = torch.ones(3, 5).npu()
    for _ in range(2):
        ops.accumulate(torch.zeros(3, 5).npu(), y)
    base = torch.zeros(64).npu()
    view = base[:15].view(3, 5)
    ops.accumulate(view, y)
    assert base.tolist() == [1.0] * 15 + [0.0] * 49
    ops.accumulate(base[:16].view(2, 8), torch.ones(2, 8).npu())  # whole blocks
    ops.accumulate(base[:16].view(2, 8), torch.ones(2, 8).npu())
    row = status().operators["aot_forms::accumulate"]
    assert (row.hits, list(row.fallbacks.values())) == (4, [1])
    assert "its storage goes on" in next(iter(row.fallbacks))


def test_streams(ops: Any, path: str) -> None:
    """Every stream has its own area for the system."""
    x, y, _ = tensors(0)
    ops.pair(x, y)
    for _ in range(2):
        with torch.npu.stream(torch.npu.Stream()):
            total, difference = ops.pair(x, y)
            torch.npu.current_stream().synchronize()
        same(total, x + y)
        same(difference, x - y)
    check_served(path, "pair", 3)


def test_captured_calls_launch_and_untuned_ones_are_the_original_s(
    ops: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, _ = tensors(0)
    ops.pair(x, y)
    monkeypatch.setattr(torch.npu, "is_current_stream_capturing", lambda: True)
    for _ in range(2):
        same(ops.pair(x, y)[0], x + y)
    check_served(path, "pair", 3)
    small = [t[:4] for t in (x, y)]
    same(ops.pair(*small)[1], small[0] - small[1])
    assert list(status().operators["aot_forms::pair"].captured.values()) == [1]


def test_graphs_launch_each_form(ops: Any, path: str) -> None:
    """Bound nodes: with several outputs, an optional input as a keyword, one that is left out, and written tensors."""

    def model(x: Any, y: Any, z: Any, out: Any) -> Any:
        total, difference = ops.pair(x, y)
        again, _ = ops.pair(total, difference, z=z)
        ops.pair(again, y, sum=out, difference=total)
        return total, again, out

    torch.library.register_fake("aot_forms::pair", lambda x, y, z=None: (torch.empty_like(x), torch.empty_like(x)))
    torch.library.register_fake("aot_forms::pair.out", lambda x, y, z=None, *, sum, difference: (sum, difference))
    torch.compiler.reset()
    compiled = torch.compile(model, backend="ascendopt", fullgraph=True)
    for seed in range(3):
        x, y, z = tensors(seed)
        total, again, out = compiled(x, y, z, torch.empty_like(x))
        same(again, (x + y) + (x - y) + z)
        same(out, again + y)
        same(total, again - y)
    rows = status().operators
    assert [(rows[f"aot_forms::{n}"].hits, rows[f"aot_forms::{n}"].compared) for n in ("pair", "pair.out")] == [
        (6, 2),
        (3, 1),
    ]
    if path == "cpp":
        assert (rows["aot_forms::pair"].fast, rows["aot_forms::pair.out"].fast) == (4, 2)


@pytest.mark.parametrize("path", ["python"], indirect=True)
def test_recorded_buffers_are_no_inputs(ops: Any, tmp_path: Path) -> None:
    """What a call only writes isn't an input of the case that is prebuilt; what it also reads is one."""

    def model(x: Any, y: Any) -> None:
        ops.pair(x, y, sum=torch.empty_like(x), difference=torch.empty_like(x))
        ops.accumulate(x, y)

    assert aot.record(model, tuple(tensors(0, 2)), tmp_path / "calls.json") == 2
    for name in ("pair", "accumulate"):
        shutil.copytree(OPERATORS / name, tmp_path / name)
    (tmp_path / "manifest.toml").write_text('recorded = ["calls.json"]\n')
    with Evaluator(find("virtual"), workers=1) as evaluator:
        resolved = [resolve(wish, evaluator) for wish in read_manifest(tmp_path / "manifest.toml")]
    cases = {operator.name: case for operator, case in resolved}
    assert {name: str(case) for name, case in cases.items()} == {
        "pair": "float32[8,64] float32[8,64] - -> float32[8,64] float32[8,64]",
        "accumulate": "float32[8,64] float32[8,64] -> float32[8,64]",
    }
