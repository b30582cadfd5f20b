"""A matrix made tiles (NZ) once, in the workspace, in the place of rows that become tiles each time they are copied.

A copy that makes tiles of rows costs by the row, more where rows don't begin at multiples of 512 bytes, and a matrix is
copied once for each block of the other one. A phase in front of the kernel brings every piece to L1 and out again as
tiles, each core its share; behind a meeting of the cube cores copies of tiles are long and aligned.

1. A GlobalTensor member that one size is said of, rows times row length, and copies of it by Nd2NzParams with that
   length as their pitch.
2. The class gets the phase and a copy that takes the same parameters; the tiling program asks for the workspace.
3. Cube cores that meet need a launch that lets them (MIX_AIC_1_0), and all of them at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .....sources.cpp import Edit, Function
from ...reading.kernel_program import ApiCall, KernelProgram
from ..cores.core_flags import unused_flags
from ..motif import Change, Motif

_ONLY, _MAY_MEET = "KERNEL_TYPE_AIC_ONLY", "KERNEL_TYPE_MIX_AIC_1_0"
_SIZE = re.compile(r"(.+)\s\*\s([\w.>-]+)", re.DOTALL)
_PLACE = re.compile(r"(.+)\s\*\s([\w.>-]+)\s\+\s([\w.>-]+)", re.DOTALL)
_POINTER = re.compile(r"\(\s*__gm__\s+[\w:]+\s*\*\s*\)\s*(\w+)")
_ROOM = re.compile(
    r"platform_ascendc::PlatformAscendC\(\w+->GetPlatformInfo\(\)\)\.GetLibApiWorkSpaceSize\(\) \+\s+\(.*?"
    r"ge::GetSizeByDataType\(\w+->GetInputDesc\(\d+\)->GetDataType\(\)\)",
    re.DOTALL,
)
_PIECE = 65536  # bytes of a piece in L1, of which there are two
_CLASS = """
 public:
  // {name} as columns of tiles, each of all rows: made once, by all cores.
  __aicore__ inline void MakeTilesOf{name}(uint64_t rows, uint64_t columns) {{
    constexpr uint32_t SIDE_OF_TILE = 16, IN_ROW = 32 / sizeof({type});
    constexpr uint32_t HIGH = 128, WIDE = {piece} / HIGH / sizeof({type});
    tilesOf{name}.SetGlobalBuffer((__gm__ {type}*){space}GetUserWorkspace({space}GetSysWorkSpacePtr()));
    highOf{name} = (rows + SIDE_OF_TILE - 1) / SIDE_OF_TILE * SIDE_OF_TILE;
    const uint32_t down = (rows + HIGH - 1) / HIGH, across = (columns + WIDE - 1) / WIDE;
    {space}SetFlag<{space}HardEvent::MTE3_MTE2>(0);
    {space}SetFlag<{space}HardEvent::MTE3_MTE2>(1);
    uint32_t slot = 0;
    for (uint32_t i = {space}GetBlockIdx(); i < down * across; i += {space}GetBlockNum(), slot ^= 1) {{
      const uint32_t row = i % down * HIGH, column = i / down * WIDE;
      const uint32_t high = rows - row < HIGH ? rows - row : HIGH;
      const uint32_t wide = columns - column < WIDE ? columns - column : WIDE;
      const uint32_t whole = (high + SIDE_OF_TILE - 1) / SIDE_OF_TILE * SIDE_OF_TILE;
      {space}LocalTensor<{type}> piece({space}TPosition::A1, slot * HIGH * WIDE * sizeof({type}), HIGH * WIDE);
      {space}WaitFlag<{space}HardEvent::MTE3_MTE2>(slot);
      {space}DataCopy(piece, {name}[row * columns + column],
                      {space}Nd2NzParams(1, high, wide, 0, columns, whole, 1, 0));
      {space}SetFlag<{space}HardEvent::MTE2_MTE3>(slot);
      {space}WaitFlag<{space}HardEvent::MTE2_MTE3>(slot);
      {space}DataCopy(tilesOf{name}[(static_cast<uint64_t>(column / IN_ROW) * highOf{name} + row) * IN_ROW], piece,
                      {space}DataCopyParams((wide + IN_ROW - 1) / IN_ROW, whole, 0, highOf{name} - whole));
      {space}SetFlag<{space}HardEvent::MTE3_MTE2>(slot);
    }}
    {space}WaitFlag<{space}HardEvent::MTE3_MTE2>(0);
    {space}WaitFlag<{space}HardEvent::MTE3_MTE2>(1);
    {space}CrossCoreSetFlag<0, PIPE_MTE3>({flag});
    {space}CrossCoreWaitFlag({flag});
  }}
  // What a copy of rows by the same parameters would bring.
  __aicore__ inline void CopyTilesOf{name}(const {space}LocalTensor<{type}>& to, uint64_t row, uint64_t column,
                                           const {space}Nd2NzParams& of) {{
    constexpr uint32_t IN_ROW = 32 / sizeof({type});
    const uint32_t whole = (of.nValue + 15) / 16 * 16;
    {space}DataCopy(to, tilesOf{name}[(column / IN_ROW * highOf{name} + row) * IN_ROW],
                    {space}DataCopyParams((of.dValue + IN_ROW - 1) / IN_ROW, whole, highOf{name} - whole,
                                          of.dstNzC0Stride - whole));
  }}
  {space}GlobalTensor<{type}> tilesOf{name};
  uint32_t highOf{name};

{after}"""


@dataclass(frozen=True)
class _Matrix:
    """A member with rows in global memory: where its size is said, by how many rows and of what length."""

    name: str
    said: ApiCall
    pointer: str
    rows: str
    columns: str


def _matrices(kernel: KernelProgram) -> Iterator[_Matrix]:
    calls = [c for c in kernel.named("SetGlobalBuffer") if c.receiver.isidentifier()]
    for call in calls:
        pointer = _POINTER.fullmatch(call.args[0]) if len(call.args) == 2 else None
        size = _SIZE.fullmatch(call.args[1]) if len(call.args) == 2 else None
        once = [c.receiver for c in calls].count(call.receiver) == 1
        if pointer is not None and size is not None and once and call.statement is not None:
            yield _Matrix(call.receiver, call, pointer[1], size[1], size[2])


def _copies(kernel: KernelProgram, matrix: _Matrix) -> Iterator[tuple[ApiCall, str, str]]:
    """Copies of parts of it that make tiles: (call, row, column)."""
    for call in kernel.named("DataCopy"):
        if len(call.args) != 3 or not call.args[2].isidentifier() or call.statement is None:
            continue
        start, _, rest = call.args[1].partition("[")
        place = _PLACE.fullmatch(rest.removesuffix("]")) if start == matrix.name else None
        body, given = kernel.text(call.path, call.function.body), re.escape(call.args[2])
        tiles = re.search(rf"\bNd2NzParams\s+{given}\b", body)
        pitch = re.search(rf"\b{given}\.srcDValue\s*=\s*{re.escape(matrix.columns)};", body)
        if place is not None and place[2] == matrix.columns and tiles is not None and pitch is not None:
            yield call, place[1], place[3]


def _type_of(kernel: KernelProgram, name: str) -> str | None:
    """The type of a member's elements."""
    declared = re.compile(rf"\bGlobalTensor\s*<\s*([\w:]+)\s*>\s*[\w\s,]*\b{re.escape(name)}\s*[,;]")
    found = {m[1] for text in kernel.files.values() for m in declared.finditer(text)}
    return found.pop() if len(found) == 1 else None


def _entry(kernel: KernelProgram, pointer: str) -> Function | None:
    """The entry, if it has this pointer and a workspace."""
    entries = [f for f in kernel.functions if {pointer, "workspace", "tiling"} <= set(f.parameters)]
    return entries[0] if len(entries) == 1 else None


def _room(kernel: KernelProgram, at: int) -> Edit | None:
    """The workspace that the tiles of an input need, in a tiling program that asks for none."""
    for path, text in kernel.tiling.items():
        named = re.search(r"\b(\w+)\s*=\s*(\w+)->GetWorkspaceSizes\(1\);", text)
        none = re.search(rf"\b{named[1]}\[0\]\s*=\s*(0);", text) if named is not None else None
        if named is None or none is None:
            continue
        context, shape = named[2], f"{named[2]}->GetInputShape({at})->GetStorageShape()"
        last = f"{shape}.GetDim({shape}.GetDimNum() - 1)"
        room = (
            f"platform_ascendc::PlatformAscendC({context}->GetPlatformInfo()).GetLibApiWorkSpaceSize() +\n"
            f"                 ({shape}.GetShapeSize() / {last} + 31) * ({last} + 31) *\n"
            f"                     ge::GetSizeByDataType({context}->GetInputDesc({at})->GetDataType())"
        )
        start = len(text[: none.start(1)].encode())
        return Edit(path, start, start + 1, room)
    return None


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    ids, only = unused_flags(kernel), list(_launched(kernel, _ONLY))
    if not ids or len(only) != 1:
        return
    for matrix in _matrices(kernel):
        copies, found = list(_copies(kernel, matrix)), kernel.class_node(matrix.said.function)
        kind, entry = _type_of(kernel, matrix.name), _entry(kernel, matrix.pointer)
        # Parameters of inputs come first, in their order.
        room = _room(kernel, entry.parameters.index(matrix.pointer)) if entry is not None else None
        body = found[1].child_by_field_name("body") if found is not None else None
        if not copies or kind is None or room is None or found is None or body is None or entry is None:
            continue
        space = copies[0][0].spelled("").removesuffix("()")
        after = " private:" if found[1].type == "class_specifier" else " public:"  # as it would be there
        members = _CLASS.format(name=matrix.name, type=kind, space=space, flag=ids[0], piece=_PIECE, after=after)
        begins = entry.body.start_byte + 1
        statement = matrix.said.statement or matrix.said.node  # in front of buffers in L1, which the pieces take
        made = f"MakeTilesOf{matrix.name}({matrix.rows}, {matrix.columns});"
        edits = [
            Edit(found[0], body.start_byte + 1, body.start_byte + 1, members),
            kernel.after(matrix.said.path, statement, made),
            Edit(entry.path, begins, begins, f"\n  {space}SetSysWorkspaceForce(workspace);"),
            Edit(only[0][0], only[0][1], only[0][1] + len(_ONLY), _MAY_MEET),
        ]
        for call, row, column in copies:
            copied = f"CopyTilesOf{matrix.name}({call.args[0]}, {row}, {column}, {call.args[2]})"
            edits.append(kernel.replace(call.path, call.node, copied))
        site = kernel.site(matrix.said.function, matrix.said.statement or matrix.said.node)
        yield Change(f"{site}/tiles", f"{matrix.name} is made tiles once, in the workspace", tuple(edits), (room,))


def _launched(kernel: KernelProgram, kind: str) -> Iterator[tuple[str, int]]:
    """Where the kernel says what it is launched as: path and first byte."""
    for path, text in kernel.files.items():
        for found in re.finditer(rf"\b{kind}\b", text):
            yield path, len(text[: found.start()].encode())


# -- back --------------------------------------------------------------------------------------------------------------


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Copies make tiles of rows again; the phase, its members and its workspace go."""
    for made in kernel.calls:
        name = made.name.removeprefix("MakeTilesOf")
        members = list(_members(kernel, name)) if name != made.name else []
        launched, room = list(_launched(kernel, _MAY_MEET)), list(_rooms(kernel))
        if len(members) != 1 or len(launched) != 1 or len(room) != 1 or made.statement is None or len(made.args) != 2:
            continue
        said = [c for c in (made, *kernel.named("SetSysWorkspaceForce")) if c.statement is not None]
        edits = [*members, *(kernel.delete(c.path, c.statement) for c in said if c.statement is not None)]
        edits.append(Edit(launched[0][0], launched[0][1], launched[0][1] + len(_MAY_MEET), _ONLY))
        for call in kernel.named(f"CopyTilesOf{name}"):
            to, row, column, of = call.args
            rows = f"DataCopy({to}, {name}[{row} * {made.args[1]} + {column}], {of})"
            edits.append(kernel.replace(call.path, call.node, rows))
        site = f"{kernel.site(made.function, made.statement)}/rows"
        yield Change(site, f"{name} is made tiles by each copy", tuple(edits), tuple(room))


def _found(path: str, text: str, found: re.Match[str], new: str) -> Edit:
    start = len(text[: found.start()].encode())
    return Edit(path, start, start + len(found[0].encode()), new)


def _members(kernel: KernelProgram, name: str) -> Iterator[Edit]:
    """What a class got for a matrix, taken out."""
    got = re.compile(rf"\n public:\n  // {name} as columns of tiles.*?\bhighOf{name};\n\n \w+:", re.DOTALL)
    for path, text in kernel.files.items():
        for found in got.finditer(text):
            yield _found(path, text, found, "")


def _rooms(kernel: KernelProgram) -> Iterator[Edit]:
    """The workspace for tiles, given back."""
    for path, text in kernel.tiling.items():
        for found in _ROOM.finditer(text):
            yield _found(path, text, found, "0")


TILES_FIRST = Motif(
    name="tiles-first",
    title="A matrix made tiles once",
    description="A copy to L1 that makes tiles of rows costs by the row, and a matrix is copied once for each block of "
    "the other one. Made tiles in the workspace first, by all cube cores, it is copied in long pieces.",
    bottlenecks=("copies", "waits between pipes", "memory bandwidth", "small copies"),
    preconditions="On cube cores alone; the tiling program asks for no workspace; columns of a copy begin at a tile.",
    faster=_faster,
    slower=_slower,
    together="no",
)
