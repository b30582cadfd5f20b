"""What a person reads in the terminal (profiles side by side, a run's summary, a failure), and JSON documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ..evaluate.bound import bound_text
from ..evaluate.cores import cores_there, cores_used, waves_note
from ..evaluate.diagnosis import bandwidths, busy, diagnose, stalls, working
from ..nouns.case import Case
from ..nouns.chip import Chip, load_chip
from ..nouns.operator import Operator
from ..nouns.outcome import Failure
from ..nouns.profile import Profile
from ..store.entry import NO_WIN, finite
from .lines import print_lines

if TYPE_CHECKING:
    from ..tuner import TuneRecord  # commands that don't tune needn't load the search

#: Said where nothing but the operator itself knows what is right.
ITSELF_ONLY = "compared with itself only: give a reference.py (docs/operators.md)"

PIPES = {
    "task_duration_us": "task duration",
    "aiv_time_us": "core time (mean)",
    "aiv_vec_time_us": "vector",
    "aiv_scalar_time_us": "scalar",
    "aiv_mte2_time_us": "MTE2 (in)",
    "aiv_mte3_time_us": "MTE3 (out)",
}
CUBE_PIPES = {
    "task_duration_us": "task duration",
    "aic_time_us": "core time (mean)",
    "aic_mac_time_us": "matrix unit",
    "aic_scalar_time_us": "scalar",
    "aic_mte1_time_us": "MTE1 (L1 to L0)",
    "aic_mte2_time_us": "MTE2 (in)",
    "aic_fixpipe_time_us": "FIXP (out)",
}
_WHOLE = ("task_duration_us", "aiv_time_us", "aic_time_us")


def time_word(target: str) -> str:
    """How times of this target must be called wherever a person reads them."""
    return "modelled" if target == "virtual" else "measured"


def counted(n: int, what: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def json_text(document: Mapping[str, Any]) -> str:
    """The document as JSON; infinities and NaN, which JSON has no word for, as ``{"float": "inf"}``."""
    return json.dumps(finite(document), indent=2, allow_nan=False)


def counts_text(outcomes: Mapping[str, int]) -> str:
    """Evaluations by outcome, most frequent first: ``35 Timed, 3 Hazard``."""
    return ", ".join(f"{n} {kind}" for kind, n in sorted(outcomes.items(), key=lambda item: (-item[1], item[0])))


def profile_table(target: str, profiles: Mapping[str, Profile]) -> Table:
    """Times in us, a column per profile, a row per pipe; what a device's events don't tell is marked modelled."""
    table = Table(f"{time_word(target)} time (us)")
    for name in profiles:
        table.add_column(name, justify="right")
    for title, times in pipe_rows(list(profiles.values())):
        table.add_row(title, *(f"{us:.2f}" for us in times))
    table.add_row("blocks", *(str(p.block_dim) for p in profiles.values()))
    return table


def _titles(kinds: Iterable[str]) -> dict[str, str]:
    """What a field of a profile is called, of cores of these kinds."""
    tables = {"aic": CUBE_PIPES, "aiv": PIPES}
    found = [kind for kind in tables if kind in kinds]
    if len(found) == 1:
        return tables[found[0]]
    return {f: t if f == _WHOLE[0] else f"{k.upper()} {t}" for k in found for f, t in tables[k].items()}


def pipe_rows(profiles: Sequence[Profile]) -> Iterator[tuple[str, list[float]]]:
    """(title, us in every profile): the task, then what is known of its pipes, and by whom."""
    whole = next(iter(PIPES))
    yield PIPES[whole], [p.task_duration_us for p in profiles]
    modelled = any(p.modelled is not None for p in profiles)
    for field, title in _titles({kind for p in profiles for kind in p.detail.parts}).items():
        if modelled:
            yield f"{title}, modelled", [getattr(p.detail, field) for p in profiles]
        elif field != whole and any(p.core_time_us for p in profiles):
            yield title, [getattr(p, field) for p in profiles]


_LONGEST = 6  # stalls that are shown


def print_profile(console: Console, target: str, profile: Profile, chip: Chip, case: Case | None = None) -> None:
    """Where the time goes in detail: pipes, what they waited for, bandwidth against the peak, and the diagnosis.

    ``case``: for the hardware's bound.
    """
    bound = bound_text(case, [profile], chip) if case is not None else ""
    paragraph = diagnose(profile, chip).paragraph
    word = "modelled" if profile.modelled is not None else time_word(target)
    profile = profile.detail
    lines = []
    for kind, part in profile.parts.items():
        whose = f" {kind.upper()}" if profile.kind == "mix" else ""
        if working(part):
            console.print(_pipe_table(f"{word}, mean over the{whose} cores", part, chip))
        lines += [f"moved {way}{whose and f' by{whose}'}: {text}" for way, text in _moved(part)]
    for memory in bandwidths(profile, chip):
        lines.append(
            f"bandwidth of {memory.name}: {memory.achieved / 1e3:.1f} GB/s of {memory.peak / 1e3:.0f} at its peak "
            f"({100 * memory.share:.0f} %)"
        )
    cores = "cores" if profile.kind != "mix" else f"groups of an AIC and {profile.vectors_per_block} AIV"
    used = f"{cores_used(profile, chip)} of {cores_there(profile, chip)} used"
    lines.append(f"{cores}: {used}, {profile.block_dim} blocks")
    lines.append(f"diagnosis: {paragraph}")
    lines += filter(None, [bound])
    print_lines(console, "\n".join(lines))


def _pipe_table(title: str, profile: Profile, chip: Chip) -> Table:
    """What the pipes of the cores of one kind did, and what they waited for."""
    table = Table(title, "us", "of the time a core works")
    for column in table.columns[1:]:
        column.justify = "right"
    titles = _titles([profile.kind])
    pipes = [(title, field[4:-8]) for field, title in titles.items() if field not in _WHOLE]
    rows = [(f"{title} busy", busy(profile, pipe)) for title, pipe in pipes]
    rows += [(f"waiting: {name}", us) for name, us in stalls(profile)[:_LONGEST]]
    if conflicts := profile.counters.get("bank_conflict_cycles", 0.0):
        per_core = conflicts / float(chip.values["core.clock_mhz"]) / cores_used(profile, chip)
        rows.append(("in vector: UB bank conflicts", per_core))
    if start := profile.counters.get("core_start_us"):
        table.add_row("start of a core", f"{start:.2f}", "before; not counted below")
    for name, us in rows:
        table.add_row(name, f"{us:.2f}", f"{100 * us / working(profile):.0f} %")
    return table


def _moved(profile: Profile) -> Iterator[tuple[str, str]]:
    """(in or out, what was moved there by cores of one kind)."""
    for pipe, way in (("mte2", "in"), ("mte3", "out"), ("fixpipe", "out")):
        if count := profile.counters.get(f"{pipe}_copies"):
            moved = profile.counters[f"{pipe}_bytes"]
            yield way, f"{moved / 1e6:.3f} MB in {count:.0f} copies of {moved / count:.0f} bytes each"


def print_case(console: Console, name: str, chip: str, target: str, case: Case) -> None:
    """What the numbers below are about."""
    print_lines(console, f"{name} on {chip} ({target}): {case}")


def print_tuned(console: Console, operator: Operator, record: TuneRecord) -> None:
    """Baseline against best, what was changed, evaluations by outcome, where the answer came from."""
    key, entry = record.key, record.entry
    word = time_word(key.target)
    print_case(console, operator.name, key.chip, key.target, record.case)
    console.print(profile_table(key.target, {"baseline": record.baseline, "best": record.best}))
    lines = [f"{entry.provenance.decision or NO_WIN}: the baseline is kept"]
    if entry.improved:
        lines = [f"speedup {entry.speedup_text}, {word}", "changed, step by step:"]
        lines += [f"  {change}" for change in entry.provenance.changes]
    lines.append(f"{entry.provenance.search_text}: {counts_text(entry.provenance.outcomes)}")
    lines += _asked(record.llm)
    against = (
        "reference.py" if entry.provenance.reference == "reference.py" else f"the baseline's own results: {ITSELF_ONLY}"
    )
    lines.append(
        f"the best pair was confirmed on unseen inputs: {entry.provenance.checks} outputs compared with {against}"
    )
    lines += waves_notes(record)
    chip = load_chip(key.chip)
    lines.append(f"what bounds the best pair: {diagnose(record.best, chip).paragraph}")
    lines += filter(None, [bound_text(record.case, [record.baseline, record.best], chip)])
    if record.stop == "interrupted":
        lines.append(
            "interrupted: this is the best found until then, and it is kept; the same command goes on from there"
        )
    if record.stop in ("seconds", "tokens", "money"):
        lines.append(f"the limit on {record.stop} ended the search; --resume with a higher one goes on")
    if record.cached:
        lines.append(f"answered from the cache ({key.hash[:12]}); nothing was compiled or run")
    else:
        lines.append(f"stored in the cache ({key.hash[:12]}) after {record.seconds:.0f} s")
    print_lines(console, "\n".join(lines))


def shorter_search(record: TuneRecord, budget: int) -> str | None:
    """What is said where the cache's answer comes from a search with a smaller budget than the one asked for."""
    made = record.entry.provenance
    if not record.cached or made.ended != "budget" or made.budget >= budget:
        return None
    return f"its search had {made.budget} evaluations, and {budget} are asked for now: --retune searches with them"


def waves_notes(record: TuneRecord) -> list[str]:
    """A line for each pair of the record that launches more blocks than the chip has cores."""
    chip = load_chip(record.key.chip)
    notes = {"as written": waves_note(record.baseline, chip), "best pair": waves_note(record.best, chip)}
    return [f"{name}: {note}" for name, note in notes.items() if note]


def mean_gain(records: Sequence[TuneRecord], weights: Sequence[float]) -> float:
    """Weighted mean over the cases of the best pair's time relative to the baseline's; what was minimised."""
    rows = zip(records, weights, strict=True)
    return sum(w * r.best.task_duration_us / r.baseline.task_duration_us for r, w in rows) / sum(weights)


def together_json(records: Sequence[TuneRecord], weights: Sequence[float]) -> dict[str, Any]:
    """The JSON record of one pair for several cases; the history is all cases' own."""
    first = records[0].to_json()
    alone = ("history", "llm", "stop", "seconds", "timings_s", "acceptance", "decision")
    cases = []
    for record, weight in zip(records, weights, strict=True):
        document = {k: v for k, v in record.to_json().items() if k not in alone}
        cases.append({**document, "weight": weight, "common_pair": record.entry.common})
    return {
        "operator": records[0].key.operator,
        "mean_relative_time": mean_gain(records, weights),
        "cases": cases,
        **{name: first[name] for name in alone},
    }


def print_tuned_together(
    console: Console, operator: Operator, records: Sequence[TuneRecord], weights: Sequence[float]
) -> None:
    """Every case's baseline and best time, and the changes of the common pair."""
    key, word = records[0].key, time_word(records[0].key.target)
    print_lines(console, f"{operator.name} on {key.chip} ({key.target}): one pair for {len(records)} cases")
    table = Table("case", "weight", f"baseline ({word} us)", f"best ({word} us)", "speedup", "pair")
    for column in table.columns[1:5]:
        column.justify = "right"
    for record, weight in zip(records, weights, strict=True):
        times = (f"{p.task_duration_us:.2f}" for p in (record.baseline, record.best))
        pair = "common" if record.entry.common else "as written"
        table.add_row(str(record.case), f"{weight:g}", *times, record.entry.speedup_text, pair)
    console.print(table)
    tuned = next((r.entry for r in records if r.entry.improved), None)
    lines = [f"{records[0].entry.provenance.decision or NO_WIN}: the baseline is kept in all cases"]
    if tuned is not None:
        lines = [f"mean of the relative times, weighted: {mean_gain(records, weights):.3f} ({word})"]
        lines += ["changed, step by step:", *(f"  {change}" for change in tuned.provenance.changes)]
    lines += [f"{record.case}, {note}" for record in records for note in waves_notes(record)]
    counts = records[0].entry.provenance.outcomes
    lines.append(f"{records[0].entry.provenance.search_text}, each on every case: {counts_text(counts)}")
    if records[0].cached:
        lines.append("answered from the cache; nothing was compiled or run")
    print_lines(console, "\n".join(lines))


def _asked(llm: Mapping[str, Any]) -> list[str]:
    """What a language model was asked; nothing without one."""
    if not llm:
        return []
    money = f" for {llm['money']:.4f} US dollars" if llm["money"] else ""
    text = f"{llm['model']} was asked {llm['requests']} times, {llm['replayed']} answers were recorded ones; "
    text += f"{llm['tokens']} tokens{money}"
    failed = counts_text(llm["problems"])
    if failed:
        text += f"; requests that failed: {failed}"
    return [text, *([f"it was given up: {llm['given_up']}"] if llm["given_up"] else [])]


def skipped_lines(skipped: Sequence[str], *, failed: bool) -> list[str]:
    """What is said of trials that are no part of the checks: ``lines inputs, seed 1: why``, as the gate names them.

    A line for each reason, with the inputs that it was met on. Behind a failure (``failed``) its like on other inputs
    would only hide it: one line counts them. ``--json`` has every text either way.
    """
    met: dict[str, list[str]] = {}
    for text in skipped:
        trial, _, reason = text.partition(": ")
        met.setdefault(reason.partition(" [trial ")[0], []).append(trial.partition(" inputs")[0])
    if failed:
        kinds = list(dict.fromkeys(kind for some in met.values() for kind in some))
        more = f"it fails on other inputs, too ({', '.join(kinds)}); --json has each reason"
        return [more] if kinds else []
    return [
        f"not part of the checks, because the operator as written fails it: {', '.join(dict.fromkeys(kinds))} inputs: "
        f"{reason}"
        for reason, kinds in met.items()
    ]


def failure_text(outcome: Failure) -> str:
    """Kind and reason of a pair that ran and doesn't count."""
    return f"{type(outcome).__name__}: {outcome.reason}"
