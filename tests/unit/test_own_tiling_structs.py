"""Tiling structures of high-level APIs that both sides have from the toolkit: a kernel's unit declares none of them."""

from __future__ import annotations

import re

import pytest

from ascendopt_tune.build.host_signature import TilingStruct
from ascendopt_tune.build.kernel import _declare
from ascendopt_tune.paths import vnpu


@pytest.mark.parametrize("name", ["TCubeTiling", "LayerNormTiling", "PadTiling", "UnPadTiling"])
def test_they_are_included(name: str) -> None:
    assert _declare(TilingStruct(name, None, 8, ())) == ['#include "kernel_tiling/kernel_tiling.h"']


def test_others_are_declared() -> None:
    assert _declare(TilingStruct("OwnTiling", None, 8, ()))[0] == "struct alignas(8) OwnTiling {"


def test_what_the_host_has_for_an_api_is_among_them() -> None:
    """Each of the host's classes of tilings has its kernel's structure in the header for both."""
    text = (vnpu() / "host" / "include" / "tiling" / "tiling_api.h").read_text()
    classes = re.findall(r"using api_tilings::(\w+);", text)
    assert {"PadTiling", "UnPadTiling", "TCubeTiling", "SoftMaxTiling"} <= set(classes)
    assert [n for n in classes if len(_declare(TilingStruct(n, None, 8, ()))) > 1] == []
