"""Live progress on stderr: a view that is redrawn on a terminal, plain lines elsewhere. stdout is for results."""

from __future__ import annotations

import os
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ..nouns.outcome import Timed
from ..report.charts import STAGES
from ..report.lines import folded
from ..report.text import counts_text
from ..search.engine import Progress as Event

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.-=+*%#"
_LONGEST_LINE = 48  # of the sparkline, in characters
_REFRESH = 4  # times a second
_ECHO = 2  # columns that the last line leaves: a terminal writes ^C there, and a line more would shift the view


def is_live(console: Console) -> bool:
    """Whether there is a terminal that can be redrawn, with somebody before it."""
    return console.file.isatty() and not console.is_dumb_terminal and not os.environ.get("CI")


class Display:
    """What is being done (:meth:`say`) and how far the search is (:meth:`update`); a context manager.

    On a terminal a few lines are redrawn, and what should stay (a new incumbent) is printed above them; where output
    is piped, in CI and on a dumb terminal every step and trial is a line. ``word`` is what times have to be called
    (``modelled`` or ``measured``). ``console``: default: stderr.
    """

    def __init__(self, word: str, console: Console | None = None) -> None:
        self._word = word
        self._console = console or Console(stderr=True, highlight=False)
        utf = self._console.encoding.lower().startswith("utf")
        self._bars = _BARS if utf else _ASCII_BARS
        self._spinner = Spinner("dots" if utf else "line")
        self._said = "starting"
        self._event: Event | None = None
        self._best: list[float] = []  # the incumbent's speedup after each evaluation
        self._live: Live | None = None
        if is_live(self._console):
            self._live = Live(
                console=self._console, transient=True, refresh_per_second=_REFRESH, get_renderable=self._view
            )

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Says which long step begins now."""
        self._said = text
        if self._live is None:
            self._print(f"{text} ...")
        else:
            self._live.refresh()

    def update(self, event: Event) -> None:
        """One trial has ended."""
        if event.trial.duplicate_of is None:
            self._best.append(event.baseline_us / event.incumbent_us)
        stays = event.improved or event.trial.candidate.parent is None
        if stays if self._live is not None else event.trial.duplicate_of is None:
            self._print(_line(event, self._word))
        self._event = event
        self._said = f"{STAGES[event.stage]}, round {event.round}"

    def _view(self) -> Group:
        """The lines that are redrawn, none longer than the terminal is wide."""
        event, frame = self._event, self._spinner.render(self._console.get_time())
        wide = self._console.width
        now = _cut(f"{frame} {self._said}", most=wide - _ECHO)
        if event is None:
            return Group(now)
        done = f"{event.n}/{event.budget}"
        room = max(8, min(30, wide - len(done) - 14))
        filled = round(room * event.n / max(1, event.budget))
        full, empty = ("━", "─") if self._bars == _BARS else ("#", "-")
        best = _best(event, self._word)
        line = sparkline(self._best, min(_LONGEST_LINE, wide - len(best) - 2), self._bars)
        return Group(
            now,
            Text.assemble((full * filled, "green"), (empty * (room - filled), "dim"), f" {done}  ETA {_eta(event)}"),
            _cut(f"{best}  {line}"),
            _cut(counts_text(event.outcomes)),
            _cut(f"{_what(event)}  {event.trial.candidate.change}", "dim", wide - _ECHO),
        )

    def _print(self, text: str) -> None:
        line = text if self._live is None else folded(text, self._console.file, hang=2)
        self._console.print(line, markup=False, soft_wrap=True)


def sparkline(values: list[float], room: int, bars: str = _BARS) -> str:
    """The values as bars, evenly chosen where there are more than ``room``; the last is always one of them."""
    if room < 2 or not values:
        return ""
    count = min(room, len(values))
    chosen = [values[round((i + 1) * len(values) / count) - 1] for i in range(count)]
    low, high = min(chosen), max(chosen)
    return "".join(bars[round((v - low) / (high - low or 1.0) * (len(bars) - 1))] for v in chosen)


def _cut(text: str, style: str = "", most: int | None = None) -> Text:
    line = Text(text, style, no_wrap=True, overflow="ellipsis")
    if most is not None:
        line.truncate(most, overflow="ellipsis")
    return line


def _eta(event: Event) -> str:
    """The baseline alone tells nothing: it has what is made once."""
    if event.n < 2:
        return "..."
    return f"{event.eta_s:.0f} s" if event.eta_s < 100 else f"{event.eta_s / 60:.0f} min"


def _what(event: Event) -> str:
    outcome = event.trial.outcome
    return f"{outcome.profile.task_duration_us:.2f} us" if isinstance(outcome, Timed) else type(outcome).__name__


def _line(event: Event, word: str) -> str:
    mark = " *" if event.improved else ""
    counts = counts_text(event.outcomes)
    head = f"evaluation {event.n}/{event.budget}  {_what(event)}{mark}  {_best(event, word)}  {counts}"
    return f"{head}  ETA {_eta(event)}  [{event.trial.candidate.change}]"


def _best(event: Event, word: str) -> str:
    return f"best {event.incumbent_us:.2f} us {word} ({event.baseline_us / event.incumbent_us:.2f}x)"
