"""What the experience bank has for the incumbent of a run, and what the run gives back to it.

What was found for a kernel is a fact of the run (journal.py): the bank may grow meanwhile, and a run that is resumed
has to be told the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import AscendOptError
from ..nouns.outcome import Timed
from ..search.proposer import SearchState

if TYPE_CHECKING:
    from .bank import Bank, Records
    from .experience import Experience

_MOST = 32  # experiences kept for one kernel; there are fewer motifs


class Retrieval:
    """``retrieval(state, k)``: up to ``k`` experiences, one a motif, the nearest to what the incumbent shows first.

    Experience of motifs that have no place in the incumbent's kernel is left out.

    ``fact``: a journal's, once there is one. ``run``: what this run left to the bank when it ran before is not found,
    so that a run can be repeated. A bank that can't be read is said once, and left out.
    """

    def __init__(self, say: Callable[[str], None], run: str = "") -> None:
        self.fact: Callable[[str, Callable[[], Any]], Any] = lambda name, make: make()
        self.found: dict[str, tuple[Experience, ...]] = {}  # by the hash of the pair that was the incumbent
        self._say = say
        self._run = run
        self._bank: Bank | None = None
        self._broken = False

    def __call__(self, state: SearchState, k: int) -> Sequence[Experience]:
        pair = state.incumbent.candidate.pair.hash
        if pair not in self.found:
            try:
                self.found[pair] = self._asked(state)
            except AscendOptError as error:
                self._leave_out(error)
                self.found[pair] = ()
        return self.found[pair][:k]

    def give(self, make: Callable[[Bank], Records]) -> None:
        """Adds what ``make`` returns to the bank, if the run has asked it anything."""
        if self._bank is None or self._broken:
            return
        try:
            self._bank.merge(make(self._bank))
        except AscendOptError as error:
            self._leave_out(error)

    def _asked(self, state: SearchState) -> tuple[Experience, ...]:
        from ..search.kernel.reading.kernel_program import KernelProgram
        from ..search.kernel.rules import rewrites_of
        from .bank import Bank  # faiss: only for runs that come to Stage II
        from .symptoms import symptoms

        if self._broken:
            return ()
        bank = self._bank = self._bank or Bank.open(self._run)
        candidate, outcome = state.incumbent.candidate, state.incumbent.outcome
        assert isinstance(outcome, Timed)

        def ask() -> list[str]:
            kernel = KernelProgram(candidate.pair.kernel, candidate.pair.tiling, state.chip, state.operator.auto_sync)
            query = symptoms(outcome.profile, state.chip, kernel)
            rewrites = rewrites_of(candidate.pair, state.operator.auto_sync, state.incumbent.tiling_key)
            places = {motif for motif, found in rewrites.items() if found}
            return [e.id for e, _ in bank.search(query, _MOST, one_per_motif=True, places=places)]

        known = {e.id: e for e in bank}
        return tuple(known[i] for i in self.fact(f"experience {candidate.pair.hash}", ask) if i in known)

    def _leave_out(self, error: AscendOptError) -> None:
        if not self._broken:
            self._say(f"the experience bank can't be used: {error}")
        self._broken = True
