"""A kernel that asks for the system's part of its workspace is told first, as CANN's operator compiler does."""

from __future__ import annotations

import pytest

from ascendopt_tune.build.system_workspace import with_system_workspace

ENTRY = (
    'extern "C" __global__ __aicore__ void op(GM_ADDR x, GM_ADDR y,\n  GM_ADDR room, GM_ADDR tiling)\n{{\n  {body}\n}}'
)


def told(body: str, header: str = "") -> str:
    files = {"op_kernel/op.cpp": ENTRY.format(body=body), "op_kernel/op.h": header}
    found = with_system_workspace(files, "op_kernel/op.cpp", "op")
    assert found["op_kernel/op.h"] == header
    return found["op_kernel/op.cpp"]


@pytest.mark.parametrize("header", [False, True])
def test_it_is_told(header: bool) -> None:
    asks = "if (GetSysWorkSpacePtr() == nullptr) return;"
    text = told("f();" if header else asks, asks if header else "")
    assert "{ AscendC::SetSysWorkspaceForce(room);\n" in text
    assert text.count("\n") == ENTRY.count("\n")  # lines keep their numbers


@pytest.mark.parametrize(
    "body",
    ["f();", "SetSysWorkspace(room); g(GetSysWorkSpacePtr());", "REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm);"],
)
def test_it_is_left_as_it_is(body: str) -> None:
    assert told(body) == ENTRY.format(body=body)
