"""What stands around a kernel's body: the helpers it calls, its class with queues and buffers, and the entry."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from ..ir import Expr, Kernel, Load, Op, Program, Reduce, Tensor, walk
from ..layout import GAP, Layout, Queue, buffer_bytes
from ..scalar import cpp
from .device_helpers import COPY_IN_PADDED, HELPERS, REDUCE_COLUMNS, REDUCE_ROWS, REDUCE_TILE, SCAN_TILE, TAKE_ROWS
from .instructions import API, FILL, INDEX, MASK, OFFSET, SCAN
from .text import Lines, name_of, pascal

WORK, COLUMNS = "workTile", "columnsTile"
SCALARS = {"int": "int64_t", "float": "float", "bool": "bool"}
SCRATCH = {"reduce": (WORK, "float"), "mask": (MASK, "uint8_t"), "fill": (FILL, ""), "api": (API, "uint8_t"),
            "index": (INDEX, "int32_t"), "offset": (OFFSET, "int32_t"), "scan": (SCAN, "float"),
            "columns": (COLUMNS, "float")}  # fmt: skip


@dataclass(frozen=True)
class KernelBody:
    """The body of Process().

    ``filled``: the number that the tile for scalars holds from Init on, if it is the only one. ``pairs``: tiles that an
    instruction reads beside each other, and how often. ``lengths``: buffers whose length has a variable.
    """

    text: str
    filled: str
    pairs: Mapping[tuple[str, str], int]
    lengths: Set[str]


def file_text(program: Program, layout: Layout, entry: str, body: KernelBody) -> str:
    """The text of ``op_kernel/<entry>.cpp`` around the body of Process()."""
    name, out = pascal(entry), Lines()
    _preamble(out, program, layout)
    with out.block(f"class Kernel{name} {{", "};"):
        out.add("public:")
        _init(out, program, layout, name, body)
        out.add("")
        with out.block("__aicore__ inline void Process() {"):
            out.add(*body.text.splitlines())
        out.add("", "private:")
        _members(out, program, layout, body)
    out.add("")
    _entry(out, program, entry, name)
    return out.text


def tensors_of(program: Program) -> dict[str, Tensor]:
    """The kernel's parameters that are tensors."""
    return {p: program.tensor_of(p) for p in program.kernel.parameters if p in program.kernel.tensors}


def fields_of(program: Program) -> list[str]:
    """The kernel's parameters that are numbers: the tiling data."""
    return [p for p in program.kernel.parameters if p not in program.kernel.tensors]


def _preamble(out: Lines, program: Program, layout: Layout) -> None:
    """What stands before the class: the helpers that its body calls."""
    statements = list(walk(program.kernel.body))
    out.add(f"// {title_of(program)} Lowered from {program.file.rpartition('/')[2]} by rules; comments name its lines.")
    out.add("// Built without the compiler's automatic synchronization.", '#include "kernel_operator.h"', "")
    out.add("using namespace AscendC;", "")
    for wanted, helpers in (
        (True, HELPERS),
        (any(isinstance(s, Reduce) and s.axis is None for s in statements), REDUCE_TILE),
        (any(isinstance(s, Reduce) and s.axis == 1 for s in statements), REDUCE_ROWS),
        (any(isinstance(s, Load) and s.before is not None for s in statements), COPY_IN_PADDED),
        ("columns" in layout.scratch, REDUCE_COLUMNS),
        ("scan" in layout.scratch, SCAN_TILE),
        (any(isinstance(s, Op) and s.name == "take_rows" for s in statements), TAKE_ROWS),
    ):
        if wanted:
            out.add(*helpers.splitlines(), "")


def _init(out: Lines, program: Program, layout: Layout, name: str, body: KernelBody) -> None:
    tensors, filled, halves = tensors_of(program), body.filled, _halves(body, layout)
    addresses = ", ".join(f"GM_ADDR {name_of(p)}Address" for p in tensors)
    with out.block(f"__aicore__ inline void Init({addresses}, const {name}TilingData& tiling, TPipe* pipe) {{"):
        out.add(*(f"{name_of(f)} = tiling.{name_of(f)};" for f in fields_of(program)))
        for p, tensor in tensors.items():
            out.add(f"{name_of(p)}Gm.SetGlobalBuffer((__gm__ {tensor.dtype.cpp}*){name_of(p)}Address);")
        buffers = _buffers(program, layout)
        for half in (False, True):
            of = [lines for slot, lines in buffers.items() if (slot in halves) == half]
            if half and of:
                out.add(f"pipe->InitBuffer(gapBuf, {GAP});  // what is read beside each other: other banks")
            for lines in of:
                out.add(*lines)
        if filled:
            size = 2 if fill_type(program) == "half" else 4
            count = cpp_text(Expr("//", "int", (layout.scratch["fill"], Expr("num", "int", (), size))))
            out.add(f"Duplicate({FILL}, {filled}, static_cast<int32_t>({count}));", "PipeBarrier<PIPE_V>();")
        if "index" in layout.scratch:
            count = cpp_text(Expr("//", "int", (layout.scratch["index"], Expr("num", "int", (), 4))))
            out.add(f"CreateVecIndex({INDEX}, static_cast<int32_t>(0), static_cast<uint32_t>({count}));")
            out.add("PipeBarrier<PIPE_V>();")


def _buffers(program: Program, layout: Layout) -> dict[str, list[str]]:
    """What Init says of every queue and buffer, by its name."""
    found = {}
    for q in layout.queues:
        found[queue_id(q)] = [f"pipe->InitBuffer({queue_id(q)}, tiling.bufferNum, {cpp_text(q.bytes)});"]
    for b in layout.kept:
        name = name_of(b.name)
        found[f"{name}Buf"] = [
            f"pipe->InitBuffer({name}Buf, {cpp_text(buffer_bytes(b))});",
            f"{name} = {name}Buf.Get<{b.dtype.cpp}>();",
        ]
    for purpose, size in layout.scratch.items():
        local, cpp_type = SCRATCH[purpose]
        found[f"{local}Buf"] = [
            f"pipe->InitBuffer({local}Buf, {cpp_text(size)});",
            f"{local} = {local}Buf.Get<{cpp_type or fill_type(program)}>();",
        ]
    return found


def _halves(body: KernelBody, layout: Layout) -> frozenset[str]:
    """Which queues and buffers begin in the other half of the bank groups: an instruction that reads two tiles takes
    two cycles for a repeat where both begin in the same one."""
    places = {name_of(b): queue_id(q) for b, q in layout.direct.items()}
    weights: dict[str, dict[str, int]] = {}
    for (a, b), count in body.pairs.items():
        one, two = (places.get(x, f"{x}Buf") for x in (a, b))
        for x, y in ((one, two), (two, one)):
            if x != y:
                weights.setdefault(x, {})[y] = weights.get(x, {}).get(y, 0) + count
    halves: dict[str, bool] = {}
    for slot in sorted(weights, key=lambda x: -sum(weights[x].values())):
        met = [sum(n for y, n in weights[slot].items() if halves.get(y) is half) for half in (False, True)]
        halves[slot] = met[1] < met[0]
    return frozenset(slot for slot, half in halves.items() if half)


def _members(out: Lines, program: Program, layout: Layout, body: KernelBody) -> None:
    kernel = program.kernel
    arguments = zip(kernel.parameters, program.host.arguments, strict=True)
    types = {p: SCALARS[a.type] for p, a in arguments if isinstance(a, Expr)}
    for q in layout.queues:
        out.add(f"TQue<QuePosition::{'VECIN' if q.into else 'VECOUT'}, 1> {queue_id(q)};")
    kept = [f"{name_of(b.name)}Buf" for b in layout.kept] + [f"{SCRATCH[p][0]}Buf" for p in layout.scratch]
    kept += ["gapBuf"] if _halves(body, layout) else []
    if kept:
        out.add(f"TBuf<QuePosition::VECCALC> {', '.join(kept)};")
    out.add(*(f"LocalTensor<{b.dtype.cpp}> {name_of(b.name)};" for b in kernel.buffers.values()))
    for purpose in layout.scratch:
        local, cpp_type = SCRATCH[purpose]
        out.add(f"LocalTensor<{cpp_type or fill_type(program)}> {local};")
    out.add(*(f"GlobalTensor<{t.dtype.cpp}> {name_of(p)}Gm;" for p, t in tensors_of(program).items()))
    out.add(*(f"{types[f]} {name_of(f)} = 0;" for f in fields_of(program)))
    for buffer in sorted(body.lengths):
        out.add(f"int64_t {name_of(buffer)}Length = 0;")
        if has_rows(kernel, buffer):
            out.add(f"int64_t {name_of(buffer)}Cols = 0;")


def _entry(out: Lines, program: Program, entry: str, name: str) -> None:
    parameters = [*(t for t in program.of_kind("input")), *(t for t in program.of_kind("output"))]
    signature = ", ".join(f"GM_ADDR {name_of(t.name)}" for t in parameters)
    with out.block(f'extern "C" __global__ __aicore__ void {entry}({signature}, GM_ADDR workspace, GM_ADDR tiling) {{'):
        out.add("GET_TILING_DATA(tilingData, tiling);", "TPipe pipe;", f"Kernel{name} op;")
        spaces = [t.name for t in program.of_kind("workspace")]
        given = [
            f"GetUserWorkspace(workspace) + tilingData.{t.name}Offset" if t.name in spaces else name_of(t.name)
            for t in tensors_of(program).values()
        ]
        out.add(f"op.Init({', '.join(given)}, tilingData, &pipe);", "op.Process();")


def queue_id(q: Queue) -> str:
    return f"{name_of(q.tensor)}{'In' if q.into else 'Out'}"


def cpp_text(e: Expr) -> str:
    return cpp(e, lambda x: name_of(str(x.value)))


def has_rows(kernel: Kernel, buffer: str) -> bool:
    return len(kernel.buffers[buffer].shape) == 2


def fill_type(program: Program) -> str:
    """The type of the scratch tile for scalars: operations that need it are of one dtype in a kernel, or float."""
    kinds = {program.kernel.buffers[s.dst].dtype.cpp for s in walk(program.kernel.body) if isinstance(s, Op)}
    return "half" if kinds == {"half"} else "float"


def title_of(program: Program) -> str:
    first = program.host.doc.strip().splitlines()
    return (first[0].rstrip(".\\ ") if first else program.host.name) + "."
