#!/bin/sh
# A kernel without tiling function: the file, its __global__ function, and the number of blocks are all there is.
# The file's own host main() and <<<>>> launches are left alone.
set -eu
here=$(dirname "$0")

# Random inputs; the result is saved. A pointer parameter is an --input or an --output, a number is an --attr.
ascendopt-tune run --kernel "$here/scale_shift.cpp" --entry scale_shift --block-dim 8 -D TILE=1024 \
  --input 'x=float32[65536]' --output 'y=float32[65536]' --attr scale=2.0 --attr shift=0.5 --attr length=65536 \
  --outputs scale_shift.npz
