"""What a person reads in the terminal: profiles side by side, a run's summary, a failure in one paragraph."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..operator import Operator
from ..outcome import CompileFailed, Failure
from ..profile import Profile
from ..tune import TuneRecord

PIPES = {
    "task_duration_us": "task duration",
    "aiv_time_us": "core time (mean)",
    "aiv_vec_time_us": "vector",
    "aiv_scalar_time_us": "scalar",
    "aiv_mte2_time_us": "MTE2 (in)",
    "aiv_mte3_time_us": "MTE3 (out)",
}


def time_word(target: str) -> str:
    """How times of this target must be called wherever a person reads them."""
    return "modelled" if target == "virtual" else "measured"


def profile_table(target: str, profiles: Mapping[str, Profile]) -> Table:
    """Times in us, a column per profile, a row per pipe."""
    table = Table(f"{time_word(target)} time (us)", title=None)
    for name in profiles:
        table.add_column(name, justify="right")
    for field, title in PIPES.items():
        table.add_row(title, *(f"{getattr(p, field):.2f}" for p in profiles.values()))
    table.add_row("cores", *(str(p.block_dim) for p in profiles.values()))
    return table


def tune_summary(operator: Operator, record: TuneRecord) -> RenderableType:
    """Baseline against best, what was changed, evaluations by outcome, where the answer came from."""
    word = time_word(record.key.target)
    lines = [f"{operator.name} on {record.key.chip} ({record.key.target})  {record.case}"]
    after = [f"speedup {record.entry.speedup:.3f}x ({word})"]
    if not record.entry.improved:
        after[0] = "no faster pair was found: the baseline is kept"
    after += [f"  changed: {change}" for change in record.entry.provenance.changes]
    outcomes = ", ".join(f"{n} {kind}" for kind, n in record.entry.provenance.outcomes.items())
    after.append(f"{record.entry.provenance.evaluations} evaluations: {outcomes}")
    after.append(f"answered from the cache ({record.key.hash[:12]})" if record.cached
                 else f"stored in the cache ({record.key.hash[:12]}), {record.seconds:.1f} s")  # fmt: skip
    table = profile_table(record.key.target, {"baseline": record.baseline, "best": record.best})
    return Group(Text("\n".join(lines)), table, Text("\n".join(after)))


def failure_text(outcome: Failure) -> str:
    """Kind and reason, and the compiler's own text where there is one."""
    text = f"{type(outcome).__name__}: {outcome.reason}"
    return f"{text}\n{outcome.log}" if isinstance(outcome, CompileFailed) and outcome.log not in text else text
