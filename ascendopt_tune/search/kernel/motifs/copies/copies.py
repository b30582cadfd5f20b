"""Copies between global memory and UB: whole blocks without padding, many rows in one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...reading.api import root
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import element_types, listed
from ...reading.kernel_program import ApiCall, Block, KernelProgram, flat
from ..motif import Change, Motif
from .row_copies import rows_in_one_copy

_PARAMS = re.compile(r"(?:AscendC::)?DataCopy(?:Ext)?Params\s+(\w+)\s*(?:=\s*)?[{(](.*)[})]\s*;", re.DOTALL)
_CAST = re.compile(r"(?:static_cast<\w+>|\(uint\d+_t\)|uint\d+_t)\s*\((.*)\)", re.DOTALL)
_LENGTH = re.compile(r"(.+?)\s*\*\s*sizeof\((\w+)\)", re.DOTALL)


def _params(kernel: KernelProgram, block: Block, name: str) -> list[str] | None:
    """The values of ``DataCopyExtParams name{...}`` declared in the function."""
    for other in kernel.blocks:
        if other.function.node != block.function.node:
            continue
        for step in other.steps:
            found = _PARAMS.fullmatch(kernel.text(block.function.path, step.node))
            if found and found[1] == name:
                return listed(found[2])
    inline = re.fullmatch(r"(?:AscendC::)?DataCopy(?:Ext)?Params\s*[{(](.*)[})]", name, re.DOTALL)
    return listed(inline[1]) if inline else None


def _copies(kernel: KernelProgram, name: str) -> Iterator[tuple[Block, ApiCall]]:
    for block in kernel.blocks:
        for step in block.steps:
            if step.call is not None and step.call.name == name:
                yield block, step.call


def _bare(text: str) -> str:
    """The expression without a cast around all of it."""
    found = _CAST.fullmatch(flat(text))
    return found[1] if found else flat(text)


def _one(text: str) -> bool:
    return bool(re.fullmatch(r"(?:static_cast<\w+>\(|\(\w+\))?\(?1\)*", text))


# -- padding -----------------------------------------------------------------------------------------------------------


def _pad_faster(kernel: KernelProgram) -> Iterator[Change]:
    for block, call in _copies(kernel, "DataCopyPad"):
        values = _params(kernel, block, call.args[2]) if len(call.args) in (3, 4) else None
        if values is None or len(values) < 4 or not _one(values[0]):
            continue
        length = _LENGTH.fullmatch(_bare(values[1]))
        if length is None or any(v not in ("0", "0U") for v in values[2:]) or call.statement is None:
            continue
        path, count, kind = call.path, length[1], length[2]
        plain = call.spelled("DataCopy", call.args[0], call.args[1], count)
        site = kernel.site(block.function, call.statement)
        padded = kernel.text(path, call.statement)
        if _guarded(kernel, block):
            continue
        text = f"if (({count}) * sizeof({kind}) % 32 == 0) {{ {plain}; }} else {{ {padded} }}"
        edit = kernel.replace(path, call.statement, text)
        yield Change(f"{site}/either", f"DataCopy where {block.function.name} copies whole blocks", (edit,))
        edit = kernel.replace(path, call.statement, f"{plain};")
        yield Change(f"{site}/aligned", f"DataCopyPad of {block.function.name} made DataCopy", (edit,))


def _guarded(kernel: KernelProgram, block: Block) -> bool:
    """Is the block one of the two ways of a copy that was told apart already?"""
    node = block.node
    while (
        node.parent is not None and node.type != "if_statement" and node.parent.type in ("else_clause", "if_statement")
    ):
        node = node.parent
    condition = node.child_by_field_name("condition") if node.type == "if_statement" else None
    return condition is not None and "% 32 == 0" in kernel.text(block.function.path, condition)


def _pad_slower(kernel: KernelProgram) -> Iterator[Change]:
    types = element_types(kernel)
    for block, call in _copies(kernel, "DataCopy"):
        if len(call.args) != 3 or call.statement is None or not kernel.repeated(call.function, call.node):
            continue
        target, source, count = call.args
        kind = types.get(root(target).removeprefix("this->")) or types.get(root(source))
        if kind is None or re.fullmatch(r"(?:AscendC::)?DataCopy\w*Params.*|\w*[pP]arams?\w*", count, re.DOTALL):
            continue
        params = f"DataCopyExtParams{{1, static_cast<uint32_t>(({count}) * sizeof({kind})), 0, 0, 0}}"
        args = [target, source, params]
        if root(source) in types:
            args.append(f"DataCopyPadExtParams<{kind}>{{false, 0, 0, 0}}")
        edit = kernel.replace(call.path, call.statement, f"{call.spelled('DataCopyPad', *args)};")
        site = kernel.site(block.function, call.statement)
        yield Change(site, f"DataCopy of {block.function.name} made DataCopyPad", (edit,))


# -- rows --------------------------------------------------------------------------------------------------------------


def _strided(operand: str, i: str) -> tuple[str, str] | None:
    """(operand of row 0, elements from row to row) of ``x[base + i * stride]``."""
    found = re.fullmatch(r"(.+)\[(.+)\]", operand, re.DOTALL)
    if found is None:
        return None
    terms = _terms(found[2])
    rows = [t for t in terms if re.search(rf"\b{i}\b", t)]
    if len(rows) != 1:
        return None
    stride = re.fullmatch(rf"{i}\s*\*\s*(.+)|(.+?)\s*\*\s*{i}", rows[0], re.DOTALL)
    if stride is None:
        return None
    rest = " + ".join(t for t in terms if t is not rows[0])
    factor = stride[1] or stride[2]
    if re.search(rf"\b{i}\b", factor):
        return None
    return (f"{found[1]}[{rest}]" if rest else found[1]), factor


def _terms(text: str) -> list[str]:
    """The summands of an expression that stand in no bracket; an expression with a minus is one summand."""
    out, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "-" and depth == 0:
            return [text.strip()]
        if c == "+" and depth == 0:
            out.append(text[start:k].strip())
            start = k + 1
    return [*out, text[start:].strip()]


def _rows_faster(kernel: KernelProgram) -> Iterator[Change]:
    types = element_types(kernel)
    plain = {c.edits[0].start for c in _adjacent_rows(kernel, types)}
    yield from _adjacent_rows(kernel, types)
    yield from (c for c in rows_in_one_copy(kernel, types) if c.edits[0].start not in plain)


def _adjacent_rows(kernel: KernelProgram, types: dict[str, str]) -> Iterator[Change]:
    for loop in counted_loops(kernel):
        calls = [s.call for s in loop.block.steps]
        if loop.step != "1" or loop.first != "0" or len(calls) != 1 or calls[0] is None:
            continue
        call = calls[0]
        if call.name not in ("DataCopy", "DataCopyPad") or len(call.args) < 3:
            continue
        text = _one_copy(kernel, loop, call, types)
        if text is not None:
            path = loop.block.function.path
            change = f"rows of {loop.block.function.name} in one strided DataCopyPad"
            site = kernel.site(loop.block.function, loop.node)
            yield Change(site, change, (kernel.replace(path, loop.node, f"{text};"),))


def _one_copy(kernel: KernelProgram, loop: CountedLoop, call: ApiCall, types: dict[str, str]) -> str | None:
    to, of = _strided(call.args[0], loop.name), _strided(call.args[1], loop.name)
    inward = root(call.args[1]) in types
    kind = types.get(root(call.args[1])) or types.get(root(call.args[0]))
    if to is None or of is None or kind is None:
        return None
    if call.name == "DataCopy":
        if len(call.args) != 3 or re.search(r"[pP]arams", call.args[2]):
            return None
        length = f"({call.args[2]}) * sizeof({kind})"
    else:
        values = _params(kernel, loop.block, call.args[2])
        if values is None or not _one(values[0]) or any(v not in ("0", "0U") for v in values[2:]):
            return None
        length = _bare(values[1])
    if re.search(rf"\b{loop.name}\b", length):
        return None
    global_stride, local_stride = (of[1], to[1]) if inward else (to[1], of[1])
    gap = f"static_cast<uint32_t>(({global_stride}) * sizeof({kind}) - ({length}))"
    blocks = f"static_cast<uint32_t>((({local_stride}) * sizeof({kind}) - (({length}) + 31) / 32 * 32) / 32)"
    source_gap, target_gap = (gap, blocks) if inward else (blocks, gap)
    rows = f"static_cast<uint16_t>({loop.bound})"
    params = f"DataCopyExtParams{{{rows}, static_cast<uint32_t>({length}), {source_gap}, {target_gap}, 0}}"
    pad = [f"DataCopyPadExtParams<{kind}>{{false, 0, 0, 0}}"] if inward else []
    return call.spelled("DataCopyPad", to[0], of[0], params, *(call.args[3:] or pad))


def _rows_slower(kernel: KernelProgram) -> Iterator[Change]:
    types = element_types(kernel)
    for block, call in _copies(kernel, "DataCopyPad"):
        values = _params(kernel, block, call.args[2]) if len(call.args) in (3, 4) else None
        if values is None or len(values) < 4 or _one(values[0]) or call.statement is None:
            continue
        inward = root(call.args[1]) in types
        kind = types.get(root(call.args[1])) or types.get(root(call.args[0]))
        if kind is None:
            continue
        rows, length, source_gap, target_gap = (_bare(v) for v in values[:4])
        gap, blocks = (source_gap, target_gap) if inward else (target_gap, source_gap)
        outside = f"((({length}) + ({gap})) / sizeof({kind}))"
        inside = f"(((({length}) + 31) / 32 + ({blocks})) * 32 / sizeof({kind}))"
        to, of = (inside, outside) if inward else (outside, inside)
        params = f"DataCopyExtParams{{1, static_cast<uint32_t>({length}), 0, 0, 0}}"
        copy = call.spelled(
            "DataCopyPad", f"{call.args[0]}[line * {to}]", f"{call.args[1]}[line * {of}]", params, *call.args[3:]
        )
        indent = kernel.indent(call.path, call.statement)
        text = f"for (uint32_t line = 0; line < {rows}; line++) {{\n{indent}  {copy};\n{indent}}}"
        site = kernel.site(block.function, call.statement)
        change = f"DataCopyPad of {block.function.name} made a copy a row"
        yield Change(site, change, (kernel.replace(call.path, call.statement, text),))


COPY_WITHOUT_PAD = Motif(
    name="copy-without-pad",
    title="DataCopy for whole blocks",
    description="DataCopyPad takes parameters that the scalar unit has to build, and handles any length. Where a copy "
    "is a whole number of 32-byte blocks, DataCopy with a count does.",
    bottlenecks=("scalar", "small copies", "copies", "no overlap"),
    preconditions="The length is a multiple of 32 bytes, in every tile.",
    faster=_pad_faster,
    slower=_pad_slower,
    together="whole-blocks",
)

STRIDED_COPY = Motif(
    name="strided-copy",
    title="Many rows in one copy",
    description="A copy costs its issue and its latency, however short. Rows a fixed stride apart are one DataCopyPad "
    "with a block count and gaps.",
    bottlenecks=("small copies", "copies", "scalar", "no overlap"),
    preconditions="Strides are the same from row to row; at most 4095 rows; gaps are not negative.",
    faster=_rows_faster,
    slower=_rows_slower,
)
