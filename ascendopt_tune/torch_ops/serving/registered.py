"""What of this package serves in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .dispatch import TunedOp


class Undoable(Protocol):
    """An interception, as :func:`~.status.rollback` sees it."""

    name: str

    def suspend(self) -> None: ...

    def resume(self) -> None: ...


#: Every tuned operator of this process, in the order they came.
registered: list[TunedOp] = []
#: Every interception that was not undone by the user.
interceptions: list[Undoable] = []
