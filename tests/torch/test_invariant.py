"""Under ``invariant`` only pairs serve that keep the baseline's bits: results don't depend on batch size or tuning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import ascendopt_tune as aot  # isort: skip  (before torch, which loads torch_npu)

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.nouns.case import Case, TensorSpec  # noqa: E402
from ascendopt_tune.sources.registry import load_operator  # noqa: E402
from ascendopt_tune.store.entry import Key  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import resolve  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402

pytestmark = pytest.mark.skipif(not is_virtual(), reason="a real CANN serves")

COLUMNS = 256
#: Norms, softmax and reductions of the registry: the arguments behind x.
OPERATORS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "rms_norm": lambda: (torch.linspace(0.5, 1.5, COLUMNS).npu(),),
    "layer_norm": lambda: (torch.linspace(0.5, 1.5, COLUMNS).npu(), torch.linspace(-1, 1, COLUMNS).npu()),
    "softmax": tuple,
    "reduce_sum_last": tuple,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_row_s_bits_are_the_same_in_every_batch(name: str) -> None:
    """A batch of 1, of 6, and of 48 rows, each tuned for itself: the rows they share have the same bits, which are
    those of the pair as it is written."""
    aot.registry_ops()
    registered.clear()
    op, rest = getattr(torch.ops.ascendopt, name), OPERATORS[name]()
    x = torch.randn(48, COLUMNS, generator=torch.Generator().manual_seed(5)).npu()
    written = op(x, *rest).cpu()
    with aot.install(policy="blocking", budget=4, invariant=True):
        for rows in (1, 6, 48):
            part = x[:rows].contiguous()
            for _ in range(2):  # compared with the original, and then alone
                assert torch.equal(op(part, *rest).cpu().view(torch.int32), written[:rows].view(torch.int32)), rows
        row = aot.status().operators[f"ascendopt::{name}"]
        assert (row.hits + row.kept, row.fallbacks) == (6, {})


def test_what_is_right_but_not_the_same_is_refused() -> None:
    """The bits of the baseline are the only right result, of a pair's first comparisons, too."""
    operator = load_operator("rms_norm").invariantly()
    assert operator.reference is None
    one = torch.ones(4)
    from ascendopt_tune.torch_ops.serving.guard import DiffersError, compare

    compare([one], [one.clone()], operator.settings)
    with pytest.raises(DiffersError):
        compare([one], [torch.nextafter(one, 2 * one)], operator.settings)
    compare([one], [torch.nextafter(one, 2 * one)], load_operator("rms_norm").settings)


def test_its_results_are_kept_apart() -> None:
    operator, spec = load_operator("softmax"), TensorSpec("float32", (4, 4))
    case = Case((spec,), (spec,))
    keys = [
        Key.of(o, case, chip="ascend910b2", target="virtual", toolkit="t") for o in (operator, operator.invariantly())
    ]
    assert keys[0].hash != keys[1].hash
    assert keys[0] == Key.of(
        replace(operator, invariant=False), case, chip="ascend910b2", target="virtual", toolkit="t"
    )
    assert "invariant" not in resolve.Options().run, "the settings decide"
