"""ascendopt_tune: a compiler-integrated autotuner for custom AscendC operators in torch-npu."""
