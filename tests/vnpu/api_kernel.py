"""Runs one AscendC call on the virtual NPU: the harness of the API tests.

A test file has one kernel source in ``kernels/``, compiled once, because compiling costs seconds. Its single entry
``api(in, out, params, local_bytes)`` copies ``in`` to the start of local memory and ``out`` behind it, makes the call
that ``params`` (int32) describe, and copies ``out`` back; see ``kernels/api_kernel.h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl

Array = npt.NDArray[Any]

KERNELS = Path(__file__).resolve().parent / "kernels"
PARAMS = 48
#: Local memory as kernels/api_kernel.h divides it: bytes for input and for output.
INPUT_BYTES, OUTPUT_BYTES = 65536, 65536
DTYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "int16": 3,
    "uint16": 4,
    "uint32": 5,
    "int8": 6,
    "uint8": 7,
    "bfloat16": 8,
}


@cache
def device() -> Acl:
    """The virtual NPU of this process."""
    return Acl(toolkit.virtual())


class ApiKernel:
    """The compiled kernels of one source file."""

    def __init__(self, name: str) -> None:
        self._acl = device()
        source = (KERNELS / f"{name}.cpp").read_text()
        header = (KERNELS / "api_kernel.h").read_text()
        binary = self._acl.compile(source, f"{name}.cpp", ["--cce-auto-sync=off"], {"api_kernel.h": header})
        self._binary = self._acl.load(binary)
        self._input = self._acl.malloc(INPUT_BYTES)
        self._output = self._acl.malloc(OUTPUT_BYTES)
        self._params = self._acl.malloc(PARAMS * 4)

    def run(self, params: Sequence[int], source: Array, destination: Array) -> Array:
        """Makes the call and returns what it left in ``destination`` (same shape and dtype).

        Args:
            params: at most PARAMS numbers; floating point ones as their bits.
            source: copied to the start of local memory, at most INPUT_BYTES.
            destination: what the output's local memory holds before the call, at most OUTPUT_BYTES.

        Raises:
            DeviceError: the kernel broke a rule; the message cites it.
            AssertionError: the hazard checker reports something.
        """
        numbers = np.zeros(PARAMS, np.int32)
        numbers[: len(params)] = params
        self._acl.memcpy_h2d(self._params, numbers)
        sizes = []
        for address, array, limit in ((self._input, source, INPUT_BYTES), (self._output, destination, OUTPUT_BYTES)):
            blocks = np.zeros(-(-array.nbytes // 32) * 32, np.uint8)
            assert blocks.nbytes <= limit, blocks.nbytes
            blocks[: array.nbytes] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
            self._acl.memcpy_h2d(address, blocks)
            sizes.append(blocks.nbytes)
        packed = sizes[0] | sizes[1] << 32
        function = self._binary.function("api")
        self._acl.launch(function, 1, [self._input, self._output, self._params, packed])
        raw = np.empty(sizes[1], np.uint8)
        self._acl.memcpy_d2h(raw, self._output)
        self.report = self._acl.report()
        assert not self.report["hazards"], self.report["hazards"]
        return raw[: destination.nbytes].view(destination.dtype).reshape(destination.shape)
