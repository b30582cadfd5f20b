"""What declarations say of tensors, GlobalTensors and LocalTensors: names and element types, as written; and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from tree_sitter import Node

from ....sources.cpp import Function
from .kernel_program import KernelProgram

_GLOBAL = re.compile(r"\bGlobalTensor\s*<\s*([^;{}()]*?)\s*>\s*&?\s*([\w\s,]+)[;,)]")
_LOCAL = re.compile(r"\bLocalTensor\s*<\s*([^<>;]+?)\s*>\s*&?\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*(?=\s*[,;=]))*)")
_GOT = re.compile(  # the last of several calls in a row says the type
    r"\bauto\s*&?\s*([A-Za-z_]\w*)\s*=[^;]*\b(?:Get|AllocTensor|DeQue|ReinterpretCast)\s*<\s*([\w:]+)\s*>"
)


def element_types(kernel: KernelProgram) -> dict[str, str]:
    """Name of a GlobalTensor -> its element type, as written."""
    return {
        name.strip(): kind
        for source in kernel.program.files.values()
        for kind, names in _GLOBAL.findall(source.data.decode("utf-8", "replace"))
        for name in names.split(",")
    }


def element_type(kernel: KernelProgram, f: Function, name: str) -> str | None:
    """The element type of a GlobalTensor, as written where a function sees it: in itself, its class, then any file."""
    held = kernel.class_node(f)
    for path, node in ((f.path, f.node), *([held] if held is not None else [])):
        for kind, names in _GLOBAL.findall(kernel.text(path, node)):
            if name in [n.strip() for n in names.split(",")]:
                return str(kind)
    return element_types(kernel).get(name)


def global_tensors(kernel: KernelProgram) -> set[str]:
    """Names of GlobalTensors."""
    return set(element_types(kernel))


def local_types(texts: Iterable[str]) -> dict[str, str]:
    """Name of a LocalTensor -> its element type as written, where all of that name have the same."""
    return {name: next(iter(kinds)) for name, kinds in local_kinds(texts).items() if len(kinds) == 1}


def types_at(kernel: KernelProgram, f: Function, node: Node) -> dict[str, str]:
    """Name of a LocalTensor -> its element type as written, as a node of the function sees it.

    Of a name that is declared more than once, as in both sides of a choice, what the blocks around the node declare.
    """
    out = local_types([kernel.text(f.path, f.node)])
    around, block = [], node.parent
    while block is not None and block != f.node:
        around.append(block)
        block = block.parent
    for block in reversed(around):
        for child in block.named_children if block.type == "compound_statement" else ():
            if child.type == "declaration" and child.start_byte < node.start_byte:
                out |= local_types([kernel.text(f.path, child)])
    return out


def local_kinds(texts: Iterable[str]) -> dict[str, set[str]]:
    """Name of a LocalTensor -> the element types, as written, of all that have that name."""
    found: dict[str, set[str]] = {}
    for text in texts:
        for kind, names in _declared(text):
            for name in names.split(","):
                found.setdefault(name.strip(), set()).add(kind.strip())
    return found


@lru_cache(maxsize=256)  # motifs ask the same files and functions
def _declared(text: str) -> tuple[tuple[str, str], ...]:
    """(element type, names) of the declarations in a text."""
    return (*_LOCAL.findall(text), *((kind, name) for name, kind in _GOT.findall(text)))


@lru_cache(maxsize=32)
def _kinds_of(texts: tuple[str, ...]) -> dict[str, set[str]]:
    return local_kinds(texts)


def kinds_in(kernel: KernelProgram, f: Function) -> dict[str, set[str]]:
    """Name of a LocalTensor -> its element types, as a function sees it: its own, its class', then any of the files'.

    A template parameter of the class is the type that the files give it, where that is one.
    """
    held = kernel.class_node(f)
    out = dict(_kinds_of(tuple(kernel.files.values())))
    out.update(_kinds_of((kernel.text(*held),)) if held is not None else {})
    out.update(local_kinds([kernel.text(f.path, f.node)]))
    given = {kind: kernel.given(f, kind) for kinds in out.values() for kind in kinds}
    return {name: {next(iter(given[k])) if len(given[k]) == 1 else k for k in kinds} for name, kinds in out.items()}


def listed(text: str) -> list[str]:
    """What stands between the commas of a list, those within brackets left aside."""
    out, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            out.append(text[start:k].strip())
            start = k + 1
    return [*out, text[start:].strip()]
