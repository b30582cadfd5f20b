"""Lines of C++ with their indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

#: Names that C++, CANN or the printed text has taken.
_TAKEN = frozenset(
    re.findall(
        r"\w+",
        """alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do
        double else enum explicit export extern false float for friend goto half if inline int int32_t int64_t long
        mutable namespace new not operator or private protected public register return short signed sizeof static
        struct switch template this throw true try typedef typename union unsigned using virtual void volatile while
        xor tiling pipe workspace context coreNum ubSize platform bufferNum fillTile workTile maskTile apiTile
        INFINITY NAN sqrt indexTile offsetTile scanTile columnsTile MinOf MaxOf CeilDiv CeilAlign CopyIn CopyOut
        WaitPipe CopyInPadded ReduceRows ReduceColumns ScanTile Join""",
    )
)
_SUFFIXES = ("In", "Out", "Gm", "Buf", "Queue", "Address", "Length", "Cols")


def name_of(name: str) -> str:
    """A name of the program as C++ may have it: not C++'s, and none that the printed text makes of another name."""
    return f"{name}_" if name in _TAKEN or name.endswith(_SUFFIXES) else name


def pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


class Lines:
    """Collects lines; blocks indent."""

    def __init__(self, indent: int = 0) -> None:
        self._lines: list[str] = []
        self._indent = indent

    def add(self, *lines: str) -> None:
        for line in lines:
            half = line in ("public:", "private:")  # stand a space out of their class, half an indentation
            self._lines.append((" " * (2 * self._indent - half) + line).rstrip())

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        if head:
            self.add(head)
        self._indent += 1
        yield
        self._indent -= 1
        self.add(tail)

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
