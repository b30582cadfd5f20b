"""A small operator, and what a hostile author would put into its programs."""

from __future__ import annotations

from pathlib import Path

from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import TensorSpec
from ascendopt_tune.nouns.outcome import Outcome

DATA = Path(__file__).parents[1] / "vnpu" / "data_evaluate"
KERNEL, HOST = "op_kernel/twice.cpp", "op_host/twice.cpp"
SPEC = TensorSpec("float32", (8, 100))
#: What a hostile tiling program includes.
HEADERS = "".join(
    f"#include <{name}>\n"
    for name in ("fcntl.h", "pthread.h", "sched.h", "signal.h", "sys/file.h", "sys/mman.h", "sys/prctl.h",
                 "sys/ptrace.h", "sys/resource.h", "sys/shm.h", "sys/socket.h", "sys/stat.h", "sys/syscall.h",
                 "sys/uio.h", "unistd.h")
)  # fmt: skip


def attack(gate: Gate, code: str, declarations: str = "") -> Outcome:
    """The outcome of the kernel with ``code`` run by core 0 before its work."""
    text = gate.operator.baseline.kernel[KERNEL]
    text = text.replace("using namespace AscendC;", "using namespace AscendC;\n" + declarations)
    text = text.replace("  TPipe pipe;\n", "  if (GetBlockIdx() == 0) { " + code + " }\n  TPipe pipe;\n")
    return gate.evaluate(gate.operator.baseline.with_kernel(KERNEL, text)).outcome


def attack_host(gate: Gate, code: str) -> Outcome:
    line = "  TwiceTilingData tiling;\n"
    text = HEADERS + gate.operator.baseline.tiling[HOST].replace(line, f"  {code}\n{line}")
    return gate.evaluate(gate.operator.baseline.with_tiling(HOST, text)).outcome
