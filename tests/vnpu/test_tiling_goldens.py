"""Tiling results of real operators, against results recorded from the same tiling functions under CANN's own library.

``ASCENDOPT_CANN_OPS`` is a checkout of cann-ops; ``ASCENDOPT_REFERENCE`` a folder with ``cases.json`` (cases per
operator) and ``tiling_goldens.json`` (results recorded for 40 vector and 20 cube cores). Neither is the project's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.nouns.case import Argument, AttrValue, Case, TensorSpec
from ascendopt_tune.nouns.chip import Chip, load_chip
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project

DTYPES = {
    "fp16": "float16",
    "fp32": "float32",
    "bf16": "bfloat16",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
    "c64": "complex64",
}


def _goldens() -> dict[str, list[Any]]:
    """Operator path -> recorded results, one per case; empty without the environment variables."""
    folder = settings().reference
    if folder is None or settings().cann_ops is None:
        return {}
    found: dict[str, list[Any]] = {}
    for name, result in json.loads((folder / "tiling_goldens.json").read_text()).items():
        found.setdefault(name.split("#")[0], []).append(result)
    return found


GOLDENS = _goldens()


def _argument(raw: Any) -> Argument:
    """[dtype, shape, values or format ...] | [tensor, ...] | null."""
    if raw is None:
        return None
    if raw and isinstance(raw[0], list):
        return tuple(TensorSpec(DTYPES[t[0]], tuple(t[1])) for t in raw)
    formats = [x for x in raw[2:] if isinstance(x, str)]
    return TensorSpec(DTYPES[raw[0]], tuple(raw[1]), *formats[:1])


def _attr(raw: Any) -> AttrValue:
    """A value, or [type, value]."""
    if isinstance(raw, list) and len(raw) == 2 and isinstance(raw[0], str):
        raw = raw[1]
    return tuple(raw) if isinstance(raw, list) else raw


@pytest.mark.skipif(not GOLDENS, reason="ASCENDOPT_CANN_OPS and ASCENDOPT_REFERENCE are not both set")
@pytest.mark.parametrize("path", sorted(GOLDENS))
def test_tiling_equals_the_recorded_results(path: str, tmp_path: Path) -> None:
    cann_ops, reference = settings().cann_ops, settings().reference
    assert cann_ops is not None
    assert reference is not None
    documents = json.loads((reference / "cases.json").read_text())["operators"]
    cases = next(d["cases"] for d in documents if d["op"] == path)
    chip = Chip("recorded", {**load_chip("ascend910b3").values, "core.aiv": 40, "core.aic": 20})
    operator = load_project(cann_ops / "src" / path)
    program = compile_host(operator, operator.baseline, virtual(), tmp_path)
    signature = program.describe().signature
    for raw, golden in zip(cases, GOLDENS[path], strict=True):
        inputs = tuple(_argument(a) for a in raw["ins"])
        attrs = {a.name: _attr(v) for a, v in zip(signature.attrs, raw["attrs"], strict=False)}
        values = {
            i: np.array(t[2], dtype=DTYPES[t[0]])
            for i, t in enumerate(raw["ins"])
            if t and isinstance(t[0], str) and len(t) > 2 and isinstance(t[2], list)
        }
        case = Case(inputs, tuple(_argument(a) for a in raw["outs"]), tuple(attrs.items()))
        result = program.tiling(case, chip, values)
        assert (result.tiling_key, result.block_dim, result.schedule_mode) == (
            golden["key"],
            golden["block_dim"],
            golden["sched"],
        )
        assert result.workspace_bytes == sum(golden["ws"])
        assert result.data.hex() == golden["hex"]
