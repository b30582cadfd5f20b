"""An end for what takes too long, wherever it is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ..errors import OutOfTime


class _Ended(BaseException):
    """Like KeyboardInterrupt nobody's outcome: whoever is asked lets go, and what is kept so far stays."""


@contextmanager
def at_most(minutes: float | None, what: str) -> Iterator[None]:
    """Ends the block after so many minutes of the wall clock; None: it takes what it takes. In a main thread only.

    Raises:
        OutOfTime: ``what`` took longer.
    """
    if minutes is None:
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _Ended

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, minutes * 60)
        yield
    except _Ended:
        raise OutOfTime(f"{what} took longer than {minutes:g} minutes.", "Give more, or leave the limit out.") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
