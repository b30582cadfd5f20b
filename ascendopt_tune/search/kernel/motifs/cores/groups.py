"""Shares dealt to groups first: every group has work for one of its vector cores before any has for two.

In a mixed kernel whose vector cores own the matmul objects, vector core 0 and 1 are of one group, and what they ask
of its cube core is done in turn. With fewer shares than vector cores half of the groups do nothing. Counted through
the groups first, shares are multiplied side by side; the tiling program launches the groups for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .....sources.cpp import Edit, walk
from ...reading.kernel_program import ApiCall, KernelProgram
from ..motif import Change, Motif

_TWO = re.compile(r"\bKERNEL_TYPE_MIX_AIC_1_2\b|__mix__\s*\(\s*1\s*,\s*2\s*\)")
_OBJECTS = re.compile(r"\bREGIST_MATMUL_OBJ\b")
_PLACES = re.compile(
    r"\b(?:GetBlockNum|GetSubBlock\w+|GetTaskRat\w+|SyncAll|CrossCore\w+|block_idx|block_num|get_block\w+)\b"
)
_INDEX = "GetBlockIdx"
_DEALT = "(AscendC::GetSubBlockIdx() * AscendC::GetBlockNum() + AscendC::GetBlockIdx() / AscendC::GetTaskRatio())"
_CORES = "platform_ascendc::PlatformAscendC({}->GetPlatformInfo()).GetCoreNumAic()"
_LAUNCH = re.compile(
    r"std::min<uint32_t>\(\s*2 \* \((.*)\),\s*platform_ascendc::PlatformAscendC\(.*\)\.GetCoreNumAic\(\)\)", re.DOTALL
)
_INCLUDED = "#include <algorithm>"


def _mixed(kernel: KernelProgram) -> bool:
    """Do two vector cores a group own matmul objects?"""
    whole = "\n".join(source.data.decode("utf-8", "replace") for source in kernel.program.files.values())
    return bool(_TWO.search(whole)) and bool(_OBJECTS.search(whole))


def _launches(kernel: KernelProgram) -> Iterator[ApiCall]:
    host = KernelProgram(kernel.tiling)
    return (c for c in host.named("SetBlockDim") if len(c.args) == 1 and c.receiver.isidentifier())


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    indices, launches = [c for c in kernel.named(_INDEX) if not c.args], list(_launches(kernel))
    others = any(_PLACES.search(kernel.text(f.path, f.node)) for f in kernel.functions)
    if not indices or len(launches) != 1 or others or not _mixed(kernel):
        return
    (launch,) = launches
    cores = _CORES.format(launch.receiver)
    node = launch.arguments[0]
    tiling = [Edit(launch.path, node.start_byte, node.end_byte, f"std::min<uint32_t>(2 * ({launch.args[0]}), {cores})")]
    if _INCLUDED not in kernel.tiling[launch.path]:
        tiling.append(Edit(launch.path, 0, 0, f"{_INCLUDED}\n"))
    edits = tuple(kernel.replace(c.path, c.node, _DEALT) for c in indices)
    yield Change("all", "shares dealt to groups first, on as many groups", edits, tuple(tiling))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Counted through the vector cores again, on half of the groups."""
    dealt = [
        kernel.replace(f.path, n, f"{_INDEX}()")
        for f in kernel.functions
        for n in walk(f.body)
        if n.type == "parenthesized_expression" and kernel.text(f.path, n) == _DEALT
    ]
    launches = [(c, m) for c in _launches(kernel) if (m := _LAUNCH.fullmatch(c.args[0]))]
    if dealt and len(launches) == 1 and _mixed(kernel):
        ((launch, match),) = launches
        node = launch.arguments[0]
        tiling = (Edit(launch.path, node.start_byte, node.end_byte, match[1]),)
        yield Change("all", "shares dealt to the vector cores of a group first", tuple(dealt), tiling)


GROUPS_FIRST = Motif(
    name="groups-first",
    title="Every group has work before one has twice",
    description="Where vector cores own the matmul objects, the two of a group share its cube core, which serves one "
    "after the other. With fewer shares than vector cores, counting them through the groups first gives each share a "
    "cube core of its own.",
    bottlenecks=("waits between cores", "few cores", "copies", "waits between pipes"),
    preconditions="The kernel asks where it runs only by GetBlockIdx; there are fewer shares than vector cores.",
    faster=_faster,
    slower=_slower,
    together="no",
)
