"""Wrong variants made by a program: mistakes at the nodes of the syntax trees of a kernel and of its tiling program.

An operator has no name here, and neither has a construct: what a node is (a comparison, a call, a number, a branch)
decides which mistakes it can hold. Most places allow several; many are found by everything (they end in a hazard or out
of bounds), the others are why the gate tries more than random numbers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.sources.cpp import Edit, apply_edits, breaks_syntax, program_of, tiling_functions, walk

Found = tuple[str, int, int, str]  # kind, first byte, byte behind the last, new text

# Calls with a number of elements as their last argument, by how many operands they have before it.
_COUNTED = re.compile(
    r"^(Abs|Add|Adds|Sub|Mul|Muls|Div|Max|Maxs|Min|Mins|Exp|Ln|Sqrt|Rsqrt|Reciprocal|Cast|Duplicate|ReduceSum|ReduceMax|"
    r"ReduceMin|Relu|Axpy|And|Or|Not|Select|Compare|CompareScalar|DataCopy|LeakyRelu|Tanh|Sigmoid|Sin|Cos|Erf)$"
)
_SWAPPED = {
    "Max": "Min", "Min": "Max", "ReduceMax": "ReduceMin", "ReduceMin": "ReduceMax", "Add": "Max", "Mul": "Add",
    "Maxs": "Mins", "Mins": "Maxs", "Adds": "Maxs", "Muls": "Adds", "Sub": "Add", "Sqrt": "Abs", "Exp": "Abs",
    "Abs": "Relu", "Ln": "Abs", "ReduceSum": "ReduceMax",
}  # fmt: skip
_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_COMPARE_MODES = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"}
_ROUNDINGS = ("CAST_RINT", "CAST_TRUNC", "CAST_FLOOR", "CAST_CEIL")  # CAST_ROUND differs from CAST_RINT at halves only
_SKIP = {"EnQue", "DeQue", "AllocTensor", "FreeTensor", "InitBuffer", "SetGlobalBuffer", "Get", "PipeBarrier"}
_SYNC = {"PipeBarrier", "SetFlag", "WaitFlag", "SyncAll", "set_flag", "wait_flag", "pipe_barrier"}


@dataclass(frozen=True)
class Mutant:
    """``what`` tells the change and its line; it is unique within an operator and kind."""

    kind: str
    what: str
    pair: Pair


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _call(node: Node) -> tuple[str, list[Node]]:
    """The name called, without namespace, receiver and template arguments, and the arguments."""
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    name = re.sub(r"<.*", "", _text(function) if function is not None else "", flags=re.DOTALL)
    return re.split(r"::|\.|->", name)[-1].replace("template ", "").strip(), (
        list(arguments.named_children) if arguments is not None else []
    )


def _replaced(kind: str, node: Node, text: str) -> Found:
    return kind, node.start_byte, node.end_byte, text


def _calls(node: Node) -> Iterator[Found]:
    if node.type != "call_expression":
        return
    name, arguments = _call(node)
    called = node.child_by_field_name("function")
    assert called is not None
    whole = node.parent is not None and node.parent.type == "expression_statement"
    if _COUNTED.match(name) and len(arguments) >= 3:
        last = arguments[-1]
        if last.type != "string_literal" and not re.search(r"[Pp]aram|PARAM", _text(last)):
            yield _replaced("counts", last, f"({_text(last)}) - 1")
            yield _replaced("counts", last, f"(({_text(last)}) > 8 ? ({_text(last)}) - 8 : ({_text(last)}))")
        if name in ("Sub", "Div"):
            yield _replaced("operands", arguments[1], _text(arguments[2]))
        first, second = arguments[0], arguments[1]
        if name not in ("DataCopy", "Duplicate", "Cast") and _text(first) != _text(second):
            yield _replaced("aliasing", first, _text(second))
    if name in _SWAPPED and re.search(rf"\b{name}\b", _text(called)):
        yield _replaced("arithmetic", called, re.sub(rf"\b{name}\b", _SWAPPED[name], _text(called), count=1))
    if whole and _COUNTED.match(name):
        yield _replaced("skipped", node, "(void)0")
    if whole and name in _SYNC:
        yield _replaced("synchronization", node, "(void)0")
    if name == "GetBlockIdx":
        yield _replaced("cores", node, "0")
        yield _replaced("cores", node, f"({_text(node)} ^ 1)")
    if name in ("min", "max") and len(arguments) == 2:
        other = "max" if name == "min" else "min"
        yield _replaced("clamps", called, re.sub(rf"\b{name}\b", other, _text(called)))
        yield _replaced("clamps", node, _text(arguments[0]))


def _operators(node: Node) -> Iterator[Found]:
    if node.type != "binary_expression":
        return
    operator = node.child_by_field_name("operator")
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    assert operator is not None
    assert left is not None
    assert right is not None
    sign = _text(operator)
    if sign in _COMPARISONS:
        yield _replaced("masks", operator, _COMPARISONS[sign])
    if sign in ("+", "-"):
        yield _replaced("epsilon", node, _text(left))
        yield _replaced("arithmetic", operator, "-" if sign == "+" else "+")
    if sign in ("*", "/"):
        yield _replaced("arithmetic", node, _text(left))
    if sign == "%":
        yield _replaced("tails", node, "0")
    if sign in ("&&", "||"):
        yield _replaced("masks", operator, "||" if sign == "&&" else "&&")


def _branches(node: Node) -> Iterator[Found]:
    if node.type == "conditional_expression":
        yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        assert yes is not None
        assert no is not None
        yield _replaced("clamps", node, _text(yes))
        yield _replaced("clamps", node, _text(no))
    condition = node.child_by_field_name("condition")
    text = _text(condition) if condition is not None else ""
    fixed = "constexpr" in _text(node).split("(")[0] or re.search(r"TILING_KEY|nullptr|is_same", text)
    if node.type == "if_statement" and condition is not None and not fixed:
        yield _replaced("masks", condition, "(true)")
        yield _replaced("masks", condition, "(false)")
    if node.type == "for_statement" and condition is not None and condition.type == "binary_expression":
        right, update = condition.child_by_field_name("right"), node.child_by_field_name("update")
        start = node.child_by_field_name("initializer")
        if right is not None:
            yield _replaced("tails", right, f"({_text(right)}) - 1")
        if start is not None and re.search(r"=\s*0\s*;?$", _text(start)):
            yield _replaced("tails", start, re.sub(r"0(\s*;?)$", r"1\1", _text(start)))
        if update is not None and "+=" in _text(update):
            yield _replaced("tails", update, f"{_text(update)} + 1")
    if node.type == "assignment_expression":
        operator = node.child_by_field_name("operator")
        if operator is not None and _text(operator) in ("+=", "*=", "-="):
            yield _replaced("initial values", operator, "=")


def _numbers(node: Node) -> Iterator[Found]:
    if node.type != "number_literal":
        return
    text = _text(node)
    parent = node.parent
    if parent is not None and parent.type in ("template_argument_list", "preproc_def"):
        return
    if re.fullmatch(r"[0-9]*\.[0-9]*(e[-+]?\d+)?[fF]?", text):
        value = float(text.rstrip("fF"))
        for new in (0.0, value * 1.01, value + 1e-3, -value):
            if new != value:
                yield _replaced("initial values", node, f"{new!r}f")
    elif re.fullmatch(r"\d+[uUlL]*", text):
        value = int(re.sub(r"[uUlL]", "", text))
        yield _replaced("numbers", node, f"{value + 1}")
        if value > 1:
            yield _replaced("numbers", node, f"{value - 1}")
            yield _replaced("numbers", node, f"{value // 2}")
        if value == 1:
            yield _replaced("numbers", node, "0")


def _names(node: Node) -> Iterator[Found]:
    text = _text(node)
    if node.type in ("identifier", "qualified_identifier", "field_identifier"):
        mode = re.search(r"\bCMPMODE::(\w\w)$", text)
        if mode and mode[1] in _COMPARE_MODES:
            yield _replaced("masks", node, text.replace(mode[1], _COMPARE_MODES[mode[1]]))
        rounding = re.search(r"CAST_\w+$", text)
        if rounding and rounding[0] in _ROUNDINGS and not (node.parent and node.parent.type == node.type):
            for other in _ROUNDINGS:
                if other != rounding[0]:
                    yield _replaced("rounding", node, text.replace(rounding[0], other))
    if node.type == "unary_expression" and text.startswith(("-", "!")):
        yield _replaced("arithmetic", node, text[1:])
    if node.type == "subscript_expression":
        index = node.child_by_field_name("indices")
        if index is not None and index.named_children and "Gm" in text:
            inner = index.named_children[0]
            yield _replaced("indices", inner, f"({_text(inner)}) + 1")
            yield _replaced("indices", inner, f"(({_text(inner)}) > 0 ? ({_text(inner)}) - 1 : 0)")


def _state(node: Node) -> Iterator[Found]:
    plain = re.match(r"(u?int\d*(_t)?|float|bool|unsigned)\s+\w+\s*=", _text(node))
    if node.type == "declaration" and plain and not (node.parent and node.parent.type == "for_statement"):
        yield _replaced("state", node, f"static {_text(node)}")
        yield _replaced("uninitialized", node, re.sub(r"\s*=.*;", ";", _text(node), flags=re.DOTALL))


def _settings(node: Node) -> Iterator[Found]:
    """Calls of a tiling program that hand something to the kernel."""
    if node.type != "call_expression":
        return
    name, arguments = _call(node)
    if len(arguments) == 1 and (name.startswith("set_") or name in ("SetBlockDim", "SetTilingKey")):
        text = _text(arguments[0])
        for new in (f"({text}) + 1", f"({text}) - 1", "0", f"({text}) / 2"):
            yield _replaced("tiling", arguments[0], new)
    if name in ("GetFloat", "GetInt", "GetBool", "GetAttrPointer") and arguments:
        yield _replaced("attributes", arguments[0], f"({_text(arguments[0])}) + 1")


Finder = Callable[[Node], Iterator[Found]]
KERNEL: tuple[Finder, ...] = (_calls, _operators, _branches, _numbers, _names, _state)
TILING: tuple[Finder, ...] = (_settings, _operators, _branches, _numbers, _state)


def mutants(operator: Operator, tiling_key: int | None = None) -> Iterator[Mutant]:
    """Every mutant of the operator's baseline, in the order of its sources."""
    base = operator.baseline
    kernel = KernelProgram(base.kernel, tiling_key=tiling_key)
    for f in kernel.functions:
        dead = list(kernel._dead_ranges(f))
        for node in walk(f.body):
            if not any(a <= node.start_byte < b for a, b in dead):
                for finder in KERNEL:
                    yield from _made(base, dict(base.kernel), f.path, finder(node), True)
    host = program_of(base.tiling)
    for f in tiling_functions(host):
        for node in walk(f.body):
            for finder in TILING:
                yield from _made(base, dict(base.tiling), f.path, finder(node), False)


def _made(base: Pair, files: dict[str, str], path: str, found: Iterator[Found], kernel: bool) -> Iterator[Mutant]:
    program = program_of(files)
    data = program.files[path].data
    for kind, begin, end, new in found:
        changed = apply_edits(files, (Edit(path, begin, end, new),))
        if changed[path] == files[path] or breaks_syntax(files, changed):
            continue
        line = data.count(b"\n", 0, begin) + 1
        old = re.sub(r"\s+", " ", data[begin:end].decode("utf-8", "replace"))[:60]
        pair = base.with_kernel(path, changed[path]) if kernel else base.with_tiling(path, changed[path])
        yield Mutant(kind, f"{path}:{line}: {old} -> {' '.join(new.split())[:60]}", pair)


def some(operator: Operator, count: int, seed: int = 0, tiling_key: int | None = None) -> list[Mutant]:
    """``count`` mutants of the operator, of every kind about as many."""
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in mutants(operator, tiling_key):
        by_kind.setdefault(mutant.kind, []).append(mutant)
    rng = random.Random(seed)
    for group in by_kind.values():
        rng.shuffle(group)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(by_kind.values()):
        for kind in sorted(by_kind):
            if by_kind[kind] and len(chosen) < count:
                chosen.append(by_kind[kind].pop())
    return chosen
