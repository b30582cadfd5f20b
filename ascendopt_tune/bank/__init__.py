"""What optimizations were worth, measured, and found again by the symptoms of a slow kernel.

``experience.py`` is one fact, ``bank.py`` the collection on disk, ``embedding.py`` and ``index.py`` how it is searched.
``rewind.py`` makes experience: it takes optimizations out of strong kernels, one at a time, through the gate, and
measures; ``distill.py`` writes down what that says.
"""

from .bank import Bank, BankWarning
from .experience import Experience, ExperienceProvenance, Use

__all__ = ["Bank", "BankWarning", "Experience", "ExperienceProvenance", "Use"]
