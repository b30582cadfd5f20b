"""Entries for the cache's tests: made by hand, and arbitrary ones for property tests."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hypothesis import strategies as st

from ascendopt_tune.build.host import TilingResult
from ascendopt_tune.nouns.case import DTYPES, Case, TensorSpec
from ascendopt_tune.nouns.clocks import Interval
from ascendopt_tune.nouns.operator import AttrDef, Operator, Pair, ParamDef, Signature
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.store.cache import Entry, Key, Provenance

PAIR = Pair({"op_host/add.cpp": "int tiling = 1;\r\n", "op_host/add_tiling.h": ""}, {"op_kernel/add.cpp": "// é\n"})
SIGNATURE = Signature(
    "Add",
    (ParamDef("x", ("float16", "float32")), ParamDef("y", ("float16", "float32"), "optional")),
    (ParamDef("z", ("float16", "float32"), formats=("ND", "ND")),),
    (AttrDef("axes", "list_int", (0, -1)), AttrDef("p", "float", float("inf")), AttrDef("mode", "str", "a")),
    has_infer_shape=True,
)


def operator(name: str = "add", pair: Pair = PAIR) -> Operator:
    return Operator(name, Path("/operators") / name, "add", "op_kernel/add.cpp", pair, ("op_host/add.cpp",))


def case(rows: int = 1024, dtype: str = "float16", **attrs: float) -> Case:
    spec = TensorSpec(dtype, (rows, 64))
    return Case((spec, None), (spec,), tuple(sorted(attrs.items())))


def key(rows: int = 1024, dtype: str = "float16", name: str = "add", chip: str = "ascend910b2", **attrs: float) -> Key:
    return Key.of(operator(name), case(rows, dtype, **attrs), chip=chip, target="virtual", toolkit="vnpu-1")


def entry(key_: Key | None = None, best_us: float = 5.0, binary: bytes = b"\x7fELF" * 1000) -> Entry:
    return Entry(
        key=key_ or key(),
        pair=PAIR.with_tiling("op_host/add.cpp", f"int tiling = 2; // {best_us}\n"),
        binary=binary,
        kernel_name="add_0_tilingkey",
        tiling=TilingResult(block_dim=40, tiling_key=7, workspace_bytes=64, data=bytes(range(256))),
        baseline=Profile(10.0, 9.0, counters={"mte2_bytes": 1.0}),
        best=Profile(best_us, 4.0),
        provenance=Provenance(
            0, 40, 12, {"Timed": 10, "Hazard": 2}, {"toolkit": "vnpu-1"}, "2025-01-01T00:00:00+00:00"
        ),
        signature=SIGNATURE,
    )


_shapes = st.lists(st.integers(0, 1 << 40), max_size=4).map(tuple)
_specs = st.builds(TensorSpec, st.sampled_from(sorted(DTYPES)), _shapes)
_arguments = st.one_of(st.none(), _specs, st.lists(_specs, min_size=1, max_size=3).map(tuple))
_attr_values = st.one_of(
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.lists(st.integers(-9, 9), max_size=3).map(tuple),
    st.lists(st.floats(allow_nan=False), max_size=3).map(tuple),
)
cases = st.builds(
    Case,
    st.lists(_arguments, max_size=4).map(tuple),
    st.lists(_arguments, max_size=2).map(tuple),
    st.dictionaries(st.text("abc_", min_size=1, max_size=3), _attr_values, max_size=3).map(
        lambda d: tuple(sorted(d.items()))
    ),
)
_text = st.text(st.characters(codec="utf-8"), max_size=30)
_chips = _text.filter(lambda name: not name.endswith(".toml"))  # which would be read as a file
_files = st.dictionaries(st.sampled_from(["op/a.cpp", "op/b.h", "op/deep/c d.inc"]), _text, min_size=1)
_profiles = st.builds(
    Profile,
    st.floats(0.01, 1e9),
    counters=st.dictionaries(st.text(max_size=4), st.floats(allow_nan=False), max_size=2),
)
_ratios = st.floats(0.01, 100.0)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    made = Key.of(
        operator(draw(st.sampled_from(["add", "../odd name", "ä"]))),
        draw(cases),
        chip=draw(_chips),
        target=draw(st.sampled_from(["virtual", "npu"])),
        toolkit=draw(_text),
    )
    return dataclasses.replace(
        entry(made),
        pair=Pair(draw(_files), draw(_files)),
        binary=draw(st.binary(max_size=64)),
        tiling=TilingResult(
            draw(st.integers(1, 48)), draw(st.integers(0, 1 << 63)), 0, draw(st.binary(max_size=64)), 1
        ),
        baseline=draw(_profiles),
        best=draw(_profiles),
        signature=draw(st.sampled_from([SIGNATURE, None])),
        interval=draw(st.none() | st.builds(Interval, _ratios, _ratios, st.floats(0.0, 1.0))),
    )
