"""What people write first, as they write it: it works, or the error says what to write instead."""

from __future__ import annotations

import functools
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendopt_tune as aot  # isort: skip  (before torch, which loads torch_npu)

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune import paths  # noqa: E402
from ascendopt_tune.errors import CaseError, OperatorError  # noqa: E402
from ascendopt_tune.nouns.case import Case, TensorSpec  # noqa: E402
from ascendopt_tune.settings import override  # noqa: E402
from ascendopt_tune.store.cache import Cache, Key  # noqa: E402
from ascendopt_tune.store.explanation import Difference, Explanation  # noqa: E402
from ascendopt_tune.torch_ops.device import activate, fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import binding, dispatch, fast_path, keys  # noqa: E402
from ascendopt_tune.torch_ops.serving.cases import text_of, why_missing  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def fresh() -> None:
    fallback.take_over()
    registered.clear()


def plain(x: Any, y: Any) -> Any:
    return x + y


def tensors(*shape: int) -> tuple[Any, Any]:
    return torch.randn(shape or (64, 512)).half().npu(), torch.randn(shape or (64, 512)).half().npu()


@pytest.mark.parametrize("source", [plain, None, 42, ""])
def test_a_decorator_without_an_operator_says_what_to_write(source: Any) -> None:
    with pytest.raises(OperatorError, match="name or folder") as error:
        aot.tune(source)(plain)
    assert '@tune("rms_norm")' in error.value.hint


@pytest.mark.parametrize("given", [{"returns": "y"}, {"returns": [1]}, {"names": ["x"]}, {"buckets": ["pow2"]}])
def test_arguments_of_another_kind_are_refused_where_they_stand(given: dict[str, Any]) -> None:
    with pytest.raises(CaseError, match=next(iter(given))):
        aot.tune("add", **given)
    with pytest.raises(CaseError, match=next(iter(given))):
        aot.intercept("no::such", source="add", **given)


def test_what_has_no_parameters_to_read_is_refused_where_it_is_decorated() -> None:
    with pytest.raises(OperatorError, match=r"parameters of .*add.* can't be read"):
        aot.tune("add")(torch.add)
    with pytest.raises(OperatorError, match="no function") as error:
        aot.tune("add")(classmethod(lambda cls, x, y: x + y))
    assert "call it from the method" in error.value.hint
    aot.tune("add")(torch.ops.aten.add.Tensor)  # torch's own operators have schemas
    aot.tune("add")(functools.partial(plain))


def test_a_static_method_may_be_decorated_on_either_side(layer: Path) -> None:
    class Norms:
        @aot.tune("add")
        @staticmethod
        def outside(x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        @aot.tune("add")
        def inside(x: Any, y: Any) -> Any:
            return x + y

    x, y = tensors()
    for function in (Norms.outside, Norms().outside, Norms.inside, Norms().inside):
        torch.testing.assert_close(function(x, y).cpu(), (x + y).cpu())
    assert aot.stats()["add"]["hits"] == 4


def test_numbers_of_numpy_are_numbers() -> None:
    x, _ = tensors(2, 8)
    for value in (np.float64(1e-5), np.float32(0.5), np.int64(3), np.bool_(True)):
        keys.of_function((x, value), {})
        assert binding.described(value) == value.item()
        assert type(binding.described(value)) is type(value.item())
    with pytest.raises(CaseError, match="ndarray"):
        keys.of_function((x, np.ones(3)), {})
    with pytest.raises(CaseError, match="datetime64"):
        keys.of_function((x, np.datetime64("2026-01-01")), {})


def test_a_case_is_told_with_its_attributes() -> None:
    x, y = tensors(2, 8)
    assert text_of((x, [y, y], 1e-5), {"mode": "tanh", "bias": None}, ["x", "y", "epsilon"]) == (
        "float16[2,8] float16[2,8] float16[2,8] epsilon=1e-05 mode='tanh'"
    )
    assert text_of((x, 2), {}) == "float16[2,8] 2"
    assert len(text_of((x, "m" * 10_000), {})) < 100


def test_why_a_case_is_missing_names_what_the_closest_has(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def why(*fields: str) -> str:
        found = tuple(Difference(field, None, {"attrs": "1e-06"}.get(field.split(".")[1], "[8,8]")) for field in fields)
        monkeypatch.setattr(Cache, "explain", lambda self, key: Explanation(False, key, own_cache, found))
        return why_missing(Cache(), Key("n", "baseline", "{}", "{}", "ascend910b2", "virtual", "toolkit"))

    # A case that is looked up has no outputs yet: they say nothing.
    assert why("case.outputs[0].shape") == "this case was not tuned"
    assert why("case.attrs.epsilon", "case.outputs[0].shape") == "this case was not tuned; epsilon = 1e-06 is"
    assert why("case.inputs[0].shape") == "this case was not tuned; [8,8] is"


def test_a_trace_is_no_case(layer: Path) -> None:
    """While torch.jit traces, sizes are tensors; where there are none a hit would be a constant of the trace."""
    function = aot.tune("add")(plain)
    for shape in ((64, 512), ()):
        x, y = tensors(*shape) if shape else (torch.tensor(1.5).half().npu(), torch.tensor(2.0).half().npu())
        traced = torch.jit.trace(lambda a, b: function(a, b), (x, y), check_trace=False)
        torch.testing.assert_close(traced(x + 1, y).cpu(), (x + 1 + y).cpu())
    assert aot.stats()["add"]["fallbacks"] == {dispatch.WATCHED: 2}
    assert not aot.status().cases


def test_a_relative_folder_is_one_of_where_it_was_named(
    layer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("my_add", "work"):
        (tmp_path / name).mkdir()
    shutil.copytree(paths.shipped("registry") / "add", tmp_path / "my_add", dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    functions = [aot.tune(source)(plain) for source in ("my_add", "./my_add", Path("my_add"), "my_add:Add")]
    library = torch.library.Library("first_mistakes", "FRAGMENT")
    library.define("add(Tensor x, Tensor y) -> Tensor")
    library.impl("add", plain, "PrivateUse1")
    with aot.intercept("first_mistakes::add", source="my_add"):
        monkeypatch.chdir(tmp_path / "work")
        for function in (*functions, torch.ops.first_mistakes.add):
            x, y = tensors(2, 32)
            torch.testing.assert_close(function(x, y).cpu(), (x + y).cpu())
    library._destroy()
    assert [op.fallbacks for op in aot.status().operators.values()] == [{}] * len(aot.status().operators)
    assert {case.source for case in aot.status().cases} == {"missing"}


def test_a_case_is_tuned_by_its_operator_s_name(layer: Path) -> None:
    spec = TensorSpec("float16", (64, 512))
    for source in ("add", "registry/add", paths.shipped("registry") / "add", str(paths.shipped("registry") / "add")):
        record = aot.tune_case(source, Case((spec, spec), (spec,)), accept_unfinished=True)
        assert record.entry.improved
    with pytest.raises(OperatorError, match="nope"):
        aot.tune_case("nope", Case((spec, spec), (spec,)))


def test_a_data_loader_is_what_a_warmup_takes(layer: Path) -> None:
    from torch.utils.data import DataLoader, TensorDataset

    function = aot.tune("add")(plain)
    loader = DataLoader(TensorDataset(torch.randn(128, 512).half(), torch.randn(128, 512).half()), batch_size=64)
    report = aot.warmup(lambda x, y: function(x.npu(), y.npu()), loader, progress=lambda text: None)
    assert "2 calls" in str(report)
    with pytest.raises(CaseError, match="str"):
        aot.warmup(function, ["text"], progress=lambda text: None)


@pytest.mark.parametrize("seconds", ["soon", -3, float("nan"), [1]])
def test_a_time_that_is_none_is_refused_before_the_model_runs(seconds: Any) -> None:
    with pytest.raises(CaseError, match="seconds"):
        aot.warmup(lambda x: 1 / 0, torch.ones(1), seconds=seconds)
    with pytest.raises(CaseError, match="can't be called"):
        aot.warmup(None, torch.ones(1))  # type: ignore[arg-type]
    with pytest.raises(CaseError, match="can't be called"):
        aot.record(None, torch.ones(1), "calls.json")  # type: ignore[arg-type]


def test_the_status_says_who_has_switched_everything_off(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = aot.tune("add")(plain)
    function(*tensors())
    assert aot.status().off == ""
    monkeypatch.setattr(fast_path, "remark", lambda: "Python (the C++ for it is not compiled yet)")
    assert "served in Python, as hits of decorated functions are" in str(aot.status())
    aot.rollback()
    assert "rolled back" in str(aot.status()).splitlines()[0]
    aot.restore()
    monkeypatch.setenv("ASCENDOPT_DISABLE", "1")
    assert str(aot.status()).startswith("ASCENDOPT_DISABLE=1: the originals serve everything")
    assert aot.status().as_dict()["off"] == "ASCENDOPT_DISABLE=1"


def test_the_log_tells_who_serves(layer: Path, caplog: pytest.LogCaptureFixture) -> None:
    function = aot.tune("add")(plain)
    with caplog.at_level(logging.DEBUG, "ascendopt_tune"):
        for _ in range(3):
            function(*tensors())
            function(*tensors(3, 5))
    said = [(r.levelname, r.getMessage()) for r in caplog.records if "float16" in r.getMessage()]
    assert ("INFO", "add: float16[64,512] float16[64,512] is served by the tuned pair from now on.") in said
    assert [m for level, m in said if level == "DEBUG" and "float16[3,5]" in m and "not cached" in m]
    assert len(said) <= 4


def test_a_chip_that_there_is_not_is_told_of_before_torch_npu_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activate, "_prepared", None)
    with override(chip="ascend910b9", target="virtual"), pytest.raises(CaseError, match="ascend910b9") as error:
        activate.prepare()
    assert "ascend910b2" in error.value.hint
