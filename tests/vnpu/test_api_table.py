"""docs/api.md tells what the headers say, and what it calls refused is refused when a kernel is built."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.errors import KernelCompileError
from ascendopt_tune.settings import settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import api_names  # noqa: E402
import api_table  # noqa: E402

KERNEL = '#include "kernel_operator.h"\nextern "C" __global__ __aicore__ void probe(GM_ADDR x) {\n%s\n}\n'


@cache
def acl() -> Acl:
    return Acl(toolkit.virtual())


def log_of(body: str) -> str:
    """The log of a kernel that must not build."""
    with pytest.raises(KernelCompileError) as error:
        acl().compile(KERNEL % body, "probe.cpp")
    return error.value.log


def names(state: str) -> list[api_table.Api]:
    """Free names of that state; members of a class fail with their class or by name."""
    members_of_objects = ("cube groups", "high-level: matrix multiplication", "high-level: convolution",
                          "high-level: communication", *api_table.OTHER_MODELS)  # fmt: skip
    return [a for a, s in api_table.statuses().items()
            if s.state == state and not a.owner and a.chapter not in members_of_objects]  # fmt: skip


def test_the_table_is_the_generated_one() -> None:
    # The texts are compared line by line, so that a failure shows the line.
    assert (DOCS / "api.md").read_text().splitlines() == api_table.page().splitlines(), "run `make docs`"


def test_what_is_not_covered_is_refused_by_name_when_a_kernel_is_built() -> None:
    covered = {a.name for state in (api_table.COVERED, api_table.LIMITED) for a in names(state)}
    refused = sorted({a.name for a in names(api_table.REFUSED)} - covered)
    assert len(refused) > 20
    assert {"AddDeqRelu", "BilinearInterpolation"} <= set(refused)
    log = log_of("\n".join(f"  AscendC::{name}(x);" for name in refused))
    lines = log.splitlines()
    for name in refused:
        told = [t for t in lines if f"AscendC::{name} " in t or f"AscendC::{name}:" in t]
        assert any("not covered" in t or "does not exist on" in t for t in told), name


@pytest.mark.parametrize("name", ["LoadImageToLocal", "SetAippFunctions"])
def test_a_cube_api_says_that_it_is_not_covered(name: str) -> None:
    assert f"AscendC::{name}: not covered by the virtual NPU" in log_of(f"  AscendC::{name}(x);")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AICORE);", "no type of a kernel of architecture 2201"),
        ("  AscendC::CrossCoreSetFlag<4, PIPE_MTE3>(0);", "architecture 2201 has modes 0, 1 and 2"),
        ("  AscendC::RpSort16(x);", "AscendC::RpSort16 does not exist on architecture 2201"),
    ],
)
def test_what_other_chips_have_is_refused_when_it_is_built(body: str, message: str) -> None:
    assert message in log_of(body)


def test_limits_stand_beside_something_covered() -> None:
    limited = {a.title for a, s in api_table.statuses().items() if s.state == api_table.LIMITED}
    assert set(api_table.limits()) == limited


def test_the_names_are_those_of_the_documentation() -> None:
    devkit = settings().asc_devkit
    if devkit is None:
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set")
    found = api_names.names(devkit / "docs/zh/api")
    committed = {tuple(r.values()) for r in api_table._rows("api_names.csv")}
    assert found == committed
