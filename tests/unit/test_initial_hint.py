"""Of an operator that reads its own output, as one that adds to it does: what is to be said of it."""

from __future__ import annotations

from ascendopt_tune.cli.run import initial_hint
from ascendopt_tune.nouns.operator import ParamDef, Signature

_SIGNATURE = Signature(
    "AddTo", (ParamDef("x", ("float32",)), ParamDef("index", ("int32",))), (ParamDef("out", ("float32",)),)
)
_READ = (
    "The read by DataCopy on pipe MTE3 at k.h:41 (f) on core 0 gets GM bytes [0, 256) of an allocation of 8192 B, "
    "kernel parameter {0}, which nobody has written; the write by DataCopy on pipe MTE3 at k.h:41 (f) carries them to "
    "the output: GM bytes [0, 256) of an allocation of 8192 B, kernel parameter {0}."
)


def test_the_output_is_named() -> None:
    assert "[initial] out = 0.0" in initial_hint(_READ.format(2), _SIGNATURE)


def test_nothing_is_said_of_inputs_workspaces_and_buffers() -> None:
    for reason in (_READ.format(1), _READ.format(3), "gets UB bytes [0, 32), which nobody has written", ""):
        assert initial_hint(reason, _SIGNATURE) == ""
