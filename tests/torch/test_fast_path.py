"""Hits served in C++: that they are, that everything else reaches the hook of Python, and how it is compiled."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune.errors import ToolchainError  # noqa: E402
from ascendopt_tune.settings import override  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import dispatch, fast_path  # noqa: E402
from ascendopt_tune.torch_ops.serving.bound import bind  # noqa: E402
from ascendopt_tune.torch_ops.serving.fast_build import Build  # noqa: E402
from ascendopt_tune.torch_ops.serving.fast_path import FastTable  # noqa: E402
from ascendopt_tune.torch_ops.serving.form import CallForm  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402
from ascendopt_tune.torch_ops.serving.sampling import sampler  # noqa: E402
from ascendopt_tune.torch_ops.serving.status import status  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

SHAPE = (64, 512)  # the tuned case of conftest.tuned_add


@pytest.fixture
def taken(layer: Path, fast_library: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An operator of Python's, intercepted, after the call that compares: hits are served in C++ from now on. None is
    sampled."""
    monkeypatch.setenv("ASCENDOPT_CHECK_EVERY", "0")
    for interception in operator(monkeypatch):
        check(tensors())
        yield interception


def operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The operator and its interception; gone when the loop over this ends."""
    fallback.take_over()
    registered.clear()
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_S", 0.0)
    lib = torch.library.Library("aot_fast", "DEF")
    lib.define("add(Tensor x, Tensor y) -> Tensor")
    lib.impl("add", lambda x, y: x + y, "PrivateUse1")
    try:
        with aot.intercept("aot_fast::add", "add") as interception:
            yield interception
    finally:
        lib._destroy()


def tensors(seed: int = 0) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(SHAPE, generator=generator).half().npu() for _ in range(2))


def check(args: tuple[Any, Any]) -> None:
    got = torch.ops.aot_fast.add(*args)
    assert torch.equal(got.cpu(), (args[0] + args[1]).cpu())


def launcher_of(taken: Any) -> Any:
    (launcher,) = taken.tuned[0].table.choices.values()
    return launcher


def served(taken: Any) -> tuple[int, int]:
    """Calls of the one launcher in C++, and in Python."""
    launcher = launcher_of(taken)
    return launcher.fast.calls, launcher.calls


def counts() -> tuple[int, int]:
    row = aot.stats()["aot_fast::add"]
    return row["hits"], sum(row["fallbacks"].values())


def test_hits_are_served_and_counted(taken: Any) -> None:
    for seed in range(3):
        check(tensors(seed))
    assert served(taken) == (3, 0)
    assert counts() == (4, 0)
    taken.tuned[0].forget()  # what was counted stays, and the case is compared anew
    assert counts() == (4, 0)
    check(tensors())
    check(tensors())
    assert served(taken) == (1, 0)
    assert counts() == (6, 0)


#: A call's arguments, and for each of them what is another case.
ARGUMENTS: list[tuple[Any, list[Any]]] = [
    ((4, 8), [(8, 4), (4, 8, 1), (32,)]),  # the shape of a tensor
    (3, [4, -3, 2**40]),
    (0.5, [0.25, 3.0]),
    (True, [False]),
    ("sum", ["mean", "", "sums", "sümm"]),
    ([1, 2], [[1, 3], [1], [], [1, 2, 3]]),
    ([0.5], [[0.25], [], [0.5, 0.5]]),
    (None, [(4, 8)]),
    ((4, 8), [None, (8, 4)]),
    (-1, [1, 2**62]),
]


@pytest.mark.parametrize("bound", [False, True], ids=["dispatched", "bound"])
def test_each_argument_tells_cases_apart(bound: bool, fast_library: Any) -> None:
    def made(value: Any) -> Any:
        return torch.zeros(value).npu() if isinstance(value, tuple) else value

    lib = torch.library.Library("aot_key", "DEF")
    lib.define("f(Tensor x, int i, float f, bool b, str s, int[] n, float[] w, Tensor? y, Tensor? z, int k) -> Tensor")
    lib.impl("f", lambda x, *rest: torch.ones(1).npu(), "PrivateUse1")
    launches: list[int] = []
    launch = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 6)(lambda *_: launches.append(1) or 0)
    op, args = torch.ops.aot_key.f.default, [made(value) for value, _ in ARGUMENTS]
    form = CallForm.of(op._schema, tuple(args), {}, args[0].device)
    assert form is not None
    number = fast_library.dtype_number
    case = fast_library.Case(
        key=[(p[0], number(p[1])) if isinstance(p, tuple) else p for p in form.key],
        device=0,
        several=False,
        function=0,
        block_dim=1,
        launch=ctypes.cast(launch, ctypes.c_void_p).value,
        tiling=0,
        workspace_bytes=0,
        system_bytes=0,
        inputs=[0, -1, 8],
        outputs=[fast_library.Output(fast_library.Output.NEW, -1, True, ((2, 2), number(torch.int32)), None)],
        returned=[0],
    )
    table = FastTable(fast_library, grad=True)
    table.table.put(case)
    override = fast_library.Override("aot_key::f", "", table.table)
    call: Any = op
    if bound:
        call, handle = table.bound("f", "here")
        handle.set(case, (), list(range(len(args))), [op], op, 0)
        handle.set_otherwise(lambda *args: torch.ones(1))
    try:
        found = call(*args)
        assert (len(launches), found.shape, found.dtype, found.device.type) == (1, (2, 2), torch.int32, "npu")
        for i, (_, others) in enumerate(ARGUMENTS):
            for other in others:
                assert call(*args[:i], made(other), *args[i + 1 :]).shape == (1,), (i, other)
        for tensor in (args[0].half(), args[0].t().contiguous().t(), args[0].cpu()):
            if bound or tensor.device.type == "npu":
                assert call(tensor, *args[1:]).shape == (1,)
        if bound:  # torch's dispatcher refuses it
            assert call(*args[:-1], 2**64).shape == (1,)
        assert len(launches) == 1
        assert call(*args).shape == (2, 2)
        table.table.remove(case)
        assert call(*args).shape == (1,)
        assert (len(launches), case.calls) == (2, 2)
    finally:
        override.undo()
        lib._destroy()


def test_the_kill_switch_and_policies_work_from_the_next_call_on(taken: Any) -> None:
    for setting in (override(disable=True), aot.policy("off")):
        with setting:
            check(tensors())
        assert served(taken)[0] == counts()[0] - 1
    assert counts() == (1, 0)
    with aot.policy("lookup"):
        check(tensors())
    assert served(taken) == (0, 1)
    aot.rollback()
    check(tensors())
    aot.restore()
    assert counts() == (2, 0)


def test_other_calls_are_the_hooks(taken: Any) -> None:
    x, y = tensors()
    check((x[:32], y[:32]))  # not tuned
    check((x.t().contiguous().t(), y))  # not contiguous
    check((x.float(), y.float()))
    storage = torch.empty(SHAPE[0] * SHAPE[1] + 1, dtype=torch.float16, device="npu")
    check((storage[1:].view(SHAPE).copy_(x), y))  # misaligned: the original's, and counted
    assert any("multiple of 32 bytes" in reason for reason in aot.stats()["aot_fast::add"]["fallbacks"])
    x.requires_grad_()  # no formula: the original is differentiated
    torch.ops.aot_fast.add(x, y).sum().backward()
    assert (x.grad.cpu() == 1).all()
    choices = taken.tuned[0].table.choices.values()
    assert [c.fast.calls for c in choices if isinstance(c, dispatch.Launcher)] == [0]


def test_a_failing_launch_is_the_originals(taken: Any) -> None:
    """C++ hands the call on; the hook fails, too, counts that, and gives the pair up in the end."""
    tuned, launcher = taken.tuned[0], launcher_of(taken)
    failing = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, *[ctypes.c_void_p] * 4)(lambda *_: 7)
    (key,) = tuned.table.choices
    launcher.launch = failing
    tuned.forget()
    tuned.enter_service(key, launcher, tensors(), {})
    for _ in range(dispatch.MAX_FAILURES):
        check(tensors())
    assert counts() == (1, dispatch.MAX_FAILURES)
    assert any("quarantined" in c.reason for c in tuned.table.choices.values())
    check(tensors())
    assert launcher.calls == 0


def test_a_bound_launch_that_fails(taken: Any) -> None:
    """As above, for what a graph's node calls."""
    tuned, launcher = taken.tuned[0], launcher_of(taken)
    bound = bind(tuned, torch.ops.aot_fast.add.default, "aot_fast::add", checked=())
    x, y = tensors()
    want = (x + y).cpu()
    for _ in range(2):
        assert torch.equal(bound(x, y).cpu(), want)
    assert served(taken) == (2, 0)
    (key,) = tuned.table.choices
    launcher.launch = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 6)(lambda *_: 7)
    tuned.forget()
    tuned.enter_service(key, launcher, (x, y), {})
    for number in range(1, dispatch.MAX_FAILURES + 1):
        assert torch.equal(bound(x, y).cpu(), want)
        assert counts() == (3, number)
    assert any("quarantined" in c.reason for c in tuned.table.choices.values())
    assert torch.equal(bound(x, y).cpu(), want)


def test_a_bound_call_heeds_every_switch(taken: Any) -> None:

    def launched() -> int:
        row = status().operators["aot_fast::add"]
        assert row.hits == row.fast + row.compared
        return row.fast

    x, y = tensors()
    bound = bind(taken.tuned[0], torch.ops.aot_fast.add.default, "aot_fast::add", checked=())
    bound(x, y)
    bound(x, y)
    assert launched() == 2
    for setting in (override(disable=True), aot.policy("off")):
        with setting:
            bound(x, y)
    taken.suspend()
    bound(x, y)
    taken.resume()
    assert launched() == 2
    bound(x, y)
    bound(x, y)
    assert launched() == 4
    bound(x[:32], y[:32])  # another case
    bound(x.float(), y.float())
    aot.rollback()
    bound(x, y)
    assert launched() == 4
    aot.restore()


def test_calls_in_cpp_are_sampled(layer: Path, fast_library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 16th and 32nd call are Python's, which samples them; all others stay in C++."""
    for taken in operator(monkeypatch):
        check(tensors())
        before = sampler.judged
        for i in range(40):
            check(tensors(i))
            sampler.wait()
        assert (served(taken), sampler.judged - before) == ((38, 2), 2)


def test_threads(taken: Any) -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(20):
                check(tensors(seed + i))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert served(taken) == (80, 0)


def test_it_may_come_later(layer: Path, fast_library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken over while C++ was being compiled is served by it after a warm-up, which waits for it."""
    monkeypatch.setattr(fast_path, "_state", fast_path._State())
    monkeypatch.setattr(fast_path, "_loaded", lambda wait: fast_library if wait else None)
    said: list[str] = []
    for interception in operator(monkeypatch):
        check(tensors())
        check(tensors())
        assert "not compiled yet" in status().hits_by
        aot.warmup(torch.ops.aot_fast.add, tensors(), progress=said.append)
        assert any("waiting for the fast path" in text for text in said)
        assert status().hits_by == "C++"
        before = served(interception)
        check(tensors())
        assert served(interception) == (before[0] + 1, before[1])
        assert before[1] >= 1


def test_without_it_python_serves(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_FAST_PATH", "0")
    assert fast_path.library(wait=True) is None
    for interception in operator(monkeypatch):
        check(tensors())
        check(tensors())
        assert launcher_of(interception).calls == 1
        assert "hits are served in Python (ASCENDOPT_FAST_PATH=0)" in str(status())
        assert status().operators["aot_fast::add"].fast == 0


def test_a_process_may_fork_and_end_with_it_in_place(layer: Path, fast_library: Any) -> None:
    code = f"""
import os
import ascendopt_tune as aot
import torch
lib = torch.library.Library("aot_child", "DEF")
lib.define("add(Tensor x, Tensor y) -> Tensor")
lib.impl("add", lambda x, y: x + y, "PrivateUse1")
aot.intercept("aot_child::add", "add")
x = torch.ones({SHAPE}, dtype=torch.float16).npu()
def call():
    assert (torch.ops.aot_child.add(x, x).cpu() == 2).all()
    return aot.status().operators["aot_child::add"].fast
assert [call(), call()] == [0, 1], str(aot.status())
child = os.fork()
if child == 0:
    os._exit(0 if call() == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
assert call() == 2
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


# -- compiling -----


def test_the_compiler_has_nothing_to_say(fast_library: Any) -> None:
    """With -Wall -Wextra; on users' machines a compiler may warn of what it likes."""
    assert {"-Wall", "-Wextra"} <= set(fast_path.build().command)
    assert fast_path.build().said.read_text() == ""


def test_a_library_that_came_along_needs_no_compiler(fast_library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fast_path.build().file

    def no_compiler() -> str:
        raise ToolchainError("no C++ compiler.")

    monkeypatch.setattr(fast_path, "host_compiler", no_compiler)
    assert fast_path._made_elsewhere().file.name.rpartition("-")[0] == made.name.rpartition("-")[0]
    with override(toolkit_dir=made.parent / "none"), pytest.raises(ToolchainError, match="no C\\+\\+ compiler"):
        fast_path._made_elsewhere()


def a_build(folder: Path, script: str) -> Build:
    """A stand-in for the compiler, which notes that it ran: $2 is the file to write."""
    return Build(("sh", "-c", f"echo >> {folder}/ran; {script}", "sh"), folder / "made" / "library.so")


def runs(folder: Path) -> int:
    return len((folder / "ran").read_text().splitlines())


def test_many_processes_compile_once(tmp_path: Path) -> None:
    made = a_build(tmp_path, 'sleep 1; echo library > "$2"')
    children = [made.in_background() for _ in range(3)]
    made.run(wait=True)
    assert made.file.read_text() == "library\n"
    assert [child.wait() for child in children] == [0, 0, 0]
    assert runs(tmp_path) == 1
    assert sorted(p.suffix for p in made.file.parent.iterdir()) == [".lock", ".log", ".so"]  # nothing left behind


def test_who_dies_while_compiling_holds_up_nobody(tmp_path: Path) -> None:
    made = a_build(tmp_path, f'test -e {tmp_path}/again || sleep 60; echo library > "$2"')
    child = made.in_background()
    while not (tmp_path / "ran").exists():
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    (tmp_path / "again").touch()
    made.run(wait=True)
    assert (made.file.exists(), runs(tmp_path)) == (True, 2)


def test_a_failure_is_told_once_and_tried_again_after_a_day(tmp_path: Path) -> None:
    made = a_build(tmp_path, "echo no such header >&2; exit 3")
    for wait in (True, False):
        with pytest.raises(ToolchainError, match=r"exit code 3\.\nno such header"):
            made.run(wait)
    assert runs(tmp_path) == 1
    os.utime(made.said, (0, 0))
    with pytest.raises(ToolchainError):
        made.run(wait=True)
    assert runs(tmp_path) == 2


def test_a_folder_that_can_t_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made").touch()
    monkeypatch.setattr(fast_path, "_state", fast_path._State())
    monkeypatch.setattr(fast_path, "build", lambda: a_build(tmp_path, "true"))
    assert fast_path.library() is None
    child = fast_path._state.child
    assert child is not None
    assert child.wait() == 1
    assert fast_path.library() is None
    assert f"can't be compiled into {tmp_path}/made" in fast_path.remark()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo it is broken >&2; exit 1", "it is broken"),
        ('echo no library > "$2"', "library.so: "),
        (None, "no C\\+\\+ compiler"),
    ],
)
def test_a_library_that_can_t_be_had_is_a_remark(
    script: str | None,
    reason: str,
    layer: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Python serves, at once and while the compiler is at it; the reason is logged once, and part of the status."""

    def build() -> Build:
        if script is None:
            raise ToolchainError("no C++ compiler: neither g++ nor clang++ is on PATH.")
        return a_build(tmp_path, f"sleep 0.5; {script}")

    monkeypatch.setattr(fast_path, "_state", fast_path._State())
    monkeypatch.setattr(fast_path, "build", build)
    monkeypatch.setattr(fast_path, "_name", lambda source: "none such")
    with caplog.at_level(logging.WARNING, "ascendopt_tune"):
        for interception in operator(monkeypatch):
            check(tensors())
            assert fast_path.library(wait=True) is None
            for _ in range(3):
                assert fast_path.library() is None
            check(tensors())
            assert launcher_of(interception).calls == 1
            assert re.search(f"hits are served in Python \\(.*{reason}", str(status()), re.DOTALL)
    assert sum("hits are served in Python" in record.message for record in caplog.records) == 1
