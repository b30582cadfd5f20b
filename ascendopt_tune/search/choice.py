"""Who proposes in a run: the rules, a language model, or both by turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import AscendOptError, SettingsError
from ..llm.endpoint import Endpoint
from ..outcome import Timed
from ..settings import PROPOSERS, settings
from .budget import Limits, Usage
from .kernel_rules import KernelRules
from .proposer import Proposer, SearchState
from .tiling_rules import TilingRules

if TYPE_CHECKING:
    from ..bank.experience import Experience
    from ..llm.client import Client


@dataclass(frozen=True)
class Choice:
    """``proposers`` of a run, and the ``client`` of those that ask a model (None: rules only)."""

    proposers: tuple[Proposer, ...]
    client: Client | None = None

    def close(self) -> None:
        if self.client is not None:
            self.client.close()

    def counts(self) -> dict[str, object]:
        """What the model was asked and what that cost; empty without one."""
        if self.client is None:
            return {}
        end, usage = self.client.endpoint, self.client.usage
        names = {"model": end.model, "model_offline": end.model_offline}
        spent = {"tokens": usage.tokens, "money": round(usage.money, 6), "given_up": self.client.given_up}
        return {**names, **self.client.counts.to_json(), **spent}


def choose(
    proposer: str | None,
    endpoint: Endpoint | None,
    *,
    limits: Limits,
    usage: Usage,
    seed: int,
    say: Callable[[str], None],
) -> Choice:
    """The proposers called ``rules``, ``llm`` or ``both``; None: what the settings say, else both if there is a model.

    Raises:
        SettingsError: an unknown name, or a model is wanted and none is configured.
    """
    now = settings()
    wanted = proposer or now.proposer or ("both" if endpoint is not None else "rules")
    if wanted not in PROPOSERS:
        raise SettingsError(f"unknown proposer {wanted!r}.", f"Known ones: {', '.join(PROPOSERS)}.")
    retrieve = _retrieve(say)
    rules: tuple[Proposer, ...] = (TilingRules(), KernelRules(retrieve))
    if wanted == "rules":
        return Choice(rules)
    if endpoint is None:
        raise SettingsError(
            f"the proposer {wanted!r} needs a language model, and none is configured.",
            "Set ASCENDOPT_LLM_MODEL and ASCENDOPT_LLM_BASE_URL or ASCENDOPT_LLM_API_KEY (docs/llm.md), then try "
            "`ascendopt-tune llm-check`; or use the proposer rules.",
        )
    from ..llm.client import Client  # what follows is for who asks a model only
    from .llm_proposers import LlmKernel, LlmTiling

    bounded = replace(endpoint, max_tokens=limits.tokens, max_money=limits.money)
    client = Client(bounded, usage=usage, seed=seed, say=say)
    asking: tuple[Proposer, ...] = (LlmTiling(client), LlmKernel(client, retrieve))
    return Choice(asking if wanted == "llm" else (*asking, *rules), client)


def _retrieve(say: Callable[[str], None]) -> Callable[[SearchState, int], Sequence[Experience]]:
    """Looks experience up in the bank; one that can't be read is said once, and left out."""
    from ..bank.bank import Bank
    from ..bank.symptoms import symptoms
    from ..motifs import KernelProgram

    banks: list[Bank | None] = []  # opened at the first question

    def retrieve(state: SearchState, k: int) -> Sequence[Experience]:
        outcome = state.incumbent.outcome
        assert isinstance(outcome, Timed)
        try:
            banks[:] = banks or [Bank.open()]
            pair = state.incumbent.candidate.pair
            kernel = KernelProgram(pair.kernel, pair.tiling, state.chip, state.operator.auto_sync)
            query = symptoms(outcome.profile, state.chip, kernel)
            return [e for e, _ in banks[0].search(query, k, one_per_motif=True)] if banks[0] is not None else []
        except AscendOptError as error:
            banks[:] = [None]
            say(f"the experience bank can't be used: {error}")
            return []

    return retrieve
