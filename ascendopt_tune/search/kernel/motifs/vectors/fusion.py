"""One vector instruction instead of two: fused ones, and chains."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...reading.api import VECTOR, is_barrier, root, writes
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ..motif import Change, Motif
from .pairs import dead_behind, floats, one, pairs
from .products_in_place import products_in_place
from .products_in_repeats import products_in_repeats


def two(kernel: KernelProgram, call: ApiCall, first: str, second: str, change: str) -> Change:
    """The call replaced by two instructions, the second dependent on the first."""
    assert call.statement is not None
    indent = kernel.indent(call.path, call.statement)
    barrier = "" if kernel.auto_sync else f"PipeBarrier<PIPE_V>();\n{indent}"
    edit = kernel.replace(call.path, call.statement, f"{first};\n{indent}{barrier}{second};")
    return Change(kernel.site(call.function, call.statement), f"{change} in {call.function.name}", (edit,))


def statements(kernel: KernelProgram, *names: str) -> Iterator[ApiCall]:
    """Whole statements in blocks of their own."""
    for call in kernel.named(*names):
        s = call.statement
        if s is not None and s.parent is not None and s.parent.type == "compound_statement":
            yield call


# -- fused multiply and add --------------------------------------------------------------------------------------------


def _fused_faster(kernel: KernelProgram) -> Iterator[Change]:
    yield from _adjacent(kernel)
    yield from products_in_repeats(kernel)
    yield from products_in_place(kernel)
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            if step.call is not None and step.call.name == "Add" and len(step.call.args) == 4:
                yield from _apart(kernel, block, i, step.call)


def _adjacent(kernel: KernelProgram) -> Iterator[Change]:
    for pair in pairs(kernel):
        a, b = pair.first, pair.second
        if (
            len(a.args) != 4
            or a.args[3:] != b.args[3:]
            or b.name not in ("Add", "Sub")
            or a.name not in ("Mul", "Muls")
        ):
            continue
        product, (target, *terms) = a.args[0], b.args[:3]
        if product not in terms or not floats(kernel, b):
            continue
        if b.name == "Sub":
            if a.name == "Muls" and terms == [target, product] and target not in (product, a.args[1]):
                text = b.spelled("Axpy", target, a.args[1], f"-({a.args[2]})", b.args[3])
                yield one(kernel, pair, text, "Muls and Sub made Axpy")
            continue
        other = terms[1] if terms[0] == product else terms[0]
        if a.name == "Mul" and target == product and product in a.args[1:3] and other != product:
            factor = a.args[2] if a.args[1] == product else a.args[1]
            text = b.spelled("FusedMulAdd", product, factor, other, b.args[3])
            yield one(kernel, pair, text, "Mul and Add made FusedMulAdd")
        elif target == other and target != product:
            name = "Axpy" if a.name == "Muls" else "MulAddDst"
            text = b.spelled(name, target, a.args[1], a.args[2], b.args[3])
            yield one(kernel, pair, text, f"{a.name} and Add made {name}")


def _apart(kernel: KernelProgram, block: Block, i: int, total: ApiCall) -> Iterator[Change]:
    """A product made some statements in front of the sum, or behind a condition of its own.

    ``if (c) Muls(x, x, s, n);`` in front of ``Add(y, y, x, n);`` is ``if (c) Axpy(y, x, s, n); else Add(y, y, x, n);``.
    """
    target, *terms, count = total.args
    for product in (t for t in terms if t != target and target in terms):
        found = _made(kernel, block, i, product, target)
        if found is None or found[1].args[3] != count or not floats(kernel, total) or total.statement is None:
            continue
        k, made, head = found
        if head and made.args[1] != product:
            continue
        path = block.function.path
        text = total.spelled("Axpy" if made.name == "Muls" else "MulAddDst", target, *made.args[1:])
        if head:
            text = f"{head} {{ {text}; }} else {{ {kernel.text(path, total.node)}; }}"
            lost = "PipeBarrier" in kernel.text(path, block.steps[k].node)
            if lost and not any(s.call and is_barrier(s.call, "PIPE_V") for s in block.steps[k + 1 : i]):
                text = f"PipeBarrier<PIPE_V>(); {text}"
        else:
            text += ";"
        edits = (kernel.delete(path, block.steps[k].node), kernel.replace(path, total.statement, text))
        site = kernel.site(block.function, block.steps[k].node)
        what = f"{made.name} and Add made {'Axpy' if made.name == 'Muls' else 'MulAddDst'}"
        yield Change(f"{site}/apart", f"{what} in {block.function.name}", edits)


def _made(kernel: KernelProgram, block: Block, i: int, product: str, target: str) -> tuple[int, ApiCall, str] | None:
    """(step, instruction, the condition it stands behind) that makes ``product``, which nothing but step ``i`` reads.

    None where what stands between writes one of the operands, or where the two follow one another.
    """
    path = block.function.path
    name, sum_ = (re.compile(rf"\b{re.escape(root(x))}\b") for x in (product, target))
    for step in block.steps[i + 1 :]:
        if name.search(kernel.text(path, step.node)):
            if step.call is None or step.call.name != "FreeTensor":
                return None
            break
    between: list[ApiCall] = []
    for k in range(i - 1, -1, -1):
        step = block.steps[k]
        call, head = step.call, ""
        if call is None:
            call, head = _chosen(kernel, block, step)
        if call is not None and call.args[:1] == (product,) and call.name in ("Mul", "Muls") and len(call.args) == 4:
            sources = {root(a) for a in call.args[1:]}
            kept = not any(writes(c) & sources for c in between) and root(target) not in sources | {root(product)}
            near = not head and all(is_barrier(c, "PIPE_V") for c in between)
            return (k, call, head) if kept and not near else None
        if step.node.type == "comment":
            continue
        plain = step.call is not None and step.call.name in VECTOR | {"PipeBarrier", "pipe_barrier", "FreeTensor"}
        if not plain or name.search(kernel.text(path, step.node)):
            return None
        assert step.call is not None
        between.append(step.call)
        if sum_.search(kernel.text(path, step.node)) and step.call.name == "FreeTensor":
            return None
    return None


def _chosen(kernel: KernelProgram, block: Block, step: BlockStep) -> tuple[ApiCall | None, str]:
    """The one instruction behind a condition, without another branch, and ``if (...)`` as written."""
    then = step.node.child_by_field_name("consequence") if step.node.type == "if_statement" else None
    if then is None or step.node.child_by_field_name("alternative") is not None:
        return None, ""
    statements = then.named_children if then.type == "compound_statement" else [then]
    calls = [kernel.call_of(block.function, n) for n in statements if n.type != "comment"]
    work = [c for c in calls if c is None or not is_barrier(c, "PIPE_V")]
    if len(work) != 1 or work[0] is None:
        return None, ""
    head = kernel.program.files[block.function.path].data[step.node.start_byte : then.start_byte]
    return work[0], head.decode("utf-8", "replace").strip()


def _fused_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in statements(kernel, "Axpy", "MulAddDst", "FusedMulAdd"):
        if len(call.args) != 4:
            continue
        d, x, y, n = call.args
        if call.name == "FusedMulAdd":
            first, second = call.spelled("Mul", d, d, x, n), call.spelled("Add", d, d, y, n)
        else:
            product = call.spelled("Muls" if call.name == "Axpy" else "Mul", x, x, y, n)
            first, second = product, call.spelled("Add", d, d, x, n)
        yield two(kernel, call, first, second, f"{call.name} made two instructions")


# -- Relu behind Add or Sub, products of constants ---------------------------------------------------------------------


def _chained_faster(kernel: KernelProgram) -> Iterator[Change]:
    for pair in pairs(kernel):
        a, b = pair.first, pair.second
        if len(a.args) != 4 or b.args[1:2] != a.args[:1] or a.args[-1] != b.args[-1]:
            continue
        if b.args[0] != a.args[0] and not dead_behind(kernel, pair):
            continue
        if a.name in ("Add", "Sub") and b.name == "Relu" and len(b.args) == 3:
            text = b.spelled(f"{a.name}Relu", b.args[0], *a.args[1:])
            yield one(kernel, pair, text, f"{a.name} and Relu made {a.name}Relu")
        elif a.name == b.name and a.name in ("Muls", "Adds") and len(b.args) == 4:
            sign = "*" if a.name == "Muls" else "+"
            text = b.spelled(a.name, b.args[0], a.args[1], f"({a.args[2]}) {sign} ({b.args[2]})", b.args[3])
            yield one(kernel, pair, text, f"two {a.name} made one")


def _chained_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in statements(kernel, "AddRelu", "SubRelu", "Muls"):
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
                yield two(kernel, call, first, second, "Muls made two")
        else:
            name = call.name.removesuffix("Relu")
            yield two(
                kernel, call, call.spelled(name, d, x, y, n), call.spelled("Relu", d, d, n), f"{call.name} made two"
            )


FUSED_MULTIPLY_ADD = Motif(
    name="fused-multiply-add",
    title="Multiply and add in one instruction",
    description="Muls + Add is Axpy, Mul + Add is MulAddDst or FusedMulAdd, also where products by repeats are summed "
    "up later: one pass over the data and no wait between two dependent instructions.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="The product is needed for the sum only; rounding between the two is not relied upon.",
    faster=_fused_faster,
    slower=_fused_slower,
    through_calls=True,
)

CHAINED_INSTRUCTIONS = Motif(
    name="chained-instructions",
    title="Chains that one instruction does",
    description="Add or Sub with a Relu behind is AddRelu or SubRelu; two Muls or two Adds by scalars are one.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="The value between the two is not needed elsewhere.",
    faster=_chained_faster,
    slower=_chained_slower,
    together="no",  # a product of two factors may be none of the type's: 2^12 and 2^12 in half
    through_calls=True,
)
