"""Warming up a model: what it calls is found, tuned in order of share, loaded; and what it calls can be recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascendopt_tune as aot  # isort: skip  (before torch, which loads torch_npu)

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.deploy.manifest import read_manifest  # noqa: E402
from ascendopt_tune.errors import CacheError, CaseError, SettingsError  # noqa: E402
from ascendopt_tune.nouns.case import Case, TensorSpec  # noqa: E402
from ascendopt_tune.report import named  # noqa: E402
from ascendopt_tune.search.budget import Limits  # noqa: E402
from ascendopt_tune.settings import override  # noqa: E402
from ascendopt_tune.sources.registry import load_operator  # noqa: E402
from ascendopt_tune.store.cache import Cache  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import warming  # noqa: E402
from ascendopt_tune.tuner import tune_case  # noqa: E402

pytestmark = pytest.mark.skipif(not is_virtual(), reason="a real CANN serves")


@pytest.fixture
def ops() -> Iterator[Any]:
    aot.registry_ops()
    with aot.install():
        yield torch.ops.ascendopt


class Model(torch.nn.Module):  # type: ignore[misc]
    """Two adds of one shape and one of another, and a function of the user's own."""

    def __init__(self, ops: Any) -> None:
        super().__init__()
        self.ops = ops
        self.double = aot.tune("add", names={"a": "x", "b": "y"})(lambda a, b: a + b)

    def forward(self, x: Any) -> Any:
        y = self.ops.add(self.ops.add(x, x), x)
        return self.ops.add(y[:1].contiguous(), y[:1].contiguous()).sum() + self.double(x, y).sum()


def lines() -> tuple[list[str], Any]:
    said: list[str] = []
    return said, said.append


def test_warmup_tunes_what_the_model_calls_and_a_second_one_only_loads(ops: Any, tmp_path: Path) -> None:
    model, x = Model(ops).eval(), torch.randn(16, 64).npu()
    expected = model(x)
    said, say = lines()
    report = aot.warmup(model, x, budget=2, progress=say)
    assert [c.calls for c in report.cases if c.operator == "ascendopt::add"] == [2, 1]
    assert {c.source for c in report.cases} <= {"tuned", "original", "cache"}
    shares = {c.operator: c.share for c in report.cases if c.operator == "add"}
    assert shares == {"add": None}, "the lambda is computed on the CPU, so it has no modelled time"
    assert abs(sum(c.share or 0.0 for c in report.cases) - 1) < 1e-6, "nothing else of the model is modelled"
    assert report.shares_of == "the model's modelled device time"
    untimed = {u.operator: (u.calls, u.bytes) for u in report.untimed}
    assert untimed["sum"] == (2, (64 + 16 * 64 + 2) * 4), "outside of tuned calls, with their bytes"
    assert "have no modelled time" in str(report)
    assert report.word == "modelled"
    report.save(tmp_path / "warmup.json")
    page = named.of_path(tmp_path / "warmup.json")
    page.write(page.default)
    assert (page.kind, "ascendopt::add" in page.default.read_text()) == ("warmup", True)
    with pytest.raises(CacheError, match="can't be written"):
        report.save(tmp_path / "no" / "such" / "warmup.json" / "")
    assert any(line.startswith("1/3  ") for line in said)
    torch.testing.assert_close(model(x), expected)
    before = {name: row.hits + row.kept for name, row in aot.status().operators.items()}
    model(x)
    after = {name: row.hits + row.kept for name, row in aot.status().operators.items()}
    assert after["ascendopt::add"] - before["ascendopt::add"] == 3  # nothing is left to be done
    again = aot.warmup(model, (x,), budget=2, progress=say)
    assert {c.source for c in again.cases} <= {"cache", "original"}
    assert [(c.operator, c.case, c.after_us) for c in again.cases] == [
        (c.operator, c.case, c.after_us) for c in report.cases
    ]
    assert "us modelled" in str(again)


def test_seconds_end_a_warmup_with_a_list_of_what_is_left(ops: Any) -> None:
    report = aot.warmup(Model(ops).eval(), torch.randn(4, 32).npu(), seconds=0.0, progress=lambda text: None)
    assert {c.source for c in report.cases} == {"not tuned: the budget was spent"}
    assert "not tuned" in str(report)


def test_what_ctrl_c_left_is_not_said_to_have_had_its_budget(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*args: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(warming, "_part", pressed)
    said, say = lines()
    report = aot.warmup(Model(ops).eval(), torch.randn(4, 32).npu(), progress=say)
    assert {c.source for c in report.cases} == {"not tuned: the warm-up was interrupted"}
    assert "interrupted: what is tuned so far serves" in said


def test_options_of_a_run_are_a_warmups_too(ops: Any, tmp_path: Path) -> None:
    x = torch.randn(20, 96).npu()
    with pytest.raises(SettingsError, match="'chip' is no option of a warm-up"):
        aot.warmup(Model(ops), x, chip="ascend910b2")
    with pytest.raises(SettingsError, match="unknown option 'bugdet'"):
        aot.warmup(Model(ops), x, bugdet=3)
    with pytest.raises(CaseError, match="budget = 0"):
        aot.warmup(Model(ops), x, budget=0)
    with override(cache_dir=tmp_path):
        aot.warmup(lambda x: ops.add(x, x), x, budget=2, seed=7, steps=(2, 0), progress=lambda text: None)
        (entry,) = Cache(tmp_path).items("add")
        made = Cache(tmp_path).get(entry.key)
        assert made is not None
        assert made.provenance.seed == 7


def test_a_search_in_parts_is_the_whole_one(ops: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every case a little, then more; what is found is what an uninterrupted run finds."""
    monkeypatch.setattr(warming, "FIRST", 2)
    monkeypatch.setattr(warming, "NEXT", 3)
    x = torch.randn(16, 96).npu()

    def model(x: Any) -> Any:
        return ops.add(x, x)[:1].contiguous() + ops.add(x[:1].contiguous(), x[:1].contiguous())

    said, say = lines()
    with override(cache_dir=tmp_path / "parts"):
        report = aot.warmup(model, x, budget=4, progress=say)
    assert {(c.finished, c.search) for c in report.cases} == {(True, "4 of 4 evaluations")}
    parts = [(line.split("/")[0], line.partition("up to ")[2].split(" ")[0]) for line in said if "up to" in line]
    assert parts[:2] == [("1", "2"), ("2", "2")], "breadth first"
    # A part ends with the batch that reaches its limit, so that the last one may have nothing left to do.
    assert {("1", "3"), ("2", "3")} <= set(parts[2:]) <= {(n, e) for n in "12" for e in "34"}
    assert len(set(parts)) == len(parts)
    specs = [TensorSpec("float32", (16, 96))] * 3
    whole = tune_case(
        load_operator("add"), Case(tuple(specs[:2]), (specs[2],)), target="virtual", budget=4,
        cache=Cache(tmp_path / "whole"),
    )  # fmt: skip
    assert report.cases[0].after_us == whole.best.task_duration_us


def test_an_unfinished_search_goes_on_unless_asked(ops: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(24, 96).npu()

    def model(x: Any) -> Any:
        return ops.add(x, x)

    with override(cache_dir=tmp_path):
        load, spec = load_operator("add"), TensorSpec("float32", (24, 96))
        case = Case((spec, spec), (spec,))
        first = tune_case(load, case, target="virtual", budget=4, limits=Limits(evaluations=2))
        made = first.entry.provenance
        assert (first.stop, made.finished(4), made.finished(2)) == ("paused", False, True)
        assert made.evaluations in (2, 3), "a part ends with the batch that reaches its limit"
        assert made.search_text == f"{made.evaluations} of 4 evaluations, unfinished: paused"
        with override(accept_unfinished=True):
            assert tune_case(load, case, target="virtual", budget=4).cached
            (row,) = aot.warmup(model, x, budget=4, progress=lambda text: None).cases
            assert (row.finished, row.source) == (False, "cache" if first.entry.improved else "original")
            assert "unfinished: paused" in str(row.search)
        (row,) = aot.warmup(model, x, budget=4, progress=lambda text: None).cases
        assert (row.finished, row.search, row.source != "cache") == (True, "4 of 4 evaluations", True)
        assert tune_case(load, case, target="virtual", budget=4).cached


def test_seconds_are_held(ops: Any) -> None:
    """Within 10 % or one evaluation; here there is also what is compiled once for each case."""
    report = aot.warmup(Model(ops).eval(), torch.randn(48, 160).npu(), seconds=12.0, progress=lambda text: None)
    assert report.seconds < 45.0  # on a busy machine; all of it takes minutes
    assert len(report.cases) == 3


def test_more_shapes_of_the_example(ops: Any, tmp_path: Path) -> None:
    seen: list[tuple[int, ...]] = []

    def model(x: Any, index: Any) -> Any:
        seen.append((*x.shape, int(index.max())))
        return x

    x, index = torch.randn(4, 32).npu(), torch.arange(3).npu()
    shapes = [[(8, 32), (5,)], [(2, 32), (1,)]]
    report = aot.warmup(model, (x, index), shapes=shapes, progress=lambda text: None)
    assert seen[:3] == [(4, 32, 2), (8, 32, 2), (2, 32, 0)]
    assert "no tuned operator" in str(report)
    with pytest.raises(aot.AscendOptError, match="1 entries for an example with 2 tensors"):
        aot.warmup(model, (x, index), shapes=[[(8, 32)]], progress=lambda text: None)
    with pytest.raises(aot.AscendOptError, match="can't be a int"):
        aot.warmup(model, [3], progress=lambda text: None)


def test_recorded_calls_are_a_prebuild_s_wishes(ops: Any, tmp_path: Path) -> None:
    assert aot.record(Model(ops).eval(), torch.randn(4, 32).npu(), tmp_path / "calls.json") == 3
    calls = json.loads((tmp_path / "calls.json").read_text())["calls"]
    assert [c["count"] for c in calls] == [2, 1, 1]
    (tmp_path / "manifest.toml").write_text('recorded = ["calls.json"]\n')
    wishes = read_manifest(tmp_path / "manifest.toml")
    assert {(w.source, w.call.inputs["x"]) for w in wishes} == {("add", "float32[4,32]"), ("add", "float32[1,32]")}


def test_the_model_s_error_is_the_caller_s(ops: Any) -> None:
    def model(x: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        aot.warmup(model, torch.zeros(1).npu(), progress=lambda text: None)
    assert ops.add(torch.ones(8).npu(), torch.ones(8).npu()).sum().item() == 16  # and nothing is left behind


class Shifted(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(16, 64))
        self.add = aot.tune("add", names={"a": "x", "b": "y"})(lambda a, b: a + b)

    def forward(self, x: Any) -> Any:
        return self.add(x, self.shift)


def test_parameters_of_a_module_that_serves_want_no_gradient() -> None:
    model, x = Shifted().npu().eval(), torch.randn(16, 64).npu()
    report = aot.warmup(model, x, budget=1)
    (case,) = report.cases
    assert case.source in ("tuned", "original", "cache"), case.source
    assert "as it is served now; not all originals have a time" in str(report)
    with torch.no_grad():
        torch.testing.assert_close(model(x), x + model.shift)
    (row,) = (row for name, row in aot.status().operators.items() if name == "add")
    assert row.hits + row.kept >= 1


def test_a_module_in_training_mode_is_told_of_and_serves_where_gradients_are_off() -> None:
    model, x = Shifted().npu(), torch.randn(16, 64).npu()
    said: list[str] = []
    (case,) = aot.warmup(model, x, budget=1, progress=said.append).cases
    assert "a gradient is wanted" in case.source
    assert any("model.eval()" in line for line in said)
    said.clear()
    with torch.no_grad():
        (case,) = aot.warmup(model, x, budget=1, progress=said.append).cases
    assert case.source in ("tuned", "original", "cache"), case.source
    assert not any("model.eval()" in line for line in said)
