"""Runs a program on numpy, core after core, and checks what no compiler sees: milliseconds, no toolkit.

Checked with file and line: bounds of every tensor and buffer, elements that nobody wrote, lengths that don't agree,
two cores at one element without tl.sync_all() between them, the Unified Buffer's size, output elements left unwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..sources.arguments import numpy_dtype
from . import layout
from .errors import DslError
from .ir import (
    Buffer,
    Expr,
    For,
    If,
    Insert,
    Let,
    Load,
    Number,
    Op,
    Program,
    Reduce,
    Statement,
    Store,
    Sync,
)
from .launch import Launch, Machine, error_at, launch_of
from .ops import OPS, REDUCTIONS
from .scalar import evaluate

Array = npt.NDArray[Any]
_LIMIT = 50_000_000  # statements of one run
_BLOCK = 8  # elements of float32 in 32 bytes: rows of a tile begin at multiples


def interpret(
    program: Program,
    inputs: Mapping[str, Array],
    attributes: Mapping[str, Number] | None = None,
    machine: Machine | None = None,
    knobs: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """The outputs, by name.

    Raises:
        DslError: a rule is broken; the first one, in the order of the program.
    """
    for t in program.of_kind("input"):
        if t.name not in inputs:
            raise error_at(program, t.line, f"the input {t.name!r} is missing.")
        if inputs[t.name].dtype != numpy_dtype(t.dtype.name):
            text = f"{t.name} is {t.dtype.name}, the array is {inputs[t.name].dtype}."
            raise error_at(program, t.line, text, f"Convert it, or declare {t.name}: tl.{inputs[t.name].dtype}.")
    launch = launch_of(program, {n: a.shape for n, a in inputs.items()}, attributes, machine, knobs)
    memory = {
        t.name: _Tensor(program, t.name, launch.shapes[t.name], inputs.get(t.name))
        for t in program.host.tensors.values()
    }
    cores = [_Core(program, launch, memory, i).run() for i in range(launch.cores)]
    phase = 0
    while cores:
        phase += 1
        for m in memory.values():
            m.phase = phase
        with np.errstate(
            all="ignore"
        ):  # here: a core that is left at a meeting is closed in nobody knows whose context
            at = [next(c, None) for c in cores]  # each to its next meeting, or to its end
        if any(a is None for a in at) and any(a is not None for a in at):
            line = next(a for a in at if a is not None)
            text = f"{sum(a is None for a in at)} of {launch.cores} cores end while others wait here."
            raise error_at(program, line, text, "Every core has to pass every tl.sync_all().")
        if at[0] is None:
            break
    outputs = {}
    for t in program.of_kind("output"):
        unwritten = np.flatnonzero(~memory[t.name].written)
        if len(unwritten):
            index = np.unravel_index(int(unwritten[0]), launch.shapes[t.name])
            where = tuple(int(i) for i in index)
            text = f"{len(unwritten)} elements of the output {t.name} are never stored, the first is {where}."
            raise error_at(program, t.line, text, "Look at the last rows of a core and at the last tile of a row.")
        outputs[t.name] = memory[t.name].data.reshape(launch.shapes[t.name])
    return outputs


class _Tensor:
    """Global memory: who wrote and read what since the cores met last."""

    def __init__(self, program: Program, name: str, shape: tuple[int, ...], given: Array | None) -> None:
        self._program, self.name, self.shape = program, name, shape
        t = program.host.tensors[name]
        count = int(np.prod(shape, dtype=np.int64))
        self.input = t.kind == "input"
        self.data = np.array(given).reshape(-1) if given is not None else np.zeros(count, numpy_dtype(t.dtype.name))
        self.written = np.full(count, self.input)
        self.phase = 0
        if not self.input:
            self._writer, self._written_in = np.zeros(count, np.int16), np.zeros(count, np.int32)
            self._reader, self._read_in = np.zeros(count, np.int16), np.zeros(count, np.int32)
            self._added = np.zeros(count, bool)

    def at(self, line: int, index: Array) -> Array:
        if index.size and (index.min() < 0 or index.max() >= len(self.data)):
            bad = int(index.min() if index.min() < 0 else index.max())
            text = f"element {bad} of {self.name}, which has {len(self.data)} (shape {self.shape})."
            raise error_at(self._program, line, text, "The last tile is shorter: n = tl.min(tile, left).")
        return index

    def read(self, line: int, index: Array, core: int) -> Array:
        self.at(line, index)
        if not self.input:
            if not self.written[index].all():
                first = int(index[~self.written[index]][0])
                raise error_at(self._program, line, f"element {first} of {self.name} is loaded and was never written.")
            other = (self._written_in[index] == self.phase) & (self._writer[index] != core)
            if other.any():
                first = int(index[other][0])
                text = f"core {core} loads element {first} of {self.name}, which core {self._writer[first]} stores."
                raise error_at(self._program, line, text, "Put tl.sync_all() between them.")
            self._reader[index], self._read_in[index] = core, self.phase
        return self.data[index]

    def write(self, line: int, index: Array, values: Array, core: int, atomic: str) -> None:
        self.at(line, index)
        if self.input:
            raise error_at(self._program, line, f"{self.name} is an input and stored to.")
        mine = (self._written_in[index] != self.phase) | (self._writer[index] == core)
        if atomic:
            mine |= self._added[index]
        if not mine.all():
            first = int(index[~mine][0])
            text = f"core {core} stores element {first} of {self.name}, as core {self._writer[first]} did."
            raise error_at(self._program, line, text, "Give every element to one core, or meet by tl.sync_all().")
        read = (self._read_in[index] == self.phase) & (self._reader[index] != core)
        if read.any():
            first = int(index[read][0])
            text = f"core {core} stores element {first} of {self.name}, which core {self._reader[first]} has loaded."
            raise error_at(self._program, line, text, "Put tl.sync_all() between them.")
        if atomic:
            if not self.written[index].all():
                first = int(index[~self.written[index]][0])
                text = f"tl.atomic_{atomic} to element {first} of {self.name}, which nobody has set."
                raise error_at(self._program, line, text, "Store zeros to it first and meet by tl.sync_all().")
            {"add": np.add, "max": np.maximum, "min": np.minimum}[atomic].at(self.data, index, values)
        else:
            self.data[index] = values
        self.written[index], self._writer[index], self._written_in[index] = True, core, self.phase
        self._added[index] = bool(atomic)


class _Tile:
    """A buffer: its elements, which of them were written, and how many are in use."""

    def __init__(self, buffer: Buffer, shape: tuple[int, ...]) -> None:
        self.data = np.zeros(shape, numpy_dtype(buffer.dtype.name))
        self.written = np.zeros(shape, bool)
        self.used: tuple[int, ...] | None = None


class _Core:
    def __init__(self, program: Program, launch: Launch, memory: dict[str, _Tensor], index: int) -> None:
        self._program, self._launch, self._index = program, launch, index
        self._memory = {p: memory[program.tensor_of(p).name] for p in program.kernel.tensors}
        self._scalars: dict[str, Any] = dict(launch.scalars)
        self._tiles = {
            b.name: _Tile(b, tuple(int(evaluate(e, self._leaf)) for e in b.shape))
            for b in program.kernel.buffers.values()
        }
        self._steps = 0
        self._line = program.kernel.line

    def run(self) -> Iterator[int]:
        """Yields the line of every meeting."""
        return self._body(self._program.kernel.body)

    def _body(self, body: tuple[Statement, ...]) -> Iterator[int]:
        for s in body:
            self._steps += 1
            self._line = s.line
            if self._steps > _LIMIT:
                raise self._error(
                    f"core {self._index} is at its {_LIMIT}th statement.", "Does a loop end? Use smaller inputs."
                )
            if isinstance(s, For):
                start, stop, step = (int(self._value(e)) for e in (s.start, s.stop, s.step))
                if step < 1:
                    raise self._error(f"the loop's step is {step}.", "Loops count upwards.")
                for i in range(start, stop, step):
                    self._scalars[s.var] = i
                    yield from self._body(s.body)
            elif isinstance(s, If):
                yield from self._body(s.body if self._value(s.test) else s.orelse)
            elif isinstance(s, Sync):
                yield s.line
            else:
                self._simple(s)

    def _simple(self, s: Statement) -> None:
        if isinstance(s, Let):
            value = self._value(s.value)
            self._scalars[s.name] = float(np.float32(value)) if s.value.type == "float" else value
        elif isinstance(s, Load):
            self._load(s)
        elif isinstance(s, Store):
            self._store(s)
        elif isinstance(s, Op):
            self._op(s)
        elif isinstance(s, Reduce):
            self._reduce(s)
        elif isinstance(s, Insert):
            tile, i = self._tiles[s.buffer], int(self._value(s.index))
            self._inside(s.buffer, i)
            tile.data.reshape(-1)[i], tile.written.reshape(-1)[i] = self._value(s.value), True
            if tile.used is None:
                tile.used = (i + 1,)

    def _index_of(self, s: Load | Store) -> Array:
        r = s.region
        offset, count = int(self._value(r.offset)), int(self._value(r.count))
        if count < 0:
            raise self._error(f"{count} elements of {s.tensor}.", "An empty tile has 0: guard the loop.")
        if r.rows is None or r.stride is None:
            return offset + np.arange(count, dtype=np.int64)
        rows, stride = int(self._value(r.rows)), int(self._value(r.stride))
        if rows > layout.ROWS:
            raise self._error(f"{rows} rows in one transfer.", f"It takes at most {layout.ROWS}: make the tile lower.")
        index: Array = offset + np.arange(rows, dtype=np.int64)[:, None] * stride + np.arange(count, dtype=np.int64)
        return index

    def _load(self, s: Load) -> None:
        index = self._index_of(s)
        tile = self._tiles[s.buffer]
        if s.before is not None:
            self._padded(s, tile, index)
            return
        self._fits(s.buffer, index.shape)
        values = self._memory[s.tensor].read(s.line, index.reshape(-1), self._index).reshape(index.shape)
        part = tuple(slice(n) for n in index.shape)
        tile.written[...] = False
        if s.other is not None:
            tile.data[...], tile.written[...] = self._value(s.other), True
        tile.data[part], tile.written[part] = values, True
        tile.used = tile.data.shape if s.other is not None else index.shape

    def _padded(self, s: Load, tile: _Tile, index: Array) -> None:
        """With other elements at both ends."""
        assert s.before is not None
        assert s.after is not None
        assert s.other is not None
        before, after = int(self._value(s.before)), int(self._value(s.after))
        most = 32 // self._memory[s.tensor].data.dtype.itemsize
        if not (0 <= before <= most and 0 <= after <= most):
            text = f"{before} elements before and {after} after what is loaded from {s.tensor}."
            raise self._error(text, f"There may be 0 to {most} (32 bytes).")
        whole = before + len(index) + after
        self._fits(s.buffer, (whole,))
        tile.written[...] = False
        tile.data[:whole], tile.written[:whole], tile.used = self._value(s.other), True, (whole,)
        tile.data[before : before + len(index)] = self._memory[s.tensor].read(s.line, index, self._index)

    def _store(self, s: Store) -> None:
        index = self._index_of(s)
        tile = self._tiles[s.buffer]
        used = self._used(s.buffer)
        if len(used) != len(index.shape) or any(n > u for n, u in zip(index.shape, used, strict=True)):
            text = f"{index.shape} elements of {s.buffer} are stored, {used} are in use."
            raise self._error(text, "A store takes at most what was loaded or computed.")
        part = tuple(slice(n) for n in index.shape)
        self._all_written(s.buffer, tile.written[part])
        memory = self._memory[s.tensor]
        values = _converted(tile.data[part], memory.data.dtype)
        memory.write(s.line, index.reshape(-1), values.reshape(-1), self._index, s.atomic)

    def _op(self, s: Op) -> None:
        dst = self._tiles[s.dst]
        tiles = [a for a in s.args if isinstance(a, str)]
        own = {
            "take": self._take, "take_rows": self._take_rows, "gather": self._gather, "iota": self._iota,
            "fill": self._fill,
        }.get(s.name)  # fmt: skip
        if own is not None:
            own(s, dst)
            return
        lengths = {a: self._used(a) for a in tiles}
        if len(set(lengths.values())) > 1:
            text = f"{s.name} of tiles of different lengths: {', '.join(f'{a} {n}' for a, n in lengths.items())}."
            raise self._error(text, "Load with other= to fill the whole tile, or make the tiles equally long.")
        used = lengths[tiles[0]]
        self._fits(s.dst, used)
        part = tuple(slice(n) for n in used)
        kind = self._tiles[tiles[0]].data.dtype
        values: list[Any] = []
        for a in s.args:
            if isinstance(a, str):
                self._all_written(a, self._tiles[a].written[part])
                values.append(self._tiles[a].data[part])
            else:
                values.append(kind.type(self._value(a)))
        result = OPS[s.name].numpy(*values)
        dst.data[part] = _converted(np.asarray(result), dst.data.dtype)
        dst.written[...] = False
        dst.written[part] = True
        dst.used = used

    def _fill(self, s: Op, dst: _Tile) -> None:
        value, *count = (self._value(a) for a in s.args if isinstance(a, Expr))
        used = (int(count[0]),) if count else dst.data.shape
        self._fits(s.dst, used)
        part = tuple(slice(n) for n in used)
        dst.written[...] = False
        dst.data[part], dst.written[part], dst.used = value, True, used

    def _gather(self, s: Op, dst: _Tile) -> None:
        source, index = (self._tiles[str(a)] for a in s.args[:2])
        used, (count,) = (self._used(str(a)) for a in s.args[:2])
        part = [int(self._value(a)) for a in s.args[2:] if isinstance(a, Expr)]
        start, taken = part or (0, count)
        if taken > count:
            raise self._error(f"{taken} places of {s.args[1]}, of which {count} are in use.", "Take fewer.")
        self._all_written(str(s.args[0]), source.written[tuple(slice(n) for n in used)])
        self._all_written(str(s.args[1]), index.written[:taken])
        wanted = index.data[:taken] + start
        far = -(-source.data.shape[-1] // _BLOCK) * _BLOCK  # from one row to the next
        place: tuple[Array, ...] = (wanted,) if len(used) == 1 else (wanted // far, wanted % far)
        outside = np.any([(p < 0) | (p >= n) for p, n in zip(place, used, strict=True)], axis=0)
        if outside.any():
            bad, inside = int(wanted[outside][0]), " by ".join(map(str, used))
            raise self._error(f"element {bad} of {s.args[0]}, of which {inside} are in use.", "Load the whole row.")
        self._fits(s.dst, (taken,))
        dst.written[...] = False
        dst.data[:taken], dst.written[:taken], dst.used = source.data[place], True, (taken,)

    def _iota(self, s: Op, dst: _Tile) -> None:
        (count,) = (int(self._value(a)) for a in s.args if isinstance(a, Expr))
        self._fits(s.dst, (count,))
        dst.written[...] = False
        dst.data[:count], dst.written[:count], dst.used = np.arange(count), True, (count,)

    def _take(self, s: Op, dst: _Tile) -> None:
        name = str(s.args[0])
        start, step, count = (int(self._value(a)) for a in s.args[1:] if isinstance(a, Expr))
        (length,) = self._used(name)
        last = start + step * (count - 1)
        if count < 0 or step < 1 or start < 0 or (count and last >= length):
            text = f"elements {start} to {last} of {name} in steps of {step}, of which {length} are in use."
            raise self._error(text, "Load as many, with other elements at the ends where there are none.")
        self._fits(s.dst, (count,))
        source = self._tiles[name]
        self._all_written(name, source.written[:length])
        dst.written[...] = False
        taken = OPS["take"].numpy(source.data, start, step, count)
        dst.data[:count], dst.written[:count], dst.used = taken, True, (count,)

    def _take_rows(self, s: Op, dst: _Tile) -> None:
        name = str(s.args[0])
        start, step, count, other = (self._value(a) for a in s.args[1:] if isinstance(a, Expr))
        used = self._used(name)
        if count < 0 or step < 1 or 0 in used:
            text = f"{count} rows of {name} from {start} on in steps of {step}; {used} are in use."
            raise self._error(text, "Steps count upwards from 1, and the tile has rows.")
        part = tuple(slice(n) for n in used)
        source = self._tiles[name]
        self._all_written(name, source.written[part])
        shape = (int(count), used[1])
        self._fits(s.dst, shape)
        into = tuple(slice(n) for n in shape)
        dst.written[...] = False
        if count:
            dst.data[into] = OPS["take_rows"].numpy(source.data[part], int(start), int(step), int(count), other)
        dst.written[into], dst.used = True, shape

    def _reduce(self, s: Reduce) -> None:
        used = self._used(s.src)
        part = tuple(slice(n) for n in used)
        source = self._tiles[s.src]
        self._all_written(s.src, source.written[part])
        if 0 in used:
            raise self._error(f"a reduction of the empty tile {s.src}.", "Guard it, or begin with the neutral element.")
        if s.axis == 1 and source.data.shape[1] > layout.REDUCED_ROW:
            text = f"rows of {source.data.shape[1]} elements are reduced."
            raise self._error(text, f"A tile's row has at most {layout.REDUCED_ROW} there: take the row in pieces.")
        result = np.atleast_1d(REDUCTIONS[s.name](source.data[part], axis=s.axis))
        self._fits(s.dst, result.shape)
        dst = self._tiles[s.dst]
        dst.written[...] = False
        dst.data[: len(result)], dst.written[: len(result)], dst.used = result, True, result.shape

    def _used(self, name: str) -> tuple[int, ...]:
        used = self._tiles[name].used
        if used is None:
            raise self._error(f"{name} is used and nothing was put into it.", "Load or compute it before.")
        return used

    def _fits(self, name: str, shape: tuple[int, ...]) -> None:
        capacity = self._tiles[name].data.shape
        if len(capacity) != len(shape) or any(n > c for n, c in zip(shape, capacity, strict=True)):
            raise self._error(f"{shape} elements for {name}, which holds {capacity}.", "Allocate more, or take less.")

    def _inside(self, name: str, i: int) -> None:
        size = self._tiles[name].data.size
        if not 0 <= i < size:
            raise self._error(f"element {i} of {name}, which holds {size}.")

    def _all_written(self, name: str, written: Array) -> None:
        if not written.all():
            first = int(np.flatnonzero(~written.reshape(-1))[0])
            raise self._error(f"element {first} of {name} is read and nobody wrote it.", "Load or compute it before.")

    def _value(self, e: Expr) -> Any:
        try:
            return evaluate(e, self._leaf)
        except ZeroDivisionError:
            raise self._error("a division by zero.") from None

    def _leaf(self, e: Expr) -> Any:
        if e.op == "var":
            return self._scalars[str(e.value)]
        if e.op == "program_id":
            return self._index
        if e.op == "num_programs":
            return self._launch.cores
        name, i = str(e.value), int(self._value(e.args[0]))
        self._inside(name, i)
        tile = self._tiles[name]
        self._all_written(name, tile.written.reshape(-1)[i : i + 1])
        value = tile.data.reshape(-1)[i]
        return float(value) if e.type == "float" else int(value)

    def _error(self, text: str, hint: str = "") -> DslError:
        return error_at(self._program, self._line, text, hint)


def _converted(values: Array, dtype: np.dtype[Any]) -> Array:
    """Values in another dtype; to integers with rounding to the nearest, ties to even."""
    if np.issubdtype(dtype, np.integer) and not np.issubdtype(values.dtype, np.integer):
        return np.rint(values.astype(np.float64)).astype(dtype)
    return values.astype(dtype)
