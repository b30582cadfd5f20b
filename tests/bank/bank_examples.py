"""Experiences for tests, made up."""

from __future__ import annotations

from typing import Any

from ascendopt_tune.bank.experience import Experience, ExperienceProvenance
from ascendopt_tune.nouns.profile import Profile

BOTTLENECKS = (
    "Copies and computation take turns: MTE2 waits 60 % of it for the vector pipe. Queues have 1 buffer.",
    "Scalar bound: the scalar unit is busy 92 % of the time. Elements are read one by one in a loop.",
    "Bank conflicts in UB: the vector pipe waits 40 % of the time for banks that two operands share.",
    "Launch bound: the task takes 12 us, of which a core works 2 us; 48 cores are started.",
)


def experience(n: int = 0, **changes: Any) -> Experience:
    """The ``n``-th experience: motifs take turns, everything else is distinct."""
    values: dict[str, Any] = {
        "motif": f"motif_{n % len(BOTTLENECKS)}",
        "title": f"Title {n}",
        "description": f"What was done, {n}",
        "bottleneck": BOTTLENECKS[n % len(BOTTLENECKS)],
        "diff": f"--- slow\n+++ fast\n-a{n}\n+b{n}\n",
        "before": Profile(20.0 + n, 10.0, 1.0, 2.0, 3.0, 4.0, 8, {"mte2_bytes": 4096.0}),
        "after": Profile(10.0 + n, 5.0, 1.0, 2.0, 3.0, 4.0, 8, {"mte2_bytes": 4096.0}),
        "preconditions": "none",
        "site": f"Process/loop{n}",
        "operator": "add",
        "case": "float16[8] -> float16[8]",
        "dtype": "float16",
        "regime": "small, whole blocks",
        "chip": "ascend910b2",
        "target": "virtual",
        "provenance": ExperienceProvenance("rewind", "ascendopt-tune bank build add", 0, "0.1.0", "v1"),
    }
    return Experience(**{**values, **changes})
