"""Hostile candidates end as an outcome; the tuner, its files and the machine stay as they were."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.case import Case, TensorSpec
from ascendopt_tune.evaluate.evaluator import Evaluator, Limits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.outcome import CompileFailed, Crashed, LaunchFailed, Outcome, Timed, TimedOut
from ascendopt_tune.project import load_project

DATA = Path(__file__).parent / "data_evaluate"
KERNEL, HOST = "op_kernel/twice.cpp", "op_host/twice.cpp"
SPEC = TensorSpec("float32", (8, 100))


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with Evaluator(
        toolkit.virtual(), limits=Limits(run_s=3, memory_bytes=2 << 30), build_dir=tmp_path_factory.mktemp("build")
    ) as evaluator:
        gate = Gate(load_project(DATA / "twice", ["--cce-auto-sync=off"]), Case((SPEC,), (SPEC,)), evaluator)
        gate.trials()
        yield gate


def attack(gate: Gate, code: str, declarations: str = "") -> Outcome:
    """The outcome of the kernel with ``code`` run by core 0 before its work."""
    text = gate.operator.baseline.kernel[KERNEL]
    text = text.replace("using namespace AscendC;", "using namespace AscendC;\n" + declarations)
    text = text.replace("  TPipe pipe;\n", "  if (GetBlockIdx() == 0) { " + code + " }\n  TPipe pipe;\n")
    return gate.evaluate(gate.operator.baseline.with_kernel(KERNEL, text)).outcome


def attack_host(gate: Gate, code: str) -> Outcome:
    line = "  TwiceTilingData tiling;\n"
    text = gate.operator.baseline.tiling[HOST].replace(line, f"{code}\n{line}")
    return gate.evaluate(gate.operator.baseline.with_tiling(HOST, text)).outcome


def processes_below(folder: Path) -> list[str]:
    """Command lines of the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(process / "cwd")).is_relative_to(folder):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            pass  # it has just ended
    return found


def still_works(gate: Gate) -> None:
    assert isinstance(gate.evaluate(gate.operator.baseline).outcome, Timed)


def test_exit_0(gate: Gate) -> None:
    outcome = attack(gate, "exit(0);", 'extern "C" void exit(int);')
    assert isinstance(outcome, Crashed)
    assert "exit(0)" in outcome.reason
    outcome = attack_host(gate, "std::_Exit(0);")
    assert isinstance(outcome, Crashed)
    assert "the tiling function ended its process itself with exit(0)" in outcome.reason


def test_segmentation_fault(gate: Gate) -> None:
    outcome = attack(gate, "*(volatile int*)8 = 1;")
    assert isinstance(outcome, Crashed)
    assert "signal 11" in outcome.reason
    assert isinstance(attack_host(gate, "  *(volatile int*)8 = 1;"), Crashed)


def test_abort_tells_what_was_printed(gate: Gate) -> None:
    outcome = attack_host(gate, '  std::fprintf(stderr, "so long\\n"); std::abort();')
    assert isinstance(outcome, Crashed)
    assert "signal 6" in outcome.reason


def test_endless_loop(gate: Gate) -> None:
    started = time.monotonic()
    outcome = attack(gate, "for (volatile int i = 0;; i = i + 1) {}")
    assert isinstance(outcome, TimedOut), outcome
    assert time.monotonic() - started < 30
    assert isinstance(attack_host(gate, "  for (volatile int i = 0;; i = i + 1) {}"), TimedOut)


def test_sleep_counts_as_wall_clock(gate: Gate) -> None:
    outcome = attack(gate, "sleep(1000);", 'extern "C" unsigned sleep(unsigned);')
    assert isinstance(outcome, TimedOut)


def test_fork_bomb(gate: Gate) -> None:
    code = "for (int i = 0; i < 50; i++) { if (fork() == 0) for (;;) sleep(1); }"
    outcome = attack(gate, code, 'extern "C" int fork(); extern "C" unsigned sleep(unsigned);')
    assert isinstance(outcome, Timed | Crashed | TimedOut)
    # The server, and those it has forked to serve requests: at most one for each evaluation at a time.
    assert len(processes_below(gate._evaluator.folder)) <= 1 + gate._evaluator.workers
    still_works(gate)


def test_huge_allocation(gate: Gate) -> None:
    code = "char* p = (char*)malloc(1ull << 34); if (!p) __builtin_trap(); memset(p, 1, 1ull << 34);"
    outcome = attack(gate, code)
    assert isinstance(outcome, Crashed), outcome
    grow = "  for (;;) { volatile char* p = new char[1 << 24]; for (int i = 0; i < 1 << 24; i += 4096) p[i] = 1; }"
    assert isinstance(attack_host(gate, grow), Crashed | TimedOut)


def test_endless_output(gate: Gate) -> None:
    outcome = attack(gate, 'for (;;) puts("again and again and again and again");', 'extern "C" int puts(const char*);')
    assert isinstance(outcome, Crashed | TimedOut), outcome
    assert len(outcome.reason) < 5000


def test_endless_recursion(gate: Gate) -> None:
    outcome = attack(gate, "deep(1);", "static int deep(volatile int n) { volatile char c[4096]; c[0] = 1; "
                     "return deep(n + 1) + c[0]; }")  # fmt: skip
    assert isinstance(outcome, Crashed)


def test_files_outside_can_neither_be_written_nor_read(gate: Gate, tmp_path: Path) -> None:
    secret, target = tmp_path / "secret", tmp_path / "target"
    secret.write_text("key")
    declarations = 'extern "C" int open(const char*, int, ...); extern "C" int unlink(const char*);'
    code = (
        f'if (open("{target}", 0101, 0644) >= 0) __builtin_trap();'
        f'if (open("{secret}", 0) >= 0) __builtin_trap();'
        f'if (open("/proc/{os.getpid()}/environ", 0) >= 0) __builtin_trap();'
        f'if (unlink("{secret}") == 0) __builtin_trap();'
    )
    assert isinstance(attack(gate, code, declarations), Timed)
    assert secret.read_text() == "key"
    assert not target.exists()


def test_environment_is_scrubbed(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    # The server was started before; what counts is that nothing but a few names is handed on.
    code = 'if (getenv("OPENAI_API_KEY") || getenv("PYTHONPATH") || getenv("ASCENDOPT_CACHE_DIR")) __builtin_trap();'
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with Evaluator(gate._evaluator.toolkit, build_dir=gate._evaluator.build_dir) as evaluator:
        fresh = Gate(gate.operator, gate.case, evaluator)
        assert isinstance(attack(fresh, code), Timed)


def test_sockets_signals_and_programs_are_refused(gate: Gate) -> None:
    declarations = (
        'extern "C" int socket(int, int, int); extern "C" int kill(int, int); extern "C" int system(const char*);'
    )
    code = (
        "if (socket(2, 1, 0) >= 0) __builtin_trap();"
        f"if (kill({os.getpid()}, 0) == 0) __builtin_trap();"
        'if (system("true") == 0) __builtin_trap();'
    )
    assert isinstance(attack(gate, code, declarations), Timed)


def test_an_answer_written_by_the_candidate_is_not_believed(gate: Gate) -> None:
    declarations = 'extern "C" long write(int, const void*, unsigned long); extern "C" void _exit(int);'
    fake = '{\\"value\\":{\\"trials\\":[],\\"measured\\":null}}'
    code = f'for (int fd = 3; fd < 64; fd++) write(fd, "{fake}", {len(fake.replace(chr(92), ""))}); _exit(0);'
    assert isinstance(attack(gate, code, declarations), Crashed)


def test_compiler_that_never_ends(tmp_path: Path) -> None:
    with Evaluator(toolkit.virtual(), limits=Limits(compile_s=4, run_s=3), build_dir=tmp_path) as evaluator:
        operator = load_project(DATA / "twice", ["--cce-auto-sync=off"])
        host = operator.baseline.tiling[HOST]
        endless = (
            "template <int n> struct Tree { enum { v = Tree<n - 1>::v + Tree<n - 2>::v * n }; };\n"
            "template <int a, int b> struct Grid { enum { v = Grid<a - 1, b>::v + Grid<a, b - 1>::v }; };\n"
            "template <int b> struct Grid<0, b> { enum { v = 1 }; };\n"
            "template <int a> struct Grid<a, 0> { enum { v = 1 }; };\n"
            "static const int big = Grid<850, 850>::v;\n"
        )
        gate = Gate(operator, Case((SPEC,), (SPEC,)), evaluator)
        gate._trials = gate._with_inputs()
        started = time.monotonic()
        outcome = gate.evaluate(operator.baseline.with_tiling(HOST, endless + host)).outcome
        assert isinstance(outcome, TimedOut | CompileFailed | Crashed), outcome
        assert time.monotonic() - started < 20


@pytest.mark.parametrize("path", ["/tmp/stolen.h", "op_kernel/../../stolen.h"])
def test_source_paths_that_lead_out_are_refused(gate: Gate, path: str) -> None:
    base = gate.operator.baseline
    for pair in (base.with_kernel(path, ""), base.with_tiling(path, "")):
        outcome = gate.evaluate(pair).outcome
        assert isinstance(outcome, CompileFailed)
        assert "leads out" in outcome.reason


def test_the_server_may_be_killed(gate: Gate) -> None:
    still_works(gate)
    connection = gate._evaluator._connection
    assert connection is not None
    connection.process.kill()
    connection.process.wait()
    still_works(gate)


def test_no_process_and_no_file_is_left(tmp_path: Path, gate: Gate) -> None:
    with Evaluator(gate._evaluator.toolkit, limits=Limits(run_s=3), build_dir=gate._evaluator.build_dir) as evaluator:
        inner = Gate(gate.operator, gate.case, evaluator)
        still_works(inner)
        folder, connection = evaluator.folder, evaluator._connection
        assert connection is not None
        assert not connection.hello["torch"]
    assert connection.process.poll() is not None
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_tuner_that_is_interrupted(gate: Gate, tmp_path: Path, number: int) -> None:
    text = gate.operator.baseline.kernel[KERNEL]
    kernel = tmp_path / "twice" / KERNEL
    shutil.copytree(DATA / "twice", tmp_path / "twice")
    kernel.write_text(text.replace("  TPipe pipe;\n", "  for (volatile int i = 0;; i = i + 1) {}\n  TPipe pipe;\n"))
    kit = gate._evaluator.toolkit
    script = f"""
import sys
from pathlib import Path
from ascendopt_tune.build.toolkit import Toolkit
from ascendopt_tune.case import Case, TensorSpec
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.project import load_project
spec = TensorSpec("float32", (8, 100))
toolkit = Toolkit({kit.kind!r}, Path({str(kit.prefix)!r}), {kit.version!r})
with Evaluator(toolkit, build_dir=Path({str(tmp_path / "build")!r})) as evaluator:
    print(evaluator.folder, flush=True)
    Gate(load_project(Path({str(tmp_path / "twice")!r})), Case((spec,), (spec,)), evaluator).trials()
"""
    command = [sys.executable, "-c", script]
    tuner = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # A shell starts background jobs with SIGINT ignored, and a Python that finds it ignored leaves it so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert tuner.stdout is not None
    folder = Path(tuner.stdout.readline().strip())
    deadline = time.monotonic() + 60
    while len(processes_below(folder)) < 2 or not list(folder.glob("server-*/job-*/launches")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    tuner.send_signal(number)
    tuner.wait(60)
    tuner.stdout.close()
    while processes_below(folder) or folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_tiling_that_refuses_is_no_crash(gate: Gate) -> None:
    outcome = attack_host(gate, "  return ge::GRAPH_FAILED;")
    assert isinstance(outcome, LaunchFailed)
