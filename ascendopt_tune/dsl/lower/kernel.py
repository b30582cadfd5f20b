"""Prints the device kernel: one class, queues for transfers, every dependence synchronized in the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from ..ir import (
    Buffer,
    Expr,
    For,
    If,
    Insert,
    Kernel,
    Let,
    Load,
    Op,
    Program,
    Reduce,
    Statement,
    Store,
    Sync,
    walk,
    writes,
)
from ..layout import Layout, Queue, elements, pitch, ranges, store_ranges
from ..scalar import cpp
from .instructions import OFFSET, Call, calls, convert
from .kernel_frame import COLUMNS, SCALARS, WORK, KernelBody, cpp_text, file_text, has_rows, queue_id
from .text import Lines, name_of

_NUMBER = re.compile(r"(static_cast<half>\()?-?\d+\.?\d*(e[-+]?\d+)?f?\)?")
_KINDS = {"sum": "s", "max": "x", "min": "n", "prod": "p"}


def print_kernel(program: Program, layout: Layout, entry: str) -> str:
    """The text of ``op_kernel/<entry>.cpp``."""
    printer = _Printer(program, layout, frozenset())
    printer.process()
    constant = printer.constant()
    if printer.needed or constant:  # lengths that are known only while it runs get a variable
        printer = _Printer(program, layout, frozenset(printer.needed), constant)
        printer.process()
    body = KernelBody(printer.out.text, printer.filled, printer.pairs, printer.lengths)
    return file_text(program, layout, entry, body)


class _Printer:
    """Prints the body of Process(). ``lengths``: buffers whose length has a variable. ``filled``: the one number that
    the tile for scalars ever holds; Init puts it there."""

    def __init__(self, program: Program, layout: Layout, lengths: frozenset[str], filled: str = "") -> None:
        self.program, self.layout, self.lengths, self.filled = program, layout, lengths, filled
        self._fills: set[str] = set()
        self._places = ""  # whose offsets the last gather left behind
        self.pairs: Counter[tuple[str, str]] = Counter()  # tiles that an instruction reads beside each other
        self.kernel: Kernel = program.kernel
        self.needed: set[str] = set()
        self.out = Lines()
        self._length: dict[str, tuple[str, ...] | None] = {}
        self._scopes: list[set[str]] = [set()]
        self._written: set[str] = set()  # by the vector unit since its last barrier
        self._read: set[str] = set()
        stores = {s.tensor for s in walk(self.kernel.body) if isinstance(s, Store)}
        loads = {s.tensor for s in walk(self.kernel.body) if isinstance(s, Load)}
        self._both = stores & loads  # their transfers wait for each other
        self._anywhere = _stored_by_data(program)  # a store may meet an earlier one
        self._live_ranges()

    def process(self) -> None:
        self._body(self.kernel.body)

    def constant(self) -> str:
        """The number that every fill of the tile for scalars is made of, if there is one."""
        values = list(self._fills)
        return values[0] if len(values) == 1 and _NUMBER.fullmatch(values[0]) else ""

    def _live_ranges(self) -> None:
        """Which statements take a queue's tensor before them, and give it back behind them."""
        self._before: dict[int, list[str]] = {}
        self._behind: dict[int, list[str]] = {}
        for name, queue in self.layout.direct.items():
            if queue.into:
                for body, _, end in ranges(self.kernel, name):
                    self._behind.setdefault(id(body[end - 1]), []).append(name)
            else:
                for body, first, _ in store_ranges(self.kernel, name):
                    self._before.setdefault(id(body[first]), []).append(name)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _body(self, body: tuple[Statement, ...]) -> None:
        line = 0
        for s in body:
            for name in self._before.get(id(s), []):
                b = self.kernel.buffers[name]
                self.out.add(f"{name_of(name)} = {queue_id(self.layout.direct[name])}.AllocTensor<{b.dtype.cpp}>();")
            if s.line != line and not isinstance(s, Let):
                line = s.line
                self.out.add(f"// {self._source(line)}")
            self._statement(s)
            for name in self._behind.get(id(s), []):
                self.out.add(f"{queue_id(self.layout.direct[name])}.FreeTensor({name_of(name)});")

    def _statement(self, s: Statement) -> None:
        if isinstance(s, Let):
            self._let(s)
        elif isinstance(s, For):
            self._barrier_if_any()
            self._forget(s.body)
            start, stop, step = self._int(s.start), self._int(s.stop), self._int(s.step)
            v = name_of(s.var)
            moved = f"{v}++" if step == "1" else f"{v} += {step}"
            with self._scope(f"for (int64_t {v} = {start}; {v} < {stop}; {moved}) {{", {s.var}):
                self._body(s.body)
                self._barrier_if_any()
            self._forget(s.body)
        elif isinstance(s, If):
            self._if(s)
        elif isinstance(s, Load):
            self._load(s)
        elif isinstance(s, Store):
            self._store(s)
        elif isinstance(s, Op):
            self._op(s)
        elif isinstance(s, Reduce):
            self._reduce(s)
        elif isinstance(s, Insert):
            self.out.add("WaitPipe<HardEvent::V_S>();")
            self.out.add(f"{name_of(s.buffer)}.SetValue({self._int(s.index)}, {self._expr(s.value)});")
            self.out.add("WaitPipe<HardEvent::S_V>();")
            self._length.setdefault(s.buffer, (self._int(s.index) + " + 1",))
        elif isinstance(s, Sync):
            self.out.add("PipeBarrier<PIPE_ALL>();", "SyncAll();")
            self._written, self._read = set(), set()

    def _if(self, s: If) -> None:
        self._barrier_if_any()
        with self._scope(f"if ({self._expr(s.test)}) {{", set(), "} else {" if s.orelse else "}"):
            self._body(s.body)
            self._barrier_if_any()
        self._forget(s.body)
        if s.orelse:
            with self._scope("", set()):
                self._body(s.orelse)
                self._barrier_if_any()
            self._forget(s.orelse)

    def _let(self, s: Let) -> None:
        if s.value.op == "extract":
            self.out.add("WaitPipe<HardEvent::V_S>();")
        known = any(s.name in scope for scope in self._scopes)
        if known:
            self._places = ""
            for b, length in self._length.items():
                if length is not None and any(name_of(s.name) in part.split() or s.name in part for part in length):
                    self._length[b] = None
        else:
            self._scopes[-1].add(s.name)
        head = "" if known else f"{SCALARS[s.value.type]} "
        self.out.add(f"{head}{name_of(s.name)} = {self._expr(s.value)};")

    def _load(self, s: Load) -> None:
        b = self.kernel.buffers[s.buffer]
        self._places = ""
        queue = self._queue_of(s.tensor, True)
        if s.tensor in self._both:
            self.out.add("WaitPipe<HardEvent::MTE3_MTE2>();")
        count, rows, stride = self._region(s)
        if s.buffer in self.layout.direct:
            name = name_of(s.buffer)
            self.out.add(f"{name} = {queue_id(queue)}.AllocTensor<{b.dtype.cpp}>();")
            self.out.add(self._copy_in(s, name, rows, stride, cpp_text(pitch(b))))
            self.out.add(f"{queue_id(queue)}.EnQue({name});", f"{name} = {queue_id(queue)}.DeQue<{b.dtype.cpp}>();")
            self._written.discard(name)
            self._read.discard(name)
            self._set_length(s.buffer, (rows, count) if rows else (self._loaded(s, count),))
            return
        name = name_of(s.buffer)
        count = self._loaded(s, count)
        if s.other is not None and s.before is None:
            self._calls([Call(f"Duplicate({name}, {self._literal(s.other, b)}, {cpp_text(elements(b))});", name, ())])
        staged, dtype = f"{name}Staged", queue.dtype
        with self._scope("{", set()):
            self.out.add(f"LocalTensor<{dtype.cpp}> {staged} = {queue_id(queue)}.AllocTensor<{dtype.cpp}>();")
            far = cpp_text(Expr("align", "int", (b.shape[-1], Expr("num", "int", (), 32 // dtype.size))))
            self.out.add(self._copy_in(s, staged, rows, stride, far))
            self.out.add(f"{queue_id(queue)}.EnQue({staged});", f"{staged} = {queue_id(queue)}.DeQue<{dtype.cpp}>();")
            if rows:
                self._barrier_if_any()
                with self.out.block(f"for (int64_t row = 0; row < {rows}; row++) {{"):
                    source = f"{staged}[row * {_tight(far)}]"
                    self.out.add(
                        convert(f"{name}[row * {_tight(cpp_text(pitch(b)))}]", source, count, b.dtype, dtype).text
                    )
                self._written.add(name)
            else:
                self._calls([convert(name, staged, count, b.dtype, dtype)])
            self.out.add(f"{queue_id(queue)}.FreeTensor({staged});")
        whole = (cpp_text(b.shape[0]), cpp_text(b.shape[1])) if rows else (cpp_text(b.shape[0]),)
        filled = s.other is not None and s.before is None
        self._set_length(s.buffer, whole if filled else (rows, count) if rows else (count,))

    def _copy_in(self, s: Load, to: str, rows: str, stride: str, far: str) -> str:
        if s.before is None or s.after is None or s.other is None:
            return f"CopyIn({to}, {self._from(s)}{self._rows(rows, stride, far)});"
        kind = self._queue_of(s.tensor, True).dtype.cpp
        ends = f"{self._int(s.before)}, {self._int(s.after)}, static_cast<{kind}>({self._expr(s.other)})"
        return f"CopyInPadded<{kind}>({to}, {self._from(s)}, {ends});"

    def _loaded(self, s: Load, count: str) -> str:
        """Elements of a buffer that a load of one axis fills."""
        if s.before is None or s.after is None:
            return count
        return f"{_tight(self._int(s.before))} + {_tight(count)} + {_tight(self._int(s.after))}"

    def _store(self, s: Store) -> None:
        b = self.kernel.buffers[s.buffer]
        queue = self._queue_of(s.tensor, False)
        name, dtype = name_of(s.buffer), queue.dtype
        count, rows, stride = self._region(s)
        if s.buffer in self.layout.direct:
            self.out.add(f"{queue_id(queue)}.EnQue({name});", f"{name} = {queue_id(queue)}.DeQue<{dtype.cpp}>();")
            self._copy_out(s, name, rows, stride, cpp_text(pitch(b)))
            self.out.add(f"{queue_id(queue)}.FreeTensor({name});")
            self._written.discard(name)
            self._read.discard(name)
            return
        staged = f"{name}Staged"
        with self._scope("{", set()):
            self.out.add(f"LocalTensor<{dtype.cpp}> {staged} = {queue_id(queue)}.AllocTensor<{dtype.cpp}>();")
            far = cpp_text(Expr("align", "int", (b.shape[-1], Expr("num", "int", (), 32 // dtype.size))))
            if rows:
                self._barrier_if_any()
                with self.out.block(f"for (int64_t row = 0; row < {rows}; row++) {{"):
                    source = f"{name}[row * {_tight(cpp_text(pitch(b)))}]"
                    self.out.add(convert(f"{staged}[row * {_tight(far)}]", source, count, dtype, b.dtype).text)
                self._read.add(name)
            else:
                self._calls([convert(staged, name, count, dtype, b.dtype)])
            self.out.add(f"{queue_id(queue)}.EnQue({staged});", f"{staged} = {queue_id(queue)}.DeQue<{dtype.cpp}>();")
            self._copy_out(s, staged, rows, stride, far)
            self.out.add(f"{queue_id(queue)}.FreeTensor({staged});")
        self._written.discard(staged)
        self._read.discard(staged)

    def _copy_out(self, s: Store, tensor: str, rows: str, stride: str, far: str) -> None:
        if s.tensor in self._both:
            self.out.add("WaitPipe<HardEvent::MTE2_MTE3>();")
        if s.tensor in self._anywhere:
            self.out.add("PipeBarrier<PIPE_MTE3>();")
        if s.atomic:
            self.out.add(f"SetAtomic{s.atomic.capitalize()}<{self._queue_of(s.tensor, False).dtype.cpp}>();")
        gm = f"{name_of(s.tensor)}Gm"
        count = self._int(s.region.count)
        self.out.add(f"CopyOut({gm}, {tensor}, {self._int(s.region.offset)}, {count}{self._rows(rows, stride, far)});")
        if s.atomic:
            self.out.add("SetAtomicNone();")

    def _op(self, s: Op) -> None:
        dst = self.kernel.buffers[s.dst]
        tiles = [a for a in s.args if isinstance(a, str)]
        source = self.kernel.buffers[tiles[0]] if tiles else dst
        if tiles:
            length = self._lengths_of(tiles[0])
        elif len(s.args) == 2:  # a fill of as many as are in use
            length = (self._int(s.args[1]),)  # type: ignore[arg-type]
        else:
            length = tuple(cpp_text(e) for e in dst.shape)
        count = length[0] if len(length) == 1 else f"{_tight(length[0])} * {_tight(cpp_text(pitch(source)))}"
        if not tiles and len(s.args) == 1:
            count = cpp_text(elements(dst))
        if s.name == "iota":
            length = (self._int(s.args[0]),)  # type: ignore[arg-type]
            count = length[0]
        if s.name == "gather":
            length = (self._int(s.args[3]),) if len(s.args) == 4 else self._lengths_of(str(s.args[1]))  # type: ignore[arg-type]
            of = [(name_of(a), True) if isinstance(a, str) else (self._int(a), False) for a in s.args[:3]]
            self._calls(self._same_places(calls("gather", name_of(s.dst), of, length[0], dst.dtype, source.dtype)))
            self._set_length(s.dst, length)
            return
        if s.name == "take_rows":
            numbers = [self._int(a) for a in s.args[1:4] if isinstance(a, Expr)]
            other = self._literal(s.args[4], source)  # type: ignore[arg-type]
            of = [(name_of(str(s.args[0])), True), *((text, False) for text in (*numbers, other))]
            of_tile = ", ".join((*length, cpp_text(pitch(source))))
            self._calls(calls("take_rows", name_of(s.dst), of, of_tile, dst.dtype, source.dtype))
            self._set_length(s.dst, (numbers[2], length[1]))
            return
        if s.name == "take":
            of = [(name_of(a), True) if isinstance(a, str) else (self._int(a), False) for a in s.args]
            self._calls(calls("take", name_of(s.dst), of, count, dst.dtype, source.dtype))
            self._set_length(s.dst, (of[3][0],))
            return
        args = [(name_of(a), True) if isinstance(a, str) else (self._literal(a, source), False) for a in s.args]
        self._calls(calls(s.name, name_of(s.dst), args, count, dst.dtype, source.dtype))
        self._set_length(s.dst, length)

    def _same_places(self, of: list[Call]) -> list[Call]:
        """Without the first call where the offsets of these places are there from the gather before."""
        places = of[0].text
        known, self._places = self._places == places, places
        return of[1:] if known else of

    def _reduce(self, s: Reduce) -> None:
        src, dst = name_of(s.src), name_of(s.dst)
        length = self._lengths_of(s.src)
        far = cpp_text(pitch(self.kernel.buffers[s.src]))
        if s.axis is None:
            text = f"ReduceTile<'{_KINDS[s.name]}'>({dst}, {src}, {WORK}, {length[0]});"
            self._calls([Call(text, dst, (src,), WORK)])
            self._set_length(s.dst, ("1",))
        elif s.axis == 1:
            self._barrier_if_any()
            self.out.add(f"ReduceRows<'{_KINDS[s.name]}'>({dst}, {src}, {WORK}, {length[0]}, {length[1]}, {far});")
            self._set_length(s.dst, (length[0],))
        else:
            call = f"ReduceColumns<'{_KINDS[s.name]}'>({dst}, {src}, {COLUMNS}, {length[0]}, {length[1]}, {far});"
            self._calls([Call(call, dst, (src,), COLUMNS)])
            self._set_length(s.dst, (length[1],))

    # -- order --------------------------------------------------------------------------------------------------------

    def _calls(self, of: list[Call]) -> None:
        for call in of:
            if len(call.reads) == 2:
                self.pairs[call.reads[0], call.reads[1]] += 1
            if call.value:
                self._fills.add(call.value)
                if call.value == self.filled:
                    continue
            changed = {call.writes, call.scratch} - {""}
            if any(f", {name}, " in self._places or name == OFFSET for name in changed):
                self._places = self._places if call.text == self._places else ""
            if changed & (self._written | self._read) or self._written & set(call.reads):
                self._barrier()
            self.out.add(call.text)
            self._written |= changed
            self._read.update(call.reads)

    def _barrier(self) -> None:
        self.out.add("PipeBarrier<PIPE_V>();")
        self._written, self._read = set(), set()

    def _barrier_if_any(self) -> None:
        if self._written or self._read:
            self._barrier()

    # -- lengths ------------------------------------------------------------------------------------------------------

    def _lengths_of(self, buffer: str) -> tuple[str, ...]:
        known = self._length.get(buffer)
        if known is not None:
            return known
        self.needed.add(buffer)
        name = name_of(buffer)
        return (f"{name}Length", f"{name}Cols") if has_rows(self.kernel, buffer) else (f"{name}Length",)

    def _set_length(self, buffer: str, length: tuple[str, ...]) -> None:
        self._length[buffer] = length
        if buffer in self.lengths:
            name = name_of(buffer)
            for variable, text in zip((f"{name}Length", f"{name}Cols"), length, strict=False):
                if variable != text:
                    self.out.add(f"{variable} = {text};")

    def _forget(self, body: tuple[Statement, ...]) -> None:
        """Lengths that a body changes are known only while it runs."""
        self._places = ""
        for s in walk(body):
            written = writes(s)
            if written is not None:
                self._length[written] = None
            if isinstance(s, (Let, For)):
                name = s.name if isinstance(s, Let) else s.var
                for b, length in self._length.items():
                    if length is not None and any(name in part for part in length):
                        self._length[b] = None

    # -- pieces of text -----------------------------------------------------------------------------------------------

    @contextmanager
    def _scope(self, head: str, names: set[str], tail: str = "}") -> Iterator[None]:
        """A block of C++ whose names end with it; without a head the rest of a block that another's tail began."""
        self._scopes.append(set(names))
        with self.out.block(head, tail):
            yield
        self._scopes.pop()

    def _region(self, s: Load | Store) -> tuple[str, str, str]:
        """Count, rows ("" for one) and stride."""
        r = s.region
        if r.rows is None or r.stride is None:
            return self._int(r.count), "", ""
        return self._int(r.count), self._int(r.rows), self._int(r.stride)

    def _from(self, s: Load) -> str:
        return f"{name_of(s.tensor)}Gm, {self._int(s.region.offset)}, {self._int(s.region.count)}"

    def _rows(self, rows: str, stride: str, far: str) -> str:
        return f", {rows}, {stride}, {far}" if rows else ""

    def _literal(self, e: Expr, b: Buffer) -> str:
        text = self._expr(e)
        if b.dtype.floating and e.type != "float":
            return text + ".0f" if e.op == "num" else f"static_cast<float>({text})"
        return text

    def _int(self, e: Expr) -> str:
        return self._expr(e)

    def _expr(self, e: Expr) -> str:
        return cpp(e, self._leaf)

    def _leaf(self, e: Expr) -> str:
        if e.op == "var":
            return name_of(str(e.value))
        if e.op == "program_id":
            return "static_cast<int64_t>(GetBlockIdx())"
        if e.op == "num_programs":
            return "static_cast<int64_t>(GetBlockNum())"
        return f"{name_of(str(e.value))}.GetValue({self._int(e.args[0])})"

    def _queue_of(self, tensor: str, into: bool) -> Queue:
        return next(q for q in self.layout.queues if q.tensor == tensor and q.into == into)

    def _source(self, line: int) -> str:
        lines = self.program.text.splitlines()
        text = lines[line - 1].strip().rstrip("\\ ") if 0 < line <= len(lines) else ""  # no comment goes on
        return f"{line}: {text}"


def _stored_by_data(program: Program) -> set[str]:
    """Tensors with a store whose place is read from a tile, so that two of them may be the same."""
    read: set[str] = set()
    found: set[str] = set()
    for s in walk(program.kernel.body):
        if isinstance(s, Let) and (s.value.variables() & read or any(e.op == "extract" for e in s.value.walk())):
            read.add(s.name)
        elif isinstance(s, Store) and s.region.offset.variables() & read:
            found.add(s.tensor)
    return found


def _tight(text: str) -> str:
    return text if text.replace("_", "").isalnum() or text.endswith(")") else f"({text})"
