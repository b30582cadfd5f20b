"""From a torch module to a program of the tile language, by rules; a language model only where none fits.

``capture`` (torch.export to primitives, by ``aten``), ``axes`` (normalized indices), ``schedules/`` (loops, tiles and
cores), ``text`` and ``program`` (the text), ``fit`` (tiles that fit), ``interpreted`` (beside the module), ``author``
(the language model's roles), ``generated`` (the folder). docs/generate.md tells the story for users.
"""

from .author import Attempt, Author
from .generate import generate, generate_file
from .generated import Generated
from .graph import NotGenerated

__all__ = ["Attempt", "Author", "Generated", "NotGenerated", "generate", "generate_file"]
