"""Of an operator that reads its own output, as one that adds to it does: what is to be said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.cli.run import initial_hint, settings_file
from ascendopt_tune.nouns.operator import Operator, Pair, ParamDef, Signature

_SIGNATURE = Signature(
    "AddTo", (ParamDef("x", ("float32",)), ParamDef("index", ("int32",))), (ParamDef("out", ("float32",)),)
)
_READ = (
    "The read by DataCopy on pipe MTE3 at k.h:41 (f) on core 0 gets GM bytes [0, 256) of an allocation of 8192 B, "
    "kernel parameter {0}, which nobody has written; the write by DataCopy on pipe MTE3 at k.h:41 (f) carries them to "
    "the output: GM bytes [0, 256) of an allocation of 8192 B, kernel parameter {0}."
)


def test_the_output_is_named() -> None:
    assert "[initial] out = 0.0 in an op.toml" in initial_hint(_READ.format(2), _SIGNATURE)
    assert "in an op_add_to.toml" in initial_hint(_READ.format(2), _SIGNATURE, "op_add_to.toml")


@pytest.mark.parametrize(
    ("name", "entry", "folder", "file"),
    [("add_to", "add_to", "several", "op_add_to.toml"), ("AddTo", "add_to", "AddTo", "op.toml"),
     ("add_to", "add_to", "add_to", "op.toml")],
)  # fmt: skip
def test_one_of_several_operators_has_settings_of_its_own(name: str, entry: str, folder: str, file: str) -> None:
    operator = Operator(name, Path(folder), entry, "op_kernel/k.cpp", Pair({}, {}))
    assert settings_file(operator) == file


def test_nothing_is_said_of_inputs_workspaces_and_buffers() -> None:
    for reason in (_READ.format(1), _READ.format(3), "gets UB bytes [0, 32), which nobody has written", ""):
        assert initial_hint(reason, _SIGNATURE) == ""
