"""Memory of a tensor's own, where what is the same in each turn is kept, and what may be kept there."""

from __future__ import annotations

import re

from .....sources.cpp import Edit, Function
from ...reading.api import COPY, root
from ...reading.classes import with_member
from ...reading.kernel_program import ApiCall, KernelProgram
from ...reading.steady import Steady

CLASS_NAME = "KeptTensor"
MEMBER = "keptTensor"
CLASS = f"""\
#ifndef KEPT_TENSOR
#define KEPT_TENSOR
// What is done once and read from then on, in memory of its own.
class {CLASS_NAME} {{
 public:
  // Room for so much, and whether it has to be filled: at first, and where more is asked for.
  __aicore__ inline void Wants(uint64_t bytes) {{
    if (bytes > size) {{
      size = (bytes + 31) / 32 * 32;
      AscendC::GetTPipePtr()->InitBuffer(memory, size);
      held = 0;
    }}
    anew = bytes > held;
    held = anew ? bytes : held;
  }}
  // Where `count` elements like those of a scratch tensor are kept.
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> In(const AscendC::LocalTensor<T>&, uint64_t count) {{
    Wants(count * sizeof(T));
    return memory.template Get<T>();
  }}
  // What a queue handed over, copied to where it stays.
  template <typename T>
  __aicore__ inline void Keep(const AscendC::LocalTensor<T>& taken) {{
    AscendC::DataCopy(memory.template Get<T>(), taken, (held + 31) / 32 * 32 / sizeof(T));
    AscendC::PipeBarrier<PIPE_V>();
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Get() {{ return memory.template Get<T>(); }}
  // What it was made of has changed.
  __aicore__ inline void Forget() {{ held = 0; }}

  bool anew = true;

 private:
  AscendC::TBuf<AscendC::TPosition::VECCALC> memory;
  uint64_t size = 0, held = 0;  // bytes
}};
#endif

"""
QUEUED = re.compile(r"^((?:this->)?\w+)\s*\.\s*(?:template\s+)?(?:DeQue|AllocTensor)\s*<(.*)>\s*\(\s*\)$", re.DOTALL)


def member_of(kernel: KernelProgram, f: Function, name: str) -> tuple[Edit, ...]:
    """Such memory as a member of a method's class."""
    return with_member(kernel, f, CLASS_NAME, CLASS, f"{CLASS_NAME} {name};")


def fills_the_same(facts: Steady, tensors: set[str], call: ApiCall) -> bool:
    """Does the call fill a tensor with a constant, or a range of global memory, that no loop around it changes?"""
    turns, f = facts.all_turns_of(call.function, call.node), call.function
    if turns is None or len(call.args) < 2:
        return False
    if call.name in ("Duplicate", "CreateVecIndex"):
        return facts.number(turns, f, call.args[1])
    if root(call.args[1]) not in tensors or not facts.range_is_steady(turns, f, call.args[1]):
        return False
    said = call.args[3:] if call.name == "DataCopy" else call.args[2:]  # what isn't how much
    if call.name not in COPY and any(facts.uses_what_changes(turns, g) for g in facts.own.get(call.name, ())):
        return False
    return (call.name in COPY or call.name in facts.own) and all(facts.number(turns, f, a) for a in said)
