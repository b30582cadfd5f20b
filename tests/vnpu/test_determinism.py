"""A launch has one result: whatever observers are on, however often it runs, in any process, at any address.

The kernel below does what could depend on an order: float sums by atomic adds of many cores into one place, cores that
hand data to each other across SyncAll, and more blocks than there are cores.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.device.options import LaunchOptions

TILE = 256
KERNEL = """\
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 256;
// sum += x of every block; after SyncAll (when there is one) y of a block is x of the next block times the sum.
extern "C" __global__ __aicore__ void mix(GM_ADDR x, GM_ADDR y, GM_ADDR sum, GM_ADDR between, int32_t meet) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * 4);
  pipe.InitBuffer(out, 2, TILE * 4);
  GlobalTensor<float> gx, gy, gsum, gbetween;
  const uint32_t block = GetBlockIdx(), blocks = GetBlockNum();
  gx.SetGlobalBuffer((__gm__ float*)x + block * TILE, TILE);
  gy.SetGlobalBuffer((__gm__ float*)y + block * TILE, TILE);
  gsum.SetGlobalBuffer((__gm__ float*)sum, TILE);
  gbetween.SetGlobalBuffer((__gm__ float*)between, blocks * TILE);
  auto move = [&](GlobalTensor<float> to, GlobalTensor<float> from, float factor, bool add) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from, TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Muls(b, a, factor, TILE);
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<float>();
    if (add) SetAtomicAdd<float>();
    DataCopy(to, b, TILE);
    if (add) SetAtomicNone();
    out.FreeTensor(b);
  };
  move(gsum, gx, 1.0f / 3, true);
  move(gbetween[block * TILE], gx, 2.0f, false);
  if (meet) {
    SyncAll();
    move(gy, gbetween[(block + 1) % blocks * TILE], 0.1f, false);
  }
}
"""


def run(blocks: int, seed: int, timing: bool, hazards: bool) -> dict[str, Any]:
    """One launch in this process: digests of what it left in memory, and its report without times when off."""
    acl = Acl(toolkit.virtual())
    acl.options = LaunchOptions(timing=timing, hazards=hazards)
    binary = acl.compile(KERNEL, "mix.cpp", ["--cce-auto-sync=on"])
    x = np.random.default_rng(seed).standard_normal(blocks * TILE).astype(np.float32) * np.float32(1e3)
    sizes = [x.nbytes, x.nbytes, TILE * 4, x.nbytes]
    pointers = [acl.malloc(size) for size in sizes]
    with acl.load(binary) as loaded:
        for pointer, size in zip(pointers[1:], sizes[1:], strict=True):
            acl.memset(pointer, 0, size)
        acl.memcpy_h2d(pointers[0], x)
        acl.launch(loaded.function("mix"), blocks, [*pointers, ctypes.c_int32(blocks <= 48)])
        acl.synchronize()
        report = acl.report()
        digest = hashlib.sha256()
        for pointer, size in zip(pointers[1:], sizes[1:], strict=True):
            out = np.empty(size, np.uint8)
            acl.memcpy_d2h(out, pointer)
            digest.update(out)
    for pointer in pointers:
        acl.free(pointer)
    time = report["profile"]["task_duration_us"] if timing else None
    return {"memory": digest.hexdigest(), "hazards": report["hazards"], "modelled_us": time}


@settings(max_examples=6, deadline=None, derandomize=True)
@given(blocks=st.sampled_from([1, 2, 7, 48, 61]), seed=st.integers(0, 1 << 30))
def test_observers_change_nothing(blocks: int, seed: int) -> None:
    results = {(t, h): run(blocks, seed, t, h) for t, h in product((False, True), repeat=2)}
    assert len({r["memory"] for r in results.values()}) == 1
    assert len({r["modelled_us"] for (t, _), r in results.items() if t}) == 1
    assert all(r["hazards"] == [] for r in results.values())


def test_processes_at_other_addresses_agree() -> None:
    here = run(48, 5, True, True)
    code = "import sys, json; sys.path.insert(0, sys.argv[1]); import test_determinism as t; "
    for ballast in (0, 1, 7):  # allocated first, so that everything lies elsewhere, beside what the system randomizes
        text = code + f"b = [bytearray(1 << 20) for _ in range({ballast})]; print(json.dumps(t.run(48, 5, True, True)))"
        done = subprocess.run(
            [sys.executable, "-c", text, str(Path(__file__).parent)], capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == here
