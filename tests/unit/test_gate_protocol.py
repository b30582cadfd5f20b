"""What crosses the pipe arrives as it was sent; only the project's own classes can be built from a message."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ascendopt_tune.build.host import TilingResult
from ascendopt_tune.errors import CaseError, KernelCompileError
from ascendopt_tune.evaluate import protocol
from ascendopt_tune.evaluate.protocol import ArrayFile, EvaluateRequest, EvaluationResult, GateTrial, save_array
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import DirectLaunch, Operator, Pair
from ascendopt_tune.nouns.outcome import Hazard, Timed
from ascendopt_tune.nouns.profile import Profile


def test_a_request_survives_the_pipe() -> None:
    pair = Pair({"op_host/a.cpp": 'text with "quotes" and ü'}, {"op_kernel/a.cpp": "x\0y"})
    spec = TensorSpec("bfloat16", (2, 3), "NCHW")
    file = ArrayFile("/a", "bfloat16", (2, 3))
    request = EvaluateRequest(
        operator=Operator(
            "a", Path("/root"), "a", "op_kernel/a.cpp", pair, direct=DirectLaunch(3, (("N", "4"),), (("x", "GM_ADDR"),))
        ),
        pair=pair,
        case=Case((spec, None, (spec, spec)), (spec,), (("dim", -1), ("eps", 1e-6), ("axes", (1, 2)), ("s", "x"))),
        chip="ascend910b2",
        trials=(GateTrial(1, "normal", (file, None, (file, file)), (file,), 0xA5),),
    )
    assert protocol.decode(protocol.loads(protocol.dumps(protocol.encode(request)))) == request


def test_a_result_survives_the_pipe() -> None:
    timed = Timed(Profile(1.5, counters={"a": 2.0}), 3)
    result = EvaluationResult(timed, tiling=TilingResult(8, 1, 32, b"\0\xff"), timings_s={"compile": 0.5})
    assert protocol.decode(protocol.loads(protocol.dumps(protocol.encode(result)))) == result
    hazard = EvaluationResult(Hazard("why", ({"memory": "UB", "first": {"pc": 3}},)))
    assert protocol.decode(protocol.encode(hazard)) == hazard


def test_an_operators_reference_stays_behind() -> None:
    operator = Operator("a", Path("/"), "a", "k", Pair({}, {}), reference=lambda x: x)
    assert protocol.decode(protocol.encode(operator)).reference is None


def test_errors_arrive_as_themselves() -> None:
    error = KernelCompileError("what", "hint", "log")
    with pytest.raises(KernelCompileError) as caught:
        protocol.value_or_raise({"error": protocol.encode_error(error)})
    assert (caught.value.message, caught.value.hint, caught.value.log) == ("what", "hint", "log")


def test_a_message_builds_no_other_class() -> None:
    with pytest.raises(KeyError):
        protocol.decode({"$": "Popen", "args": ["true"]})


@pytest.mark.parametrize("dtype", [np.float16, np.bool_, np.int64, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0, 4), (3, 5)])
def test_arrays_as_files(tmp_path: Path, dtype: type, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    file = save_array(tmp_path / "a", array)
    loaded = file.load()
    assert loaded.dtype == array.dtype
    assert loaded.shape == shape
    np.testing.assert_array_equal(loaded, array)
    assert not loaded.flags.writeable or loaded.size == 0


def test_an_array_file_of_another_size_is_refused(tmp_path: Path) -> None:
    file = save_array(tmp_path / "a", np.ones(4, np.float32))
    with pytest.raises(CaseError, match="16 bytes"):
        ArrayFile(file.path, "float32", (5,)).load()
    with pytest.raises(CaseError):
        ArrayFile(str(tmp_path / "none"), "float32", (5,)).load()
