"""Tensors whose content nobody needs any more."""

from __future__ import annotations

import re

from .....sources.cpp import Function
from ...reading.classes import families
from ...reading.kernel_program import KernelProgram, where
from .one_element import unread


def dead(kernel: KernelProgram, f: Function, name: str, after: int) -> bool:
    """Is the tensor written anew before anybody reads it, behind a byte of the function and where others see it?"""
    if name in f.parameters or not unread(kernel, f, name, after):
        return False
    if name in declared(kernel, f):
        return True
    of = kernel.class_of(f)
    family = next((c for c in families(kernel).values() if of in c), frozenset([of]))
    others = (g for g in kernel.functions if where(g) != where(f) and kernel.class_of(g) in family)
    return all(name in declared(kernel, g) or unread(kernel, g, name, g.body.start_byte) for g in others)


def declared(kernel: KernelProgram, f: Function) -> set[str]:
    found = re.findall(r"(?:LocalTensor\s*<[^;=]*>|\bauto)\s*&?\s*(\w+)\s*[=;]", kernel.text(f.path, f.node))
    return set(found) | set(f.parameters)
