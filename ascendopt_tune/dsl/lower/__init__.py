"""From a program of the tile language to a CANN operator project, by rules: nothing here guesses.

``instructions`` says what an operation becomes, ``kernel`` and ``host`` print the two halves of the pair, ``project``
writes the folder. What is lowered is built without automatic synchronization; every dependence is in the text.
"""

from .project import Lowered, lower, write_project

__all__ = ["Lowered", "lower", "write_project"]
