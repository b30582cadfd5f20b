"""Who proposes in a run: the rules, a language model, or both by turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..bank.retrieval import Retrieval
from ..errors import SettingsError
from ..search.budget import Limits, Usage
from ..search.joint.rules import JointRules
from ..search.kernel.rules import KernelRules
from ..search.proposer import Proposer
from ..search.tiling.rules import TilingRules
from ..settings import PROPOSERS, settings
from .endpoint import Endpoint

if TYPE_CHECKING:
    from .client import Client


@dataclass(frozen=True)
class Choice:
    """``proposers`` of a run, what finds experience for them, and the ``client`` of those that ask a model, if any."""

    proposers: tuple[Proposer, ...]
    retrieval: Retrieval
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
    run: str = "",
) -> Choice:
    """The proposers called ``rules``, ``llm`` or ``both``; None: what the settings say, else both if there is a model.

    ``run`` names the tuning run: what it left to the bank before is not given back to it.

    Raises:
        SettingsError: an unknown name, or a model is wanted and none is configured.
    """
    now = settings()
    wanted = proposer or now.proposer or ("both" if endpoint is not None else "rules")
    if wanted not in PROPOSERS:
        raise SettingsError(f"unknown proposer {wanted!r}.", f"Known ones: {', '.join(PROPOSERS)}.")
    retrieval = Retrieval(say, run)
    rules: tuple[Proposer, ...] = (JointRules(), TilingRules(), KernelRules(retrieval))
    if wanted == "rules":
        return Choice(rules, retrieval)
    if endpoint is None:
        raise SettingsError(
            f"the proposer {wanted!r} needs a language model, and none is configured.",
            "Set ASCENDOPT_LLM_MODEL and ASCENDOPT_LLM_BASE_URL or ASCENDOPT_LLM_API_KEY (docs/llm.md), then try "
            "`ascendopt-tune llm-check`; or use the proposer rules.",
        )
    from .client import Client  # what follows is for who asks a model only
    from .proposers import LlmJoint, LlmKernel, LlmTiling

    bounded = replace(endpoint, max_tokens=limits.tokens, max_money=limits.money)
    client = Client(bounded, usage=usage, seed=seed, say=say)
    asking: tuple[Proposer, ...] = (LlmJoint(client), LlmTiling(client), LlmKernel(client, retrieval))
    return Choice(asking if wanted == "llm" else (*asking, *rules), retrieval, client)
