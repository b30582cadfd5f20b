"""The host's tiling functions of the normalizing APIs, asked from Python, and the frame of their kernels' tests."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ascendopt_tune.build.toolkit import host_compiler, virtual

Array = npt.NDArray[Any]
#: Where the operands lie in the input and in the output, in bytes (kernels/norm.cpp).
SECOND, THIRD, FOURTH, FIFTH, SIXTH = 24576, 49152, 55296, 61440, 63488
#: What is left behind the kernel's buffers, in bytes, and how many words of params stand before the tiling's.
LEFT, BEFORE = 65280, 16
_WORDS = 30


@cache
def _library() -> Any:
    """``norm_tilings.cpp`` as a library."""
    with tempfile.TemporaryDirectory() as folder:
        prefix, path = virtual().prefix, Path(folder) / "norm_tilings.so"
        command = [host_compiler(), "-std=c++17", "-O0", "-shared", "-fPIC", "-w", f"-I{prefix}/include",
                   str(Path(__file__).with_name("norm_tilings.cpp")), f"-L{prefix}/lib64", "-lvnpu_host",
                   f"-Wl,-rpath,{prefix}/lib64", "-o", str(path)]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        return ctypes.CDLL(str(path))


def _ask(name: str, wish: list[int], words: int) -> list[int] | None:
    out = (ctypes.c_uint32 * words)()
    there = getattr(_library(), name)((ctypes.c_int32 * len(wish))(*wish), out)
    return list(out) if there else None


def sizes(name: str, size: int, reuse: int, *shape: int) -> tuple[int, int]:
    """The most and the least bytes of temporary memory."""
    found = _ask(f"{name}_sizes", [size, reuse, *shape], 2)
    assert found is not None
    return found[0], found[1]


def tiling(name: str, room: int, size: int, reuse: int, *shape: int) -> list[int] | None:
    """The words of a tiling for ``room`` bytes; None where there is none."""
    return _ask(name, [room, size, reuse, *shape], _WORDS)


def room_of(kind: int, found: tuple[int, int]) -> int:
    """Bytes of the shared buffer: 0 for what is left, the least, or as many as may be."""
    return [0, found[1], min(max(found), 65536)][kind]


def call_with(head: list[int], words: list[int] | None) -> list[int]:
    """The kernel's params: ``head``, and the tiling's words (or zeros)."""
    numbers = np.array(words or [0] * _WORDS, np.uint32).view(np.int32)
    return [*head, *[0] * (BEFORE - len(head)), *map(int, numbers)]


def bits(x: float) -> int:
    return int(np.float32(x).view(np.int32))


def values(seed: int, shape: Any, dtype: str, scale: float = 2.0) -> Array:
    x: Array = (np.random.default_rng(seed).standard_normal(shape) * scale + 0.5).astype(dtype)
    return x


def area(**operands: Array) -> Array:
    """An input of the kernel: operands by the name of their place, ``first`` at its begin."""
    places = {"first": 0, "second": SECOND, "third": THIRD, "fourth": FOURTH, "fifth": FIFTH, "sixth": SIXTH}
    raw = np.zeros(65536, np.uint8)
    for name, x in operands.items():
        flat = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
        raw[places[name] : places[name] + flat.size] = flat
    return raw


def at(raw: Array, place: int, n: int, dtype: str) -> Array:
    return raw[place:].view(dtype)[:n].astype(np.float64)


def close(got: Array, want: Array, dtype: str, scale: float = 1.0) -> None:
    tolerance = (2e-3 if dtype == "float16" else 4e-6) * scale
    np.testing.assert_allclose(got, want, tolerance, tolerance)
