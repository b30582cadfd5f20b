"""Values of global memory that the scalar unit reads again, in the next turn or in another method: remembered.

A scalar operand that is read where it is needed, in each tile; an index that CopyIn and CopyOut of a tile both look up.
``kept-value`` puts what one block reads twice into a variable. Here a member remembers the last element that was asked
for, and asks global memory only for another one, so that nothing has to be moved and no index has to stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .....sources.cpp import Edit
from ...reading.api import root
from ...reading.classes import Members, is_of, members, merged, numbered, title_of, unused, with_member
from ...reading.kernel_program import ApiCall, KernelProgram, flat, where
from ...reading.steady import Steady
from ..motif import Change, Motif

_CLASS_NAME = "KnownValue"
_MEMBER = "knownValue"
_CLASS = f"""\
#ifndef KNOWN_VALUE
#define KNOWN_VALUE
// The element of global memory that was read last, which is not read again.
template <typename T>
class {_CLASS_NAME} {{
 public:
  template <typename G>
  __aicore__ inline T Of(G& tensor, uint64_t index) {{
    if (!known || index != place) {{
      value = tensor.GetValue(index);
      place = index;
      known = true;
    }}
    return value;
  }}

 private:
  T value;
  uint64_t place = 0;
  bool known = false;
}};
#endif

"""
_GLOBAL = re.compile(r"(?:AscendC::)?GlobalTensor\s*<(.*)>", re.DOTALL)


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    facts = kernel.once(Steady)
    first = unused(kernel, _MEMBER)
    found = list(_found(kernel, facts))
    sites: dict[str, int] = {}
    for i, (line, name, reads) in enumerate(found):
        member = f"{_MEMBER}{first + i}"
        of = _GLOBAL.fullmatch(kernel.text(line.path, line.type))
        kind = of[1].strip() if of is not None else ""
        edits: list[Edit] = []
        for c in reads:
            edits.append(kernel.replace(c.path, c.node, f"{member}.Of({c.receiver}, {c.args[0]})"))
        edits += with_member(kernel, reads[0].function, _CLASS_NAME, _CLASS, f"{_CLASS_NAME}<{kind}> {member};")
        site = numbered(sites, f"{title_of(kernel, line)}::{name}/{flat(reads[0].args[0])[:40]}")
        yield Change(site, f"{name}.GetValue({flat(reads[0].args[0])}) is remembered", merged(edits))


def _found(kernel: KernelProgram, facts: Steady) -> Iterator[tuple[Members, str, list[ApiCall]]]:
    """(declaration, name, reads) of tensors that are only read, by reads that come again."""
    for line in members(kernel, _GLOBAL):
        for name in line.names:
            if name in facts.stored:
                continue
            by_index: dict[str, list[ApiCall]] = {}
            for c in kernel.named("GetValue"):
                if c.receiver.removeprefix("this->") == name and is_of(kernel, line, c.function) and len(c.args) == 1:
                    by_index.setdefault(flat(c.args[0]), []).append(c)
            for reads in by_index.values():
                again = [c for c in reads if kernel.repeated(c.function, c.node)]
                if again and (_elsewhere(facts, again) or any(_comes_again(facts, c) for c in again)):
                    yield line, name, reads


def _elsewhere(facts: Steady, reads: list[ApiCall]) -> bool:
    """Do two methods that a loop calls read the same?"""
    for c in reads:
        turns = facts.turns_of(c.function, c.node)
        called = turns.functions if turns is not None else ()
        others = [d for d in reads if where(d.function) != where(c.function) and d.function.name in called]
        if c.function.name in called and others:
            return True
    return False


def _comes_again(facts: Steady, read: ApiCall) -> bool:
    """Does the next turn of the innermost loop read the same element?"""
    turns = facts.turns_of(read.function, read.node)
    return turns is not None and facts.number(turns, read.function, read.args[0])


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Read each time; the member stays."""
    for c in kernel.named("Of"):
        if root(c.receiver).startswith(_MEMBER) and len(c.args) == 2:
            text = f"{c.args[0]}.GetValue({c.args[1]})"
            site = f"{c.function.name}/{flat(text)[:60]}"
            yield Change(site, f"{flat(text)} read each time", (kernel.replace(c.path, c.node, text),))


KNOWN_VALUE = Motif(
    name="known-value",
    title="An element of global memory is read once",
    description="GetValue of a GlobalTensor takes the scalar unit tens of cycles, and hundreds where the line isn't "
    "cached. What is read again in the next turn, or by another method of the same turn, a member remembers.",
    bottlenecks=("scalar", "scalar round trips", "no overlap"),
    preconditions="The kernel doesn't write the tensor, nor does it move.",
    faster=_faster,
    slower=_slower,
)
