"""Live progress on stderr: a line that moves on a terminal, plain lines elsewhere. stdout stays free for results."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from ..nouns.outcome import Timed
from ..report.text import counts_text
from ..search.engine import Progress as Event


class Display:
    """What is being done (:meth:`say`) and how far the search is (:meth:`update`); a context manager.

    On a terminal one line is redrawn, and what should stay (a new incumbent) is printed above it. ``word`` is what
    times have to be called (``modelled`` or ``measured``).
    """

    def __init__(self, word: str) -> None:
        self._word = word
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        if self._console.is_terminal:
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[state]}", markup=False),
            )
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("starting", total=None, state="")

    def __enter__(self) -> Display:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Says which long step begins now."""
        if self._bar is None:
            self._print(f"{text} ...")
        else:
            self._bar.update(self._task, description=text)

    def update(self, event: Event) -> None:
        """One trial has ended."""
        if self._bar is None:
            if event.trial.duplicate_of is None:
                self._print(_line(event, self._word))
            return
        if event.improved or event.trial.candidate.parent is None:
            self._print(_line(event, self._word))
        state = f"{_best(event, self._word)}  {counts_text(event.outcomes)}  ETA {event.eta_s:.0f} s"
        description = f"evaluation {event.n}/{event.budget}"
        self._bar.update(self._task, description=description, completed=event.n, total=event.budget, state=state)

    def _print(self, text: str) -> None:
        console = self._console if self._bar is None else self._bar.console
        console.print(text, markup=False, soft_wrap=True)


def _line(event: Event, word: str) -> str:
    outcome = event.trial.outcome
    what = f"{outcome.profile.task_duration_us:.2f} us" if isinstance(outcome, Timed) else type(outcome).__name__
    mark = " *" if event.improved else ""
    counts = counts_text(event.outcomes)
    head = f"evaluation {event.n}/{event.budget}  {what}{mark}  {_best(event, word)}  {counts}  ETA {event.eta_s:.0f} s"
    return f"{head}  [{event.trial.candidate.change}]"


def _best(event: Event, word: str) -> str:
    return f"best {event.incumbent_us:.2f} us {word} ({event.baseline_us / event.incumbent_us:.2f}x)"
