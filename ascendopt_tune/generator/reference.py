"""What a generated operator is held to: the module itself, kept beside it, as ``reference.py``."""

from __future__ import annotations

from .graph import Graph

_TEXT = '''"""What {name} computes: the forward pass of the module it was generated from ({kept})."""

from pathlib import Path
from typing import Any

import torch

{load}


def reference({signature}) -> Any:
    model = _MODEL.to({first}.dtype) if {first}.is_floating_point() else _MODEL
    state: dict[str, torch.Tensor] = {{{state}}}
    with torch.no_grad():{serial}
        return torch.func.functional_call(model, state, ({call}))
'''
_FILE = """_TEXT = Path(__file__).with_name("module.py")
_NAMES: dict[str, Any] = {"__name__": "module", "__file__": str(_TEXT)}
exec(compile(_TEXT.read_text(encoding="utf-8"), str(_TEXT), "exec"), _NAMES)
torch.manual_seed(1024)
_MODEL = _NAMES["Model"](*_NAMES.get("get_init_inputs", list)())"""
#: Of several updates of one place the last one stays; torch's threads leave any of them.
_SERIAL = "\n        torch.use_deterministic_algorithms(True, warn_only=True)"
_SAVED = '_MODEL = torch.load(Path(__file__).with_name("module.pt"), weights_only=False)'


def reference_text(graph: Graph, arguments: list[str], from_file: bool) -> str:
    """The file's text.

    Args:
        arguments: what the module is called with, in order: the program's names, or numbers.
    """
    tensors = [i for i in graph.inputs if i.shape is not None]
    parts = [f"{i.name}: torch.Tensor" for i in tensors]
    parts += [f"{i.name}: float = {i.value!r}" for i in graph.inputs if i.shape is None]
    floating = [i.name for i in tensors if i.dtype.startswith(("float", "bfloat"))]
    return _TEXT.format(
        name=graph.name,
        kept="module.py" if from_file else "module.pt",
        load=_FILE if from_file else _SAVED,
        signature=", ".join(parts),
        first=(floating or [tensors[0].name])[0],
        serial=_SERIAL if any(n.op == "scatter" and not n.info["add"] for n in graph.nodes()) else "",
        state=", ".join(f'"{i.parameter}": {i.name}' for i in tensors if i.parameter),
        call="".join(f"{a}, " for a in arguments).rstrip(" "),
    )
