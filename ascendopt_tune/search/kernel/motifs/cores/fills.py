"""Fills of global memory that one core does for all: each core its share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.kernel_program import ApiCall, KernelProgram
from ..motif import Change, Motif

_FILLS = ("InitGlobalMemory", "InitOutput")
_AT_LEAST = 128  # elements: shares begin at whole blocks of 32 bytes of any type, and of 512 bytes of float
_SHARE = """{{
  const uint64_t fillShare = (static_cast<uint64_t>({count}) / {blocks} / {least} + 1) * {least};
  const uint64_t fillBegin = {index} * fillShare;
  if (fillBegin < static_cast<uint64_t>({count})) {{
    auto filled = {tensor}[fillBegin];
    const uint64_t fillLeft = static_cast<uint64_t>({count}) - fillBegin;
    {call}(filled, fillShare < fillLeft ? fillShare : fillLeft, {value});
  }}
}}"""
_SHARED = re.compile(
    r"\{\s*const uint64_t fillShare = \(static_cast<uint64_t>\((?P<count>.+?)\) / .*?"
    r"auto filled = (?P<tensor>.+?)\[fillBegin\];.*?\n\s*(?P<call>[\w:<>]+)\(filled, .*?fillLeft, (?P<value>.+?)\);"
    r"\s*\}\s*\}",
    re.DOTALL,
)


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for f in kernel.functions:
        for node in walk(f.body):
            condition = node.child_by_field_name("condition") if node.type == "if_statement" else None
            compared = _first_block(kernel, f, condition) if condition is not None else None
            branch = node.child_by_field_name("consequence")
            if compared is None or branch is None or node.child_by_field_name("alternative") is not None:
                continue
            fills = list(_fills(kernel, f, branch))
            if not fills or not _nothing_else(kernel, f, branch):
                continue
            edits = [kernel.replace(f.path, compared, "true"), *(_shared(kernel, c) for c in fills)]
            change = f"what one core fills in {f.name} is shared by all ({len(fills)} fills)"
            yield Change(kernel.site(f, fills[0].node), change, tuple(edits))


def _first_block(kernel: KernelProgram, f: Function, condition: Node) -> Node | None:
    """The comparison of the core's number with 0 that a condition demands."""
    for node in walk(condition):
        text = kernel.text(f.path, node)
        if "||" in text and node.type == "binary_expression":
            return None
        found = re.fullmatch(r"(.+?)\s*==\s*0[uUlL]*", text) if node.type == "binary_expression" else None
        if found is not None and _is_index(kernel, found[1]):
            return node
    return None


def _is_index(kernel: KernelProgram, text: str) -> bool:
    """``GetBlockIdx()``, or a name that is given it somewhere and nothing else."""
    if re.fullmatch(r"(?:AscendC::)?GetBlockIdx\(\)", text):
        return True
    name = text.removeprefix("this->")
    if not name.isidentifier():
        return False
    given = re.compile(rf"\b{re.escape(name)}\s*=\s*([^;,=]+)[;,]")
    values = {m[1].strip() for s in kernel.files.values() for m in given.finditer(s)} - {"0"}
    return bool(values) and all(re.fullmatch(r"(?:AscendC::)?GetBlockIdx\(\)", v) for v in values)


def _fills(kernel: KernelProgram, f: Function, branch: Node) -> Iterator[ApiCall]:
    for node in walk(branch):
        if node.type == "call_expression":
            call = kernel.call_at(f, node)
            if call.name in _FILLS and len(call.args) == 3 and call.statement is not None:
                yield call


def _nothing_else(kernel: KernelProgram, f: Function, node: Node) -> bool:
    """Is all below the node fills, choices between them, and names?"""
    if node.type in ("comment", "declaration"):
        return True
    if node.type == "expression_statement":
        call = kernel.call_of(f, node)
        return not node.named_children or (call is not None and call.name in _FILLS)
    if node.type == "if_statement":
        parts = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
        return all(_nothing_else(kernel, f, p) for p in parts if p is not None)
    if node.type in ("compound_statement", "else_clause"):
        return all(_nothing_else(kernel, f, child) for child in node.named_children)
    return False


def _shared(kernel: KernelProgram, call: ApiCall) -> Edit:
    assert call.statement is not None
    count, tensor = call.args[1], call.args[0]
    text = _SHARE.format(
        count=count,
        blocks=call.spelled("GetBlockNum"),
        least=_AT_LEAST,
        index=call.spelled("GetBlockIdx"),
        tensor=tensor,
        call=call.spelled(f"{call.name}{call.template}").removesuffix("()"),
        value=call.args[2],
    )
    text = text.replace("\n", f"\n{kernel.indent(call.path, call.statement)}")
    return kernel.replace(call.path, call.statement, text)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for block in kernel.blocks:
        text = kernel.text(block.function.path, block.node)
        found = _SHARED.fullmatch(text)
        if found is None:
            continue
        alone = f"if (GetBlockIdx() == 0) {{ {found['call']}({found['tensor']}, {found['count']}, {found['value']}); }}"
        site = kernel.site(block.function, block.steps[-1].node if block.steps else block.node)
        change = f"{found['tensor']} in {block.function.name} is filled by one core"
        yield Change(site, change, (kernel.replace(block.function.path, block.node, alone),))


SHARED_FILL = Motif(
    name="shared-fill",
    title="All cores fill what one did",
    description="Where one core fills an output or a workspace (InitGlobalMemory, InitOutput) and the others wait for "
    "it at SyncAll, the fill takes as long as a core needs for all of it. Each core fills a share.",
    bottlenecks=("imbalance", "few cores", "synchronization", "waits between cores", "copies"),
    preconditions="All cores meet behind the fill; no core that doesn't fill is left out of the launch.",
    faster=_faster,
    slower=_slower,
)
