"""From a torch module to a program of the tile language, by rules: no language model, no template per task.

``capture`` (torch.export to primitives, by ``aten``), ``axes`` (normalized indices), ``schedules/`` (loops, tiles and
cores), ``text`` and ``program`` (the text), ``fit`` (tiles that fit), ``interpreted`` (beside the module), ``generate``
(the folder). docs/generate.md tells the story for users.
"""

from .generate import Generated, generate, generate_file
from .graph import NotGenerated

__all__ = ["Generated", "NotGenerated", "generate", "generate_file"]
