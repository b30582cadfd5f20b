#!/bin/sh
# The command line, from looking around to a tuned operator. Needs nothing but an installed ascendopt_tune and g++.
set -eu

# What is there, and what is missing?
ascendopt-tune doctor

# Build, run, check and profile an operator of the registry as it is written.
ascendopt-tune run rms_norm --input 'x=float16[16,1024]' --input 'gamma=float16[1024]' --attr epsilon=1e-5

# Tune it for the same case; four evaluations are enough to see how it goes (the default is 40).
ascendopt-tune tune rms_norm --input 'x=float16[16,1024]' --input 'gamma=float16[1024]' --attr epsilon=1e-5 \
  --budget 4 --report rms_norm.html

# Asked again, the cache answers. --json prints one document, for programs.
ascendopt-tune tune rms_norm --input 'x=float16[16,1024]' --input 'gamma=float16[1024]' --attr epsilon=1e-5 \
  --json > rms_norm.json
grep '"cached": true' rms_norm.json
