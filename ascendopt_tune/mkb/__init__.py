"""Solutions of MultiKernelBench's language ``ascendc`` as operator folders, and back (docs/multikernelbench.md).

``solution.py`` reads the six strings of a file, ``definition.py`` the operator's parameters; ``module.py`` and
``binding.py`` follow a call from the module's inputs through Python and C++ to the operator's arguments, over the
tensors of ``values.py``; ``folder.py`` writes what was found. ``write.py`` goes the other way. Nothing of a solution is
executed: its texts are read as syntax trees, and what the readers don't know is refused with its line.
"""
