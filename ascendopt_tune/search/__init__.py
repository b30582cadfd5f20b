"""The search: Stage I proposes tiling programs, Stage II kernels, the engine alternates them under one budget."""

from __future__ import annotations

from .budget import Budget, Limits, Usage
from .engine import Progress, Search, SearchOptions, SearchResult, one_by_one, run_header
from .journal import Journal
from .population import Population
from .proposer import Move, Proposal, Proposer, SearchState, Trial
from .tiling.rules import TilingRules
from .tiling.slice import EvolvableSite, Template, synthesize

__all__ = [
    "Budget",
    "EvolvableSite",
    "Journal",
    "Limits",
    "Move",
    "Population",
    "Progress",
    "Proposal",
    "Proposer",
    "Search",
    "SearchOptions",
    "SearchResult",
    "SearchState",
    "Template",
    "TilingRules",
    "Trial",
    "Usage",
    "one_by_one",
    "run_header",
    "synthesize",
]
