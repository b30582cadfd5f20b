"""The backend ``ascendopt`` of torch.compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

NAME = "ascendopt"


def backend(graph: Any, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """The entry of ``torch.compile(model, backend="ascendopt")``; see compile_pass.compile_graph."""
    from .compile_pass import compile_graph  # needs torch, which importing this package must not

    return compile_graph(graph, example_inputs, **kwargs)
