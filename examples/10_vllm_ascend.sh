#!/bin/sh
# A kernel of vllm-ascend, unmodified, run and checked for hazards on the virtual NPU. ASCENDOPT_VLLM_ASCEND is the unpacked
# source distribution; `python tests/fetch_vllm_ascend.py build` of a checkout of this project fetches it.
set -eu
: "${ASCENDOPT_VLLM_ASCEND:?names no folder}"

# Each of seven tokens times the adapter that it uses, out of three: [7,256] x [3,16,256] -> [7,16].
ascendopt-tune run --kernel "$ASCENDOPT_VLLM_ASCEND/csrc/kernels/bgmv_shrink.cpp" --entry bgmv_shrink_half --block-dim 4 \
  --input 'x=float16[7,256]' --input 'weight=float16[3,16,256]' --input 'indices=int64[7]' --output 'y=float32[7,16]' \
  --domain 'indices=[1,0,2,2,1,0,1]' --attr batchSize=7 --attr numTokensPerCore=2 --attr inputHiddenDim=256 \
  --attr maxLoRARank=16 --attr scale=0.5 --attr indicesSize=7
