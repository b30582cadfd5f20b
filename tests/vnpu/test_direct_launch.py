"""Kernels of asc-devkit for direct launch (``<<<>>>``), unmodified, against formulas written here.

The sources are found through ``ASCENDOPT_ASC_DEVKIT``, a checkout of asc-devkit; without it these tests are skipped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import torch
from cann_ops.table import Reference, arguments, in_float64

from ascendopt_tune.build import toolkit
from ascendopt_tune.case import Argument, AttrValue, Case, TensorSpec
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.operator import ParamDef, Signature
from ascendopt_tune.outcome import Timed
from ascendopt_tune.project import load_direct
from ascendopt_tune.settings import settings


@dataclass(frozen=True)
class Direct:
    """A kernel for direct launch: file, entry, block dim, inputs and outputs as ``name=dtype[shape]``, attributes."""

    path: str
    entry: str
    block_dim: int
    inputs: str
    outputs: str
    reference: Reference
    attrs: dict[str, AttrValue] = field(default_factory=dict)


_API = "examples/01_simd_cpp_api"
KERNELS: tuple[Direct, ...] = (
    Direct(f"{_API}/00_introduction/01_add/add_tpipe_tque/add_tpipe_tque.asc", "add_custom", 8,
           "x=float32[16384] y=float32[16384]", "z=float32[16384]", torch.add, {"totalLength": 16384}),
    Direct(f"{_API}/03_basic_api/07_tpipe_tque/tpipe_reuse/tpipe_reuse.asc", "tpipe_reuse_custom", 1,
           "x=float32[128]", "z=float32[128]", lambda x: 3 * x),
)  # fmt: skip


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


def run_kernel(kernel: Direct, evaluator: Evaluator, root: Path) -> None:
    def parameters(text: str) -> tuple[tuple[ParamDef, ...], tuple[Argument, ...]]:
        names = [word.split("=")[0] for word in text.split()]
        specs = arguments(" ".join(word.split("=")[1] for word in text.split()), {})[0]
        pairs = zip(names, specs, strict=True)
        return tuple(ParamDef(n, (s.dtype,)) for n, s in pairs if isinstance(s, TensorSpec)), specs

    (inputs, input_specs), (outputs, output_specs) = parameters(kernel.inputs), parameters(kernel.outputs)
    operator = load_direct(root / kernel.path, kernel.entry, kernel.block_dim)
    operator = dataclasses.replace(operator, reference=lambda *x, **_: in_float64(kernel.reference)(*x))
    signature = Signature(kernel.entry, inputs, outputs, has_tiling=False)
    case = Case(input_specs, output_specs, tuple(sorted(kernel.attrs.items())))
    outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Timed), f"{type(outcome).__name__}: {getattr(outcome, 'reason', outcome)}"


@pytest.mark.parametrize("kernel", [pytest.param(k, id=f"{Path(k.path).stem}-{k.entry}") for k in KERNELS])
def test_direct_launch(kernel: Direct, evaluator: Evaluator) -> None:
    root = settings().asc_devkit
    if root is None:
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set")
    run_kernel(kernel, evaluator, root)
