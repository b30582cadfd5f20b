"""Live progress of a tuning run on stderr: a bar on a terminal, a line per evaluation elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ..outcome import Timed
from ..search.engine import Progress as Event


def _outcomes(event: Event) -> str:
    return " ".join(f"{kind}:{n}" for kind, n in event.outcomes.items())


def _line(event: Event) -> str:
    outcome = event.trial.outcome
    what = f"{outcome.profile.task_duration_us:.2f} us" if isinstance(outcome, Timed) else type(outcome).__name__
    best = f"best {event.incumbent_us:.2f} us, {event.baseline_us / event.incumbent_us:.2f}x"
    mark = " *" if event.improved else ""
    return f"evaluation {event.n}/{event.budget}  {what}{mark}  {best}  ETA {event.eta_s:.0f} s  {event.trial.candidate.change}"


@contextmanager
def show_progress(quiet: bool = False) -> Iterator[Callable[[Event], None]]:
    """A callback for ``tune_case``; ``quiet`` keeps the terminal clean of the bar and prints lines only."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:

        def plain(event: Event) -> None:
            if event.trial.duplicate_of is None:
                console.print(_line(event), markup=False, highlight=False, soft_wrap=True)

        yield plain
        return
    columns = (
        TextColumn("evaluation {task.completed}/{task.total}"),
        BarColumn(bar_width=20),
        TextColumn("best {task.fields[best]}"),
        TextColumn("{task.fields[outcomes]}"),
        TextColumn("ETA {task.fields[eta]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("tune", total=None, best="-", outcomes="", eta="-")

        def live(event: Event) -> None:
            bar.update(
                task,
                completed=event.n,
                total=event.budget,
                best=f"{event.incumbent_us:.2f} us ({event.baseline_us / event.incumbent_us:.2f}x)",
                outcomes=_outcomes(event),
                eta=f"{event.eta_s:.0f} s",
            )
            if event.improved:
                bar.console.print(_line(event), markup=False, highlight=False)

        yield live
