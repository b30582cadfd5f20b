"""Evaluation of one candidate: compile, tile, launch, check, measure, in processes a candidate can't harm.

What a candidate is asked (docs/gate.md):

* ``gate``: what must hold for one case; ``joint``: for several cases at once. ``protocol``: requests, answers,
  habits.
* ``trials``: the list of launches with their inputs. ``inputs``: random tensors in their domains; ``patterns``:
  inputs that make every element count; ``together``: patterns over several inputs; ``shares``: counts that add up
  to an axis.
* ``reference``: expected outputs and their leeway; ``wide``: the reference's formula in float64; ``moves``: outputs
  that are moved and not computed; ``compare`` and ``accuracy``: limits of single elements, and of errors as a
  whole.

Who does it:

* ``evaluator``: the tuner's side; ``screen``: for a real NPU, the virtual one before it; ``cluster``: on Ray.
* ``server``, ``worker``, ``connection``: the processes and what crosses the pipes between them.
* ``limits``, ``sandbox``, ``system_calls``: what a candidate may do.
* ``build`` (compile once), ``tile`` (run the tiling program), ``execute`` (launch), ``check`` (look at what a
  launch left), ``outputs`` (memory that is shared).

What is said of the result:

* ``verdict``, ``symbolize``: an outcome's reason in words, with places in the source.
* ``diagnosis``, ``cores``, ``bound``, ``timeline``: what bounds a kernel, how many cores pay, the least possible
  time, what cores did when.
"""
