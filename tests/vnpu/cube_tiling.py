"""TCubeTiling as ctypes has it, and the host's tiling classes asked from Python."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from ascendopt_tune.build.toolkit import host_compiler, virtual

FIELDS = [
    "usedCoreNum", "M", "N", "Ka", "Kb", "singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN", "baseK",
    "depthA1", "depthB1", "stepM", "stepN", "isBias", "transLength", "iterateOrder", "shareMode", "shareL1Size",
    "shareL0CSize", "shareUbSize", "batchM", "batchN", "singleBatchM", "singleBatchN", "stepKa", "stepKb",
    "depthAL1CacheUB", "depthBL1CacheUB", "dbL0A", "dbL0B", "dbL0C", "ALayoutInfoB", "ALayoutInfoS", "ALayoutInfoN",
    "ALayoutInfoG", "ALayoutInfoD", "BLayoutInfoB", "BLayoutInfoS", "BLayoutInfoN", "BLayoutInfoG", "BLayoutInfoD",
    "CLayoutInfoB", "CLayoutInfoS1", "CLayoutInfoN", "CLayoutInfoG", "CLayoutInfoS2", "BatchNum", "mxTypePara",
]  # fmt: skip
WISHES = ("m", "n", "k", "cores", "dtype", "out", "turn_a", "turn_b", "bias", "split_k", "single_m", "single_n",
          "single_k", "base_m", "base_n", "l1", "sparse")  # fmt: skip
DTYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "bfloat16": 27, "int4": 29}


class CubeTiling(ctypes.Structure):
    """TCubeTiling."""

    _fields_ = [(name, ctypes.c_int32) for name in FIELDS]

    def of(self, *names: str) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in names)


@cache
def library(folder: Path) -> Any:
    """``cube_tilings.cpp`` as a library, built in ``folder``."""
    prefix, path = virtual().prefix, folder / "cube_tilings.so"
    command = [host_compiler(), "-std=c++17", "-O0", "-shared", "-fPIC", "-w", f"-I{prefix}/include",
               str(Path(__file__).with_name("cube_tilings.cpp")), f"-L{prefix}/lib64", "-lvnpu_host",
               f"-Wl,-rpath,{prefix}/lib64", "-o", str(path)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(path))


def choose(folder: Path, m: int, n: int, k: int, cores: int = 1, dtype: str = "float16", out: str = "float32",
           **more: int) -> CubeTiling | None:  # fmt: skip
    """What GetTiling says; None for -1."""
    wishes = {"m": m, "n": n, "k": k, "cores": cores, "dtype": DTYPES[dtype], "out": DTYPES[out], **more}
    unset = {"turn_a": 0, "turn_b": 0, "bias": 0, "split_k": 0, "sparse": 0}
    values = (ctypes.c_int32 * len(WISHES))(*(wishes.get(name, unset.get(name, -1)) for name in WISHES))
    tiling = CubeTiling()
    used = library(folder).choose(values, ctypes.byref(tiling))
    assert used in (-1, tiling.usedCoreNum)
    return None if used == -1 else tiling
