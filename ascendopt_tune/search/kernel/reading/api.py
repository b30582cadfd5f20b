"""The AscendC calls motifs know: names by what they do, and which operands they write and read.

Source: the AscendC API reference (operand order of each call). Count forms and mask forms have the same order.
"""

from __future__ import annotations

import re

from .kernel_program import ApiCall


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNARY = _names("Abs Exp Ln Not Reciprocal Relu Rsqrt Sqrt")
BINARY = _names("Add And Div Max Min Mul Or Sub AddRelu SubRelu AddReluCast SubReluCast")
SCALAR = _names("Adds LeakyRelu Maxs Mins Muls ShiftLeft ShiftRight")
ACCUMULATING = _names("Axpy FusedMulAdd FusedMulAddRelu MulAddDst")  # read their destination, too
OTHER = _names(
    "BlockReduceMax BlockReduceMin BlockReduceSum Brcb Broadcast Cast CastDeq Compare CompareScalar Compares Copy "
    "CreateVecIndex Duplicate Gather GatherMask Gatherb MrgSort PairReduceSum Pow ReduceMax ReduceMin ReduceSum "
    "RepeatReduceSum Select Sigmoid Sin Cos Tanh Erf Log SoftMax Sort32 Transpose WholeReduceMax WholeReduceMin "
    "WholeReduceSum"
)
VECTOR = UNARY | BINARY | SCALAR | ACCUMULATING | OTHER
ELEMENTWISE = UNARY | BINARY | SCALAR | ACCUMULATING | frozenset(["Cast", "Duplicate"])
COPY = _names("DataCopy DataCopyPad")

_NAME = re.compile(r"[A-Za-z_]\w*")


def root(expression: str) -> str:
    """The variable an operand starts from: ``x`` of ``x[i * n]``, ``this->x`` and ``x.ReinterpretCast<int16_t>()``."""
    found = _NAME.match(expression.lstrip("*&(").removeprefix("this->"))
    return found[0] if found else expression


def writes(call: ApiCall) -> frozenset[str]:
    """Roots of the operands a vector instruction or a copy writes (its work space counts)."""
    if call.name not in VECTOR | COPY or not call.args:
        return frozenset()
    extra = call.args[2:3] if call.name in ("ReduceMax", "ReduceMin", "ReduceSum") else ()
    return frozenset(root(a) for a in (call.args[0], *extra))


def reads(call: ApiCall) -> frozenset[str]:
    """Roots of every name in the operands that a vector instruction or a copy may read; scalars are among them."""
    if call.name not in VECTOR | COPY or not call.args:
        return frozenset()
    first = 0 if call.name in ACCUMULATING else 1
    return frozenset(name for a in call.args[first:] for name in _NAME.findall(a))


def depend(first: ApiCall, second: ApiCall) -> bool:
    """May the two touch the same bytes, at least one of them writing? By names of variables, so aliases are missed."""
    return bool(writes(first) & (reads(second) | writes(second)) or {root(a) for a in first.args} & writes(second))


def is_barrier(call: ApiCall, pipe: str) -> bool:
    """Is the call a barrier of the pipe, however it is spelled?"""
    return (call.name == "PipeBarrier" and pipe in call.template) or (
        call.name == "pipe_barrier" and call.args == (pipe,)
    )
