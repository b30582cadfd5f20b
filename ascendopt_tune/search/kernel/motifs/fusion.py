"""One vector instruction instead of two: fused ones, constants as scalar operands, results that are there already."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .api import ACCUMULATING, VECTOR, root
from .barriers import is_barrier
from .kernel_program import ApiCall, Block, BlockStep, KernelProgram
from .motif import Change, Motif


@dataclass(frozen=True)
class _Pair:
    """Two vector instructions that follow one another, barriers of the vector pipe between them left aside."""

    block: Block
    first: ApiCall
    second: ApiCall
    between: tuple[BlockStep, ...]


def _pairs(kernel: KernelProgram) -> Iterator[_Pair]:
    for block in kernel.blocks:
        last: tuple[int, ApiCall] | None = None
        for i, step in enumerate(block.steps):
            call = step.call
            if call is not None and is_barrier(call, "PIPE_V"):
                continue
            if call is None or call.name not in VECTOR:
                last = None
                continue
            if last is not None:
                yield _Pair(block, last[1], call, block.steps[last[0] + 1 : i])
            last = (i, call)


def _one(kernel: KernelProgram, pair: _Pair, text: str, change: str) -> Change:
    """The pair replaced by one instruction."""
    path = pair.block.function.path
    first, second = pair.first.statement, pair.second.statement
    assert first is not None
    assert second is not None
    edits = [kernel.delete(path, s) for s in (first, *(s.node for s in pair.between))]
    edits.append(kernel.replace(path, second, f"{text};"))
    return Change(kernel.site(pair.block.function, first), f"{change} in {pair.block.function.name}", tuple(edits))


def _two(kernel: KernelProgram, call: ApiCall, first: str, second: str, change: str) -> Change:
    """The call replaced by two instructions, the second dependent on the first."""
    assert call.statement is not None
    indent = kernel.indent(call.path, call.statement)
    barrier = "" if kernel.auto_sync else f"PipeBarrier<PIPE_V>();\n{indent}"
    edit = kernel.replace(call.path, call.statement, f"{first};\n{indent}{barrier}{second};")
    return Change(kernel.site(call.function, call.statement), f"{change} in {call.function.name}", (edit,))


def _statements(kernel: KernelProgram, *names: str) -> Iterator[ApiCall]:
    """Whole statements in blocks of their own."""
    for call in kernel.named(*names):
        s = call.statement
        if s is not None and s.parent is not None and s.parent.type == "compound_statement":
            yield call


# -- fused multiply and add --------------------------------------------------------------------------------------------


def _fused_faster(kernel: KernelProgram) -> Iterator[Change]:
    for pair in _pairs(kernel):
        a, b = pair.first, pair.second
        if len(a.args) != 4 or a.args[3:] != b.args[3:] or b.name != "Add" or a.name not in ("Mul", "Muls"):
            continue
        product, (target, *terms) = a.args[0], b.args[:3]
        if product not in terms:
            continue
        other = terms[1] if terms[0] == product else terms[0]
        if a.name == "Mul" and target == product and product in a.args[1:3] and other != product:
            factor = a.args[2] if a.args[1] == product else a.args[1]
            text = b.spelled("FusedMulAdd", product, factor, other, b.args[3])
            yield _one(kernel, pair, text, "Mul and Add made FusedMulAdd")
        elif target == other and target != product:
            name = "Axpy" if a.name == "Muls" else "MulAddDst"
            text = b.spelled(name, target, a.args[1], a.args[2], b.args[3])
            yield _one(kernel, pair, text, f"{a.name} and Add made {name}")


def _fused_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in _statements(kernel, "Axpy", "MulAddDst", "FusedMulAdd"):
        if len(call.args) != 4:
            continue
        d, x, y, n = call.args
        if call.name == "FusedMulAdd":
            first, second = call.spelled("Mul", d, d, x, n), call.spelled("Add", d, d, y, n)
        else:
            product = call.spelled("Muls" if call.name == "Axpy" else "Mul", x, x, y, n)
            first, second = product, call.spelled("Add", d, d, x, n)
        yield _two(kernel, call, first, second, f"{call.name} made two instructions")


# -- Relu behind Add or Sub, products of constants ---------------------------------------------------------------------


def _chained_faster(kernel: KernelProgram) -> Iterator[Change]:
    for pair in _pairs(kernel):
        a, b = pair.first, pair.second
        if len(a.args) != 4 or b.args[:2] != (a.args[0], a.args[0]) or a.args[-1] != b.args[-1]:
            continue
        if a.name in ("Add", "Sub") and b.name == "Relu" and len(b.args) == 3:
            text = b.spelled(f"{a.name}Relu", *a.args)
            yield _one(kernel, pair, text, f"{a.name} and Relu made {a.name}Relu")
        elif a.name == b.name and a.name in ("Muls", "Adds") and len(b.args) == 4:
            sign = "*" if a.name == "Muls" else "+"
            text = b.spelled(a.name, *a.args[:2], f"({a.args[2]}) {sign} ({b.args[2]})", b.args[3])
            yield _one(kernel, pair, text, f"two {a.name} made one")


def _chained_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in _statements(kernel, "AddRelu", "SubRelu", "Muls"):
        if len(call.args) != 4:
            continue
        d, x, y, n = call.args
        if call.name == "Muls":
            power = re.fullmatch(r"\(?(-?[0-9.]+)([fF]?)\)?", y)
            if power and "." in power[1]:
                half = f"{float(power[1]) / 2:g}"
                half += "" if "." in half else ".0"
                first = call.spelled("Muls", d, x, f"{half}{power[2]}", n)
                second = call.spelled("Muls", d, d, f"2.0{power[2]}", n)
                yield _two(kernel, call, first, second, "Muls made two")
        else:
            name = call.name.removesuffix("Relu")
            yield _two(
                kernel, call, call.spelled(name, d, x, y, n), call.spelled("Relu", d, d, n), f"{call.name} made two"
            )


# -- constants as scalar operands --------------------------------------------------------------------------------------

_SCALAR_FORM = {"Add": ("Adds", "{}"), "Mul": ("Muls", "{}"), "Max": ("Maxs", "{}"), "Min": ("Mins", "{}"),
                "Sub": ("Adds", "-({})"), "Div": ("Muls", "1 / ({})")}  # fmt: skip
_TENSOR_FORM = {"Adds": "Add", "Muls": "Mul", "Maxs": "Max", "Mins": "Min"}


def _constant_faster(kernel: KernelProgram) -> Iterator[Change]:
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            fill = step.call
            if fill is None or fill.name != "Duplicate" or len(fill.args) != 3:
                continue
            user = _only_user(kernel, block, i, fill)
            if user is None or user.name not in _SCALAR_FORM or len(user.args) != 4:
                continue
            constant = fill.args[0]
            data = [a for a in user.args[1:3] if a != constant]
            if len(data) != 1 or (user.name in ("Sub", "Div") and user.args[2] != constant):
                continue
            name, form = _SCALAR_FORM[user.name]
            value = form.format(fill.args[1])
            if user.name == "Div" and re.fullmatch(r"\(?\d+\)?", fill.args[1]):
                continue  # an integer's reciprocal is 0
            assert user.statement is not None
            text = user.spelled(name, user.args[0], data[0], value, user.args[3])
            edits = (kernel.delete(fill.path, step.node), kernel.replace(user.path, user.statement, f"{text};"))
            change = f"{user.name} with a constant tensor in {block.function.name} made {name}"
            yield Change(kernel.site(block.function, step.node), change, edits)


def _only_user(kernel: KernelProgram, block: Block, i: int, fill: ApiCall) -> ApiCall | None:
    """The one instruction of the block that reads what ``fill`` wrote, before it is written again."""
    name = re.compile(rf"\b{re.escape(root(fill.args[0]))}\b")
    users: list[ApiCall | None] = []
    for step in block.steps[i + 1 :]:
        if not name.search(kernel.text(block.function.path, step.node)):
            continue
        call = step.call
        if call is not None and call.name in VECTOR and fill.args[0] in call.args[1:]:
            users.append(call)
        if call is not None and call.name in VECTOR and call.args[0] == fill.args[0] and call.name not in ACCUMULATING:
            break
        if call is None or call.name not in VECTOR | {"FreeTensor"}:
            users.append(None)
    return users[0] if len(users) == 1 else None


def _constant_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in _statements(kernel, *_TENSOR_FORM):
        if len(call.args) != 4 or root(call.args[0]) == root(call.args[1]):
            continue
        if not kernel.repeated(call.function, call.node):
            continue
        d, x, value, n = call.args
        first, second = call.spelled("Duplicate", d, value, n), call.spelled(_TENSOR_FORM[call.name], d, x, d, n)
        yield _two(kernel, call, first, second, f"{call.name} made Duplicate and {_TENSOR_FORM[call.name]}")


FUSED_MULTIPLY_ADD = Motif(
    name="fused-multiply-add",
    title="Multiply and add in one instruction",
    description="Muls + Add is Axpy, Mul + Add is MulAddDst or FusedMulAdd: one pass over the data and no wait "
    "between two dependent instructions.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="The product is needed for the sum only; rounding between the two is not relied upon.",
    faster=_fused_faster,
    slower=_fused_slower,
)

CHAINED_INSTRUCTIONS = Motif(
    name="chained-instructions",
    title="Chains that one instruction does",
    description="Add or Sub with a Relu behind is AddRelu or SubRelu; two Muls or two Adds by scalars are one.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="The value between the two is not needed elsewhere.",
    faster=_chained_faster,
    slower=_chained_slower,
)

SCALAR_OPERAND = Motif(
    name="scalar-operand",
    title="A constant as scalar operand",
    description="A tensor filled with one value (Duplicate) that one binary instruction reads costs a pass of its "
    "own; Adds, Muls, Maxs and Mins take the value itself.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="The filled tensor has no other reader.",
    faster=_constant_faster,
    slower=_constant_slower,
)
