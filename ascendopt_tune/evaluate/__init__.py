"""Evaluation of one candidate: compile, tile, launch, check, measure, in processes a candidate can't harm.

In order of processing: ``inputs`` (random tensors), ``gate`` (what must hold), ``evaluator`` (the tuner's side) and
``screen`` (for a real NPU: the virtual one before it),
``protocol`` (what crosses the pipe), ``server`` and ``worker`` (the other side), ``limits`` and ``sandbox`` (what a
candidate may do), ``build`` (compile once), ``execute`` (launch), ``compare``, ``verdict`` and ``symbolize`` (what came
out of it, in words).
"""
