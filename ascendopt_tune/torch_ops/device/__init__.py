"""The device as torch sees it: the real torch_npu on the virtual NPU, operators it lacks, faults as exceptions."""
