"""Matmul in programs of others, unmodified: asc-devkit's samples as they are, host and kernel, and cann-ops' operators.

The sources are found through ``ASCENDOPT_ASC_DEVKIT`` and ``ASCENDOPT_CANN_OPS``; without them these tests are skipped.
A sample's own scripts make its inputs and say what has to come out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sample_programs import EXAMPLES, Sample, run

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import DEFAULT_CHIP
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project

CUBE_ONLY = [
    "matmul", "matmul_callback", "matmul_channelsplit_output", "matmul_co1_output", "matmul_constant_tiling",
    "matmul_format_gemv", "matmul_format_nd_align", "matmul_int4", "matmul_l0cache", "matmul_l2cache",
    "matmul_mixdualmaster", "matmul_mn_double_buffer", "matmul_multi_core_unaligned", "matmul_nbuffer33",
    "matmul_preload", "matmul_quant", "matmul_triangle", "matmul_unitflag",
]  # fmt: skip
MIXED = [
    "batch_matmul", "batch_matmul_bias_reuse", "batch_matmul_iterate_n_batch", "matmul_async_iterate",
    "matmul_async_iterate_all", "matmul_fused", "matmul_fused_manual", "matmul_k_reorder_load", "matmul_partial_output",
    "matmul_vecout",
]  # fmt: skip
SAMPLES = [
    "00_introduction/02_matrix/matmul_advanced_api",
    "06_compatibility_guide/matmul_s4",
    *(f"04_advanced_api/00_matmul/{name}" for name in (*CUBE_ONLY, *MIXED)),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.rsplit("/", 1)[1])
def test_samples_of_asc_devkit(sample: str, tmp_path: Path) -> None:
    checkout = settings().asc_devkit
    if checkout is None or not (checkout / EXAMPLES / sample / "scripts").is_dir():
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set, or has no such sample")
    assert run(Sample(sample), checkout, tmp_path)


def leaky(a: Any, b: Any, bias: Any) -> Any:
    x = a.double() @ b.double() + bias.double()
    return x.where(x > 0, 0.001 * x)


def product(a: Any, b: Any, bias: Any) -> Any:
    return a.double() @ b.double() + bias.double()


def complex_product(a: Any, b: Any, bias: Any = None) -> Any:
    wide = a.to(torch.complex128) @ b.to(torch.complex128)
    return wide if bias is None else wide + bias.to(torch.complex128)


@pytest.mark.parametrize(
    ("operator", "reference"), [("math/matmul_leakyrelu", leaky), ("math/matmul_api_constant", product)]
)
def test_operators_of_cann_ops(operator: str, reference: Any, tmp_path: Path) -> None:
    """In the one shape that their tiling functions are written for."""
    checkout = settings().cann_ops
    if checkout is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    m, n, k = 1024, 640, 256
    loaded = replace(load_project(checkout / "src" / operator), reference=reference)
    inputs = (TensorSpec("float16", (m, k)), TensorSpec("float16", (k, n)), TensorSpec("float32", (n,)))
    case = Case(inputs, (TensorSpec("float32", (m, n)),), ())
    with Evaluator(toolkit.virtual(), DEFAULT_CHIP, workers=1, build_dir=tmp_path) as evaluator:
        signature = evaluator.describe(loaded).signature
        outcome = Gate(loaded, case, evaluator, signature=signature).evaluate(loaded.baseline).outcome
    assert isinstance(outcome, Timed), outcome
    assert np.isfinite(outcome.profile.task_duration_us)


def test_complex_mat_mul_of_cann_ops(tmp_path: Path) -> None:
    """In tiles of its own; at other shapes it reads rows of its workspace that nobody has written."""
    checkout = settings().cann_ops
    if checkout is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    m, k, n = 64, 128, 64
    operator = replace(load_project(checkout / "src/matmul/complex_mat_mul"), reference=complex_product)
    a, b, c = (TensorSpec("complex64", s) for s in ((m, k), (k, n), (m, n)))
    with Evaluator(toolkit.virtual(), DEFAULT_CHIP, workers=1, build_dir=tmp_path) as evaluator:
        signature = evaluator.describe(operator).signature
        outcome = Gate(operator, Case((a, b, c), (c,), ()), evaluator, signature=signature).evaluate(operator.baseline)
    assert isinstance(outcome.outcome, Timed), outcome.outcome
