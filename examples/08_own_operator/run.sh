#!/bin/sh
# An operator of one's own from end to end: written in Python, made an AscendC operator, run, tuned, served.
set -eu
here=$(dirname "$0")

ascendopt-tune dsl check "$here/clipped_relu.py" --input 'x=float32[64,1000]'
ascendopt-tune dsl lower "$here/clipped_relu.py" --out clipped_relu_op --input 'x=float32[64,1000]'
ascendopt-tune tune clipped_relu_op --budget 4
python "$here/serve.py"
