#!/bin/sh
# An operator as a solution of MultiKernelBench, and such a solution as an operator. A solution is one Python file with six
# strings, a task a Python file with Model, get_inputs and get_init_inputs; yours come from the benchmark.
set -eu

# The registry's silu as solution and task.
ascendopt-tune export silu --out solution.py --task task.py

# A solution and its task as an operator's folder: the solution is read, never executed; the task says what is right.
ascendopt-tune import solution.py --task task.py --out silu_task

# From here on it is an operator like any other: run, tune, serve, and back with `export`.
ascendopt-tune run silu_task --input 'x=float16[8,512]'
