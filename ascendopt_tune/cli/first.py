"""``ascendopt-tune`` without arguments: what to do first."""

from __future__ import annotations

FIRST_STEPS = """\
ascendopt-tune tunes AscendC operators: tiling program and kernel, together.
Without an NPU it uses the virtual one that comes with it, whose times are
modelled.

What to do first:

  ascendopt-tune doctor
      what was found on this machine, and what is missing
  ascendopt-tune ops
      the operators that ship with the project
  ascendopt-tune run softmax --profile
      build, run and check one as it is written, and see where its time goes
  ascendopt-tune tune softmax --report softmax.html
      tune it: a minute or two; Ctrl-C keeps the best pair found so far
  ascendopt-tune tune path/to/my_op --input x=float16[8,2048]
      an operator of yours: a folder with op_host/ and op_kernel/

Every command: ascendopt-tune --help
One of them, with examples: ascendopt-tune COMMAND --help
"""
