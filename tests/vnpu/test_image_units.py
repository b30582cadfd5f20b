"""cann-ops' operators that resize images by products with a table of weights, unmodified, in float.

Half is left out: most of them copy twice the words of their table there, over the next core's, and that is reported.
``ASCENDOPT_CANN_OPS`` names the sources; without it these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import DEFAULT_CHIP
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project

Shape = tuple[int, ...]
GROWN: dict[int, tuple[Shape, Shape]] = {
    1: ((2, 3, 40), (2, 3, 64)),
    2: ((2, 3, 20, 24), (2, 3, 32, 40)),
    3: ((1, 3, 6, 20, 24), (1, 3, 8, 32, 40)),
}
SHRUNK: dict[int, tuple[Shape, Shape]] = {
    1: ((2, 3, 90), (2, 3, 35)),
    2: ((1, 2, 40, 50), (1, 2, 24, 35)),
    3: ((1, 2, 9, 30, 40), (1, 2, 6, 20, 27)),  # 15 * 40 / 24 would be 25, and in float 24.99
}


@dataclass(frozen=True)
class Image:
    """An operator that resizes from ``small`` to ``large`` by ``mode``, or brings the gradient back.

    ``attrs`` gives the attributes that say so: aclnn's own layer computes them before it calls the kernel.
    """

    mode: str
    dims: int
    backward: bool
    attrs: Callable[[Shape, Shape], dict[str, Any]]
    smooth: bool = False

    def resized(self, x: Any, size: Shape) -> Any:
        corners = {} if self.mode.startswith("nearest") else {"align_corners": False}
        smooth = {"antialias": True} if self.smooth else {}
        return torch.nn.functional.interpolate(x, size=size[2:], mode=self.mode, **corners, **smooth)

    def reference(self, before: Shape, after: Shape) -> Callable[..., Any]:
        def forward(x: Any, *_: Any, **__: Any) -> Any:
            return self.resized(x.double().reshape(before), after)

        def back(gradient: Any, *_: Any, **__: Any) -> Any:
            x = torch.zeros(before, dtype=torch.float64, requires_grad=True)
            self.resized(x, after).backward(gradient.double())
            return x.grad

        return back if self.backward else forward


def _sizes(before: Shape, after: Shape) -> dict[str, Any]:
    return {"input_size": before, "output_size": after[2:]}


def _ratios(before: Shape, after: Shape) -> list[float]:
    return [b / a for b, a in zip(before[2:], after[2:], strict=True)]


NONE_2D = {"scales_h": 0.0, "scales_w": 0.0}
IMAGES = {
    "upsample_bilinear2d": Image(
        "bilinear", 2, False, lambda b, a: {"align_corners": False, "scales": tuple(_ratios(b, a))}
    ),
    "upsample_bilinear2d_aa": Image(
        "bilinear", 2, False, lambda b, a: {"align_corners": False, "output_size": a[2:], **NONE_2D}, smooth=True
    ),
    "upsample_bicubic2d": Image(
        "bicubic", 2, False, lambda b, a: {"align_corners": False, "output_size": a[2:], **NONE_2D}
    ),
    "upsample_bicubic2d_aa": Image(
        "bicubic", 2, False, lambda b, a: {"align_corners": False, "output_size": a[2:], **NONE_2D}, smooth=True
    ),
    "upsample_linear1d": Image("linear", 1, False, lambda b, a: {"align_corners": False, "scale": _ratios(b, a)[0]}),
    "resize_upsample_trilinear": Image(
        "trilinear", 3, False, lambda b, a: {"align_corners": False, "output_size": a[2:], "scales_d": 0.0, **NONE_2D}
    ),
    "upsample_bilinear2d_grad": Image(
        "bilinear", 2, True, lambda b, a: {"align_corners": False, **_sizes(b, a), **NONE_2D}
    ),
    "upsample_bilinear2d_aa_backward": Image(
        "bilinear", 2, True, lambda b, a: {"align_corners": False, **_sizes(b, a), **NONE_2D}, smooth=True
    ),
    "upsample_bicubic2d_grad": Image(
        "bicubic",
        2,
        True,
        lambda b, a: {"align_corners": False, **dict(zip(("scales_h", "scales_w"), _ratios(b, a), strict=True))},
    ),
    "upsample_bicubic2d_aa_grad": Image(
        "bicubic", 2, True, lambda b, a: {"align_corners": False, **_sizes(b, a), **NONE_2D}, smooth=True
    ),
    "upsample_nearest_exact2d_grad": Image("nearest-exact", 2, True, lambda b, a: {**_sizes(b, a), **NONE_2D}),
    "upsample_nearest3d_grad": Image("nearest", 3, True, lambda b, a: {**_sizes(b, a), "scales": (0.0,) * 3}),
    "upsample_nearest_exact3d_grad": Image(
        "nearest-exact", 3, True, lambda b, a: {**_sizes(b, a), "scales": (0.0,) * 3}
    ),
    "upsample_trilinear3d_backward": Image(
        "trilinear",
        3,
        True,
        lambda b, a: {"align_corners": False, **_sizes(b, a), "scale_d": 0.0, "scale_h": 0.0, "scale_w": 0.0},
    ),
}


@pytest.mark.parametrize("sizes", [GROWN, SHRUNK], ids=["grown", "shrunk"])
@pytest.mark.parametrize("name", IMAGES)
def test_images_of_cann_ops(name: str, sizes: dict[int, tuple[Shape, Shape]], tmp_path: Path) -> None:
    checkout = settings().cann_ops
    if checkout is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    image = IMAGES[name]
    before, after = sizes[image.dims]
    given, result = (after, before) if image.backward else (before, after)
    if image.dims == 1:  # aclnn gives the kernel a row of one line
        given = (*given[:2], 1, given[2])
    inputs = (TensorSpec("float32", given),)
    operator = replace(load_project(checkout / "src/image" / name), reference=image.reference(before, after))
    with Evaluator(toolkit.virtual(), DEFAULT_CHIP, workers=1, build_dir=tmp_path) as evaluator:
        signature = evaluator.describe(operator).signature
        if len(signature.inputs) == 2:  # the size that is wanted; what counts is the result's shape
            inputs += (TensorSpec("int32", (2,)),)
        case = Case(inputs, (TensorSpec("float32", result),), tuple(sorted(image.attrs(before, after).items())))
        outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Timed), outcome
    assert outcome.profile.counters["aic_mac_instructions"] > 0
