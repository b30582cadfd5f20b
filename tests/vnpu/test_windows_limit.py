"""How many bytes are few is a constant of the chip files: a replay takes another one (modelled)."""

from __future__ import annotations

import ctypes

import pytest
from api_kernel import device
from test_windows import CHIP, CORES, COUNT, FEW_BYTES

from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.nouns.clocks import plausible

KEY = "memory.few_bytes_most"


@pytest.mark.parametrize("nbytes", [2, 32])
def test_a_replay_asks_with_another_limit(nbytes: int) -> None:
    """Cores whose pieces share windows: they wait up to the limit and not beyond, whatever the launch itself had."""
    acl = device()
    function = acl.load(acl.compile(FEW_BYTES, "few_bytes.cpp", ["--cce-auto-sync=off"])).function("few_bytes")
    x = acl.malloc(1 << 20)
    try:
        arguments = [x, *(ctypes.c_uint32(n) for n in (nbytes, nbytes, COUNT, 0))]
        acl.launch(function, CORES, arguments, options=LaunchOptions(hazards=False))
        acl.synchronize()
        asked, below, at, above = acl.replay_times([{}, *({KEY: nbytes + by} for by in (-1, 0, 40))])[:, 0]
    finally:
        acl.free(x)
    assert at == above > below
    assert asked == (at if nbytes <= CHIP.constants[KEY].value else below)


def test_draws_stay_within_what_is_published() -> None:
    """Pieces of 2 to 8 bytes wait on silicon, pieces of 28 don't: no plausible clock says otherwise."""
    drawn = [clock[KEY] for clock in plausible(CHIP, 1000)]
    assert 8 <= min(drawn) < CHIP.constants[KEY].value < max(drawn) < 28
