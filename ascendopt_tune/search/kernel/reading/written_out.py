"""Calls of the kernel's own small functions, written out: the function's statements in place of the call.

1. A call is written out where it is a statement, of a function that returns nothing, has one definition and is of the
   caller's class or of none; and so are those that it calls, ``_DEPTH`` levels deep.
2. What is given stands for a parameter where it is a name or a number that nobody changes on the way; anything else is
   declared in front, under the parameter's name. A name that the caller has too gets a number.
3. A tensor that somebody before has asked the same buffer for is that one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from ....sources.cpp import Edit, Function, walk
from .kernel_program import ApiCall, KernelProgram, Where, where

_DEPTH = 3
_LARGE = 60  # statements: larger functions are not written out. Chosen by judgement
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"(?:this->)?[A-Za-z_]\w*")
_NUMBER = re.compile(r"\d+[uUlL]*|true|false")
_WHOLE = re.compile(r"u?int\d*_?t?|bool|unsigned|size_t|u?int\d+_t")
_PARAMETER = re.compile(r"(.*?)([&*\s]+)([A-Za-z_]\w*)", re.DOTALL)
_LEAVES = ("return_statement", "goto_statement", "labeled_statement", "lambda_expression", "alias_declaration")
_GOT = re.compile(
    r"(?:AscendC::)?LocalTensor\s*<[^;=]*>\s*([A-Za-z_]\w*)\s*=\s*(?:this->)?(\w+\s*\.\s*(?:template\s+)?Get\s*<[^;()]*>\(\));"
)


@dataclass(frozen=True)
class Piece:
    """A run of text, and where it stands in the kernel (path, byte); None for what is written anew."""

    text: str
    origin: tuple[str, int] | None = None


Rewritten = tuple[Function, Edit, tuple[Piece, ...]]  # of which function, what, and the pieces of its text


def written_out(kernel: KernelProgram) -> Iterator[Rewritten]:
    """Each call of a live function that may be written out."""
    writer = _Writer(kernel)
    for f in kernel.functions:
        yield from writer.of(f)


@dataclass
class _Names:
    """Of a function that is being written: words taken, and by buffer the tensors that it was asked for: (name, the
    caller's block)."""

    used: set[str]
    got: dict[str, list[tuple[str, Node]]] = field(default_factory=dict)

    def fresh(self, name: str) -> str:
        number, out = 1, name
        while out in self.used:
            number += 1
            out = f"{name}{number}"
        self.used.add(out)
        return out


class _Writer:
    def __init__(self, kernel: KernelProgram) -> None:
        self.kernel = kernel
        self.by_name: dict[str, list[Function]] = {}
        for f in kernel.functions:
            self.by_name.setdefault(f.name, []).append(f)
        self.may: dict[Where, bool] = {}

    def of(self, f: Function) -> Iterator[Rewritten]:
        """The calls of one function."""
        names = _Names(set(_WORD.findall(self.kernel.text(f.path, f.node))))
        for n in walk(f.body):
            if n.type == "declaration" and n.parent is not None:
                self._ask(f, n, {}, names, n.parent)
            call = self.kernel.call_of(f, n)
            callee = self._called(call, f) if call is not None else None
            if call is None or callee is None or n.parent is None:
                continue
            pieces = self._expanded(callee, list(call.args), names, _DEPTH - 1, n.parent)
            if pieces is not None:
                edit = self.kernel.replace(f.path, n, "".join(p.text for p in pieces))
                yield f, edit, tuple(pieces)

    # -- which -------------------------------------------------------------------------------------------------------

    def _called(self, call: ApiCall, f: Function) -> Function | None:
        """The function of the kernel's that is called by a statement, if it can be written out."""
        classes = ("", self.kernel.class_of(f))
        found = [g for g in self.by_name.get(call.name, ()) if self.kernel.class_of(g) in classes]
        s = call.statement
        if len(found) != 1 or call.template or call.receiver not in ("", "this") or s is None:
            return None
        callee = found[0]
        plain = s.parent is not None and s.parent.type == "compound_statement"
        if not plain or len(callee.parameters) != len(call.args):
            return None
        key = where(callee)
        if key not in self.may:
            self.may[key] = self._can_be(callee)
        return callee if self.may[key] and key != where(f) else None

    def _can_be(self, f: Function) -> bool:
        kind = f.node.child_by_field_name("type")
        if kind is None or self.kernel.text(f.path, kind) != "void":
            return False
        parent, head = f.node.parent, self.kernel.text(f.path, f.node).partition("(")[0]
        if parent is not None and parent.type == "template_declaration" and "::" not in head:
            return False
        inside = list(walk(f.body))
        text = self.kernel.text(f.path, f.body)
        if any(n.type in _LEAVES or n.type.startswith("preproc") for n in inside) or re.search(r"\bstatic\b", text):
            return False
        if any(c.name == f.name for c in self.kernel.calls_of(f)) or "TILING_KEY_IS" in text:
            return False
        return sum(n.type.endswith("_statement") or n.type == "declaration" for n in inside) <= _LARGE

    # -- the text ----------------------------------------------------------------------------------------------------

    def _expanded(
        self, f: Function, args: list[str], names: _Names, depth: int, block: Node | None
    ) -> list[Piece] | None:
        """What comes in place of a call of ``f`` in a block; ``names`` learns what is declared by it."""
        parameters = self._parameters(f)
        if parameters is None or len(parameters) != len(args):
            return None
        written = self._written(f)
        stands: dict[str, str] = {}
        out: list[Piece] = []
        for k, ((kind, name), given) in enumerate(zip(parameters, args, strict=True)):
            named = _NAME.fullmatch(given) is not None
            if f.by_reference[k] and name in written and not named:
                return None
            whole = _NUMBER.fullmatch(given) is not None and _WHOLE.fullmatch(kind) is not None
            kept = named and given.removeprefix("this->") not in written and name not in written
            if (f.by_reference[k] and named) or kept or (whole and name not in written):
                stands[name] = given
            else:
                stands[name] = names.fresh(name)
                out.append(Piece(f"{kind} {stands[name]} = {given};\n"))
        known: set[int] = set()
        for n in f.body.named_children:
            if n.type == "declaration" and block is not None and self._ask(f, n, stands, names, block):
                known.add(n.start_byte)
        for name in sorted(self._declared(f) - set(stands)):
            stands[name] = names.fresh(name)
        for n in f.body.named_children:
            if n.type == "declaration" and block is not None:
                self._ask(f, n, stands, names, block)
        at = (f.body.start_byte + 1, f.body.end_byte - 1)
        return [*out, *self._written_with(f, f.body, at, stands, names, depth, block, known)]

    def _ask(self, f: Function, node: Node, stands: dict[str, str], names: _Names, block: Node) -> bool:
        """Does the statement ask a buffer for a tensor that is there already? ``stands`` and ``names`` learn of it."""
        found = _GOT.fullmatch(self.kernel.text(f.path, node))
        if found is None or (node.parent is not None and stands and node.parent != f.body):
            return False
        asked = "".join(found[2].split())
        for name, at in names.got.get(asked, ()):
            if at.start_byte <= block.start_byte and block.end_byte <= at.end_byte and found[1] not in stands:
                stands[found[1]] = name
                return True
        names.got.setdefault(asked, []).append((stands.get(found[1], found[1]), block))
        return False

    def _written_with(
        self,
        f: Function,
        node: Node,
        span: tuple[int, int],
        stands: dict[str, str],
        names: _Names,
        depth: int,
        block: Node | None,
        known: set[int],
    ) -> list[Piece]:
        """The text of ``span``, which ``node`` covers, with names as they stand, calls written out, and without the
        declarations of what is ``known``."""
        data = self.kernel.program.files[f.path].data
        changed: list[tuple[int, int, list[Piece]]] = []
        stack = [node]
        while stack:
            n = stack.pop()
            if n.start_byte in known and n.type == "declaration":
                changed.append((n.start_byte, n.end_byte, []))
                continue
            if n.type == "identifier":
                word = self.kernel.text(f.path, n)
                if stands.get(word, word) != word:
                    changed.append((n.start_byte, n.end_byte, [Piece(stands[word], (f.path, n.start_byte))]))
                continue
            call = self.kernel.call_of(f, n) if depth > 0 else None
            callee = self._called(call, f) if call is not None else None
            if call is not None and callee is not None:
                args = [self._plain(f, a, stands) for a in call.arguments]
                inner = block if n.parent == f.body else None
                pieces = self._expanded(callee, args, names, depth - 1, inner)
                if pieces is not None:
                    changed.append((n.start_byte, n.end_byte, pieces))
                    continue
            stack += reversed(n.children)
        out, at = [], span[0]
        for first, last, pieces in sorted(changed, key=lambda c: c[0]):
            out += [Piece(data[at:first].decode(), (f.path, at)), *pieces]
            at = last
        return [*out, Piece(data[at : span[1]].decode(), (f.path, at))]

    def _plain(self, f: Function, node: Node, stands: dict[str, str]) -> str:
        pieces = self._written_with(f, node, (node.start_byte, node.end_byte), stands, _Names(set()), 0, None, set())
        return "".join(p.text for p in pieces)

    # -- what a function is like -------------------------------------------------------------------------------------

    def _parameters(self, f: Function) -> list[tuple[str, str]] | None:
        """(type without const and reference, name) of each; None where one is no plain name."""
        declarator = f.node.child_by_field_name("declarator")
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        out = []
        for node in listed.named_children if listed is not None else ():
            if node.type == "comment":
                continue
            found = _PARAMETER.fullmatch(" ".join(self.kernel.text(f.path, node).split("=")[0].split()))
            if found is None or "*" in found[2]:
                return None
            out.append((re.sub(r"\bconst\b|__restrict__", "", found[1]).strip(), found[3]))
        return out

    def _declared(self, f: Function) -> set[str]:
        """Names that the function declares."""
        out = set()
        for n in walk(f.body):
            for d in n.children_by_field_name("declarator") if n.type == "declaration" else ():
                words = _WORD.findall(re.split(r"[=({\[]", self.kernel.text(f.path, d))[0])
                out |= set(words[-1:])
        return out

    def _written(self, f: Function, deep: int = 2) -> set[str]:
        """Names that the function, or those that it calls, assigns to."""
        out: set[str] = set()
        for n in walk(f.body):
            if n.type in ("assignment_expression", "update_expression"):
                left = n.child_by_field_name("left") or n.child_by_field_name("argument")
                text = self.kernel.text(f.path, left) if left is not None else ""
                out |= set(_WORD.findall(text.removeprefix("this->"))[:1])
        for c in self.kernel.calls_of(f) if deep else ():
            for g in self.by_name.get(c.name, ()):
                out |= self._written(g, deep - 1) if where(g) != where(f) else set()
        return out
