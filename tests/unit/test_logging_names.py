"""Host programs that log by the names of CANN's older header: what they say becomes part of the refusal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.sources.registry import load_operator

_LOGS = (
    'DlogSub(OP, "TILING", DLOG_ERROR, "the number is %d", 7); Dlog(OP, DLOG_WARN, "a warning"); '
    'dlog_error(OP, "the text is %s", "x"); dlog_warn(OP, "w"); dlog_info(OP, "i"); dlog_debug(OP, "d"); '
    'dlog_event(OP, "v"); return ge::GRAPH_FAILED; '
)


@pytest.mark.parametrize("header", ["dlog_pub.h", "base/dlog_pub.h", "toolchain/slog.h"])
def test_what_is_logged_is_told(tmp_path: Path, header: str) -> None:
    operator = load_operator("add")
    text = operator.baseline.tiling["op_host/add.cpp"]
    place = "context->SetBlockDim("
    assert text.count(place) == 1
    pair = operator.baseline.with_tiling(
        "op_host/add.cpp", f'#include "{header}"\n' + text.replace(place, _LOGS + place)
    )
    spec = TensorSpec("float32", (4, 8))
    with closing(compile_host(operator, pair, virtual(), tmp_path)) as program:
        with pytest.raises(AscendOptError, match="the number is 7") as error:
            program.tiling(Case((spec, spec), (spec,)), load_chip("ascend910b2"))
        assert "the text is x" in str(error.value)
