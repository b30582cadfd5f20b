"""Which branches of ``#if`` a kernel for architecture 2201 is compiled without; the others are nobody's business here.

Only what the device and its compiler decide is known (``_VALUES``); a group of branches whose choice hangs on anything
else stays as it is. Conditions often cut a statement in two, so that neither a grammar nor a reader can make sense of
both branches at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# Names the device's compiler defines, with their values; None: it doesn't. What isn't listed nobody knows.
_VALUES: dict[str, int | None] = {
    "__CCE_AICORE__": 220,
    "__NPU_ARCH__": 2201,
    "__CCE_KT_TEST__": None,
    "__CCE_UT_TEST__": None,
    "ASCENDC_CPU_DEBUG": None,
    "__DAV_M200__": None,
    "__DAV_C310__": None,
    "__DAV_310R6__": None,
}
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b((?:[^\n\\]|\\.|\\\r?\n)*)", re.MULTILINE)
_TOKEN = re.compile(r"\s*(defined|\d+[uUlL]*|\w+|&&|\|\||[=!<>]=|[!<>()])")
_COMPARED = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


class _Condition:
    """An expression of ``#if``, read once from left to right; ``value`` is 0, 1 or another number, None if unknown."""

    def __init__(self, text: str, values: Mapping[str, int | None]) -> None:
        self._values = values
        self._tokens = [m[1] for m in _TOKEN.finditer(text)]
        whole = "".join(self._tokens) == re.sub(r"\s+", "", text)
        self._at = 0
        self.value = self._either() if whole else None
        if self._at < len(self._tokens):
            self.value = None

    def _next(self, *expected: str) -> str | None:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or (expected and token not in expected):
            return None
        self._at += 1
        return token

    def _either(self) -> int | None:
        value = self._both()
        while self._next("||"):
            other = self._both()
            value = 1 if value or other else (None if value is None or other is None else 0)
        return value

    def _both(self) -> int | None:
        value = self._compared()
        while self._next("&&"):
            other = self._compared()
            no = (value == 0 and value is not None) or (other == 0 and other is not None)
            value = 0 if no else (None if value is None or other is None else 1)
        return value

    def _compared(self) -> int | None:
        value = self._single()
        while (sign := self._next(*_COMPARED)) is not None:
            other = self._single()
            value = None if value is None or other is None else int(_COMPARED[sign](value, other))
        return value

    def _single(self) -> int | None:
        token = self._next()
        if token == "!":
            value = self._single()
            return None if value is None else int(not value)
        if token == "(":
            value = self._either()
            return value if self._next(")") else None
        if token == "defined":
            opened = self._next("(")
            name = self._next()
            if opened and not self._next(")"):
                return None
            return int(self._values[name] is not None) if name is not None and name in self._values else None
        if token is not None and token[0].isdigit():
            return int(token.rstrip("uUlL"))
        return (self._values[token] or 0) if token is not None and token in self._values else None


@dataclass
class _Group:
    """``#if`` to ``#endif``: directives (start, end) with what is known of their conditions."""

    directives: list[tuple[int, int]] = field(default_factory=list)
    known: list[int | None] = field(default_factory=list)

    def unused(self) -> Iterator[tuple[int, int]]:
        """The directives and the branches that aren't compiled; nothing where the choice isn't known."""
        taken = next((i for i, k in enumerate(self.known) if k != 0), None)
        if taken is not None and self.known[taken] is None:
            return
        for i, (start, end) in enumerate(self.directives):
            yield start, (end if i in (taken, len(self.directives) - 1) else self.directives[i + 1][0])


def unused_branches(data: bytes, macros: Mapping[str, int] | None = None) -> Iterator[tuple[int, int]]:
    """Byte ranges (start, end) that the compiler doesn't see, directives of known conditions among them.

    ``data`` is a text without comments; ``macros`` are known besides those of the device's compiler.
    """
    values = {**_VALUES, **(macros or {})}
    open_groups: list[_Group] = []
    for found in _DIRECTIVE.finditer(data):
        kind, rest = found[1].decode(), found[2].decode("utf-8", "replace").replace("\\\n", " ").strip()
        if kind in ("if", "ifdef", "ifndef"):
            open_groups.append(_Group())
        if not open_groups:
            return  # an #endif too many: not a text to reason about
        group = open_groups[-1]
        group.directives.append(found.span())
        if kind == "endif":
            yield from open_groups.pop().unused()
            continue
        group.known.append(_known(kind, rest, values))


def _known(kind: str, rest: str, values: Mapping[str, int | None]) -> int | None:
    if kind == "else":
        return 1
    if kind in ("ifdef", "ifndef"):
        # Code for host and device asks whether there is a device's compiler at all; both are read here.
        if rest in values and rest not in _VALUES:
            return int(kind == "ifdef")
        if values.get(rest, 0) is not None:
            return None
        return int(kind == "ifndef")
    if re.fullmatch(r"!?\s*defined\s*\(?\s*(?:__CCE_AICORE__|__NPU_ARCH__)\s*\)?", rest):
        return None
    value = _Condition(rest, values).value
    return None if value is None else int(value != 0)
