"""Hostile candidates end as an outcome; the tuner, its files and the machine stay as they were."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import UnionType

import pytest
from hostile import DATA, HEADERS, HOST, KERNEL, SPEC, attack, attack_host

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.protocol import ArrayFile
from ascendopt_tune.evaluate.trials import Trials
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.outcome import (
    CompileFailed,
    Crashed,
    Hazard,
    LaunchFailed,
    Outcome,
    OutOfBounds,
    Timed,
    TimedOut,
)
from ascendopt_tune.sources.project import load_project


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


#: Statements in a kernel, declarations they need, kind of outcome, a word of its reason.
KERNEL_ATTACKS: dict[str, tuple[str, str, type[Outcome], str]] = {
    **{
        name: (f"{name}{arguments};", f'extern "C" {result} {name}({types});', CompileFailed, f"the function {name}")
        for name, result, types, arguments in (
            ("exit", "void", "int", "(0)"), ("_exit", "void", "int", "(0)"), ("abort", "void", "", "()"),
            ("fork", "int", "", "()"), ("sleep", "unsigned", "unsigned", "(1000)"),
            ("puts", "int", "const char*", '("x")'),
            ("open", "int", "const char*, int, ...", '("/etc/passwd", 0)'), ("unlink", "int", "const char*", '("x")'),
            ("getenv", "char*", "const char*", '("OPENAI_API_KEY")'), ("socket", "int", "int, int, int", "(2, 1, 0)"),
            ("kill", "int", "int, int", "(1, 9)"), ("system", "int", "const char*", '("true")'),
            ("ptrace", "long", "int, ...", "(0)"), ("syscall", "long", "long, ...", "(39)"),
            ("write", "long", "int, const void*, unsigned long", '(3, "x", 1)'),
            ("dlsym", "void*", "void*, const char*", '(nullptr, "x")'),
            ("mprotect", "int", "void*, unsigned long, int", "(nullptr, 1, 7)"),
            ("clock_gettime", "int", "int, struct timespec*", "(0, nullptr)"),
            ("vnpu_replay_release", "void", "int", "(1)"),
        )
    },
    "python": ('if (PyRun_SimpleString) PyRun_SimpleString("1");',
               'extern "C" __attribute__((weak)) int PyRun_SimpleString(const char*);', CompileFailed,
               "PyRun_SimpleString"),
    "allocation": ("volatile char* p = new char[1ull << 34]; p[0] = 1;", "", CompileFailed, "the function _Znam"),
    "renamed": ("secretly();", 'extern "C" int secretly() __asm__("fork");', CompileFailed, "poisoned"),
    "machine code": ('asm volatile("syscall");', "", CompileFailed, "poisoned"),
    "pasted": ('PASTE(as, m)("syscall");', "#define PASTE(a, b) a##b", CompileFailed, "poisoned"),
    "unchecked": (
        "plain();",
        "__attribute__((no_sanitize(\"kernel-address\"))) static void plain() {}",
        CompileFailed,
        "poisoned",
    ),
    "inner function": ("vnpu::scalar_cost(-1e9);", "", CompileFailed, "poisoned"),
    "static initializer": (
        "",
        "static volatile int n = 1; int k = n + 1;",
        CompileFailed,
        "does not compile",
    ),
    "constructor": (
        "",
        "static volatile int n; __attribute__((constructor)) static void early() { n = 1; }",
        CompileFailed,
        "when the kernel is loaded",
    ),
    "low address": ("*(volatile int*)8 = 1;", "", OutOfBounds, "through a pointer"),
    "library code": (
        "*(volatile char*)(void*)static_cast<double (*)(double)>(&sqrt) = 0;",
        '#include <cmath>',
        OutOfBounds,
        "writes 1 bytes through a pointer",
    ),
    "emulator's stack": (
        "volatile long* up = (volatile long*)__builtin_frame_address(0); up[1 << 21] = 1;",
        "",
        OutOfBounds,
        "through a pointer",
    ),
    "read the host": (
        "volatile long x = *(volatile long*)(void*)static_cast<double (*)(double)>(&sqrt); (void)x;",
        '#include <cmath>',
        OutOfBounds,
        "reads 8 bytes through a pointer",
    ),
    "copy to the host": (
        "void* (*volatile copy)(void*, const void*, size_t) = memcpy; long word = 0; copy((void*)(1 << 22), &word, 8);",
        '#include <cstring>',
        CompileFailed,
        "a call through a pointer",
    ),
    "endless loop": ("for (volatile int i = 0;; i = i + 1) {}", "", TimedOut, "did not end"),
    "endless recursion": (
        "deep(1);",
        "static int deep(volatile int n) { volatile char c[4096]; c[0] = 1; return deep(n + 1) + c[0]; }",
        Crashed,
        "signal 11",
    ),
    "read a file": ("", '#include "/etc/passwd"', CompileFailed, "/etc/passwd: Permission denied"),
    "read a device": ("", '#include "/dev/zero"', CompileFailed, "does not compile"),
    "read the environment": ("", '#include "/proc/self/environ"', CompileFailed, "environ"),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNEL_ATTACKS)
def test_kernels(gate: Gate, name: str) -> None:
    code, declarations, kind, word = KERNEL_ATTACKS[name]
    outcome = attack(gate, code, declarations)
    assert type(outcome) is kind, outcome
    assert word in outcome.reason


PATIENCE_S = 300.0  # it ends, and a machine may be busy
_TRAP = "__builtin_trap();"  # SIGILL: the attack has worked
#: Statements in a tiling program: kind of outcome (Timed: nothing came of it), a word of its reason.
TILING_ATTACKS: dict[str, tuple[str, type[Outcome] | UnionType, str]] = {
    "exit": ("std::_Exit(0);", Crashed, "the tiling function ended its process itself with exit(0)"),
    "abort": ('std::fprintf(stderr, "so long\\n"); std::abort();', Crashed, "signal 6"),
    "segmentation fault": ("*(volatile int*)8 = 1;", Crashed, "signal 11"),
    "values that are on the device": (
        "volatile int x = *context->GetInputTensor(0)->GetData<int>(); (void)x;", Crashed, "mark it ValueDepend",
    ),
    "endless loop": ("for (volatile int i = 0;; i = i + 1) {}", TimedOut, "did not end"),
    "sleep": ("sleep(1000);", TimedOut, "did not end"),
    "fork bomb": (f"for (int i = 0; i < 50; i++) if (fork() >= 0) {_TRAP}", Timed, ""),
    "threads": (
        f"pthread_t t; if (pthread_create(&t, nullptr, [](void* p) {{ return p; }}, nullptr) == 0) {_TRAP}",
        Timed,
        "",
    ),
    "memory": (
        "for (;;) { volatile char* p = new char[1 << 24]; for (int i = 0; i < 1 << 24; i += 4096) p[i] = 1; }",
        Crashed | TimedOut | LaunchFailed,  # the limit's std::bad_alloc may be caught and told
        "",
    ),
    "memory in files": (f"if (memfd_create(\"x\", 0) >= 0 || shmget(0, 1 << 20, 01600) >= 0) {_TRAP}", Timed, ""),
    "output": ('for (;;) std::fputs("again and again and again\\n", stderr);', Crashed | TimedOut, "again and again"),
    "disk": (
        'for (int i = 0; i < 9; i++) { char n[] = "fill0"; n[4] += i; '
        f"if (open(n, O_CREAT | O_WRONLY, 0600) >= 0) {_TRAP} }}",
        Timed,
        "",
    ),
    "sockets": (
        f"int s[2]; if (socket(2, 1, 0) >= 0 || socket(1, 1, 0) >= 0 || socketpair(1, 1, 0, s) == 0) {_TRAP}",
        Timed,
        "",
    ),
    "programs": (f'if (system("true") == 0 || execl("/bin/true", "true", nullptr) == 0) {_TRAP}', Timed, ""),
    "signals": (f"if (kill(getppid(), 0) == 0 || kill(@PID@, 0) == 0) {_TRAP}", Timed, ""),
    "ptrace": (f"if (ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0) {_TRAP}", Timed, ""),
    "environment": (
        f'for (const char* n : {{"OPENAI_API_KEY", "PYTHONPATH", "ASCENDOPT_CACHE_DIR"}}) if (getenv(n)) {_TRAP}',
        Timed,
        "",
    ),
    "reads": ('for (const char* n : {"/etc/passwd", "/proc/@PID@/environ", "@SECRET@"}) '
              f"if (open(n, O_RDONLY) >= 0) {_TRAP}", Timed, ""),
    "writes": (
        'for (const char* n : {"@TARGET@", "@CACHE@/x", "@SECRET@"}) '
        f"if (open(n, O_CREAT | O_WRONLY, 0600) >= 0) {_TRAP}",
        Timed,
        "",
    ),
    "removes": (
        f'if (unlink("@SECRET@") == 0 || rename("@SECRET@", "@TARGET@") == 0 || chmod("@SECRET@", 0) == 0) {_TRAP}',
        Timed,
        "",
    ),
    "false answer": (
        'for (int fd = 3; fd < 64; fd++) { long n = write(fd, "{\\"value\\":null}", 14); (void)n; } _exit(0);',
        Crashed,
        "exit(0)",
    ),
    "limits of others": (
        "rlimit one{1, 1}; for (int pid : {@PID@, @VICTIM@, 1}) "
        f"if (pid != getpid() && prlimit(pid, RLIMIT_NOFILE, &one, nullptr) == 0) {_TRAP}", Timed, ""),
    "turns of others": (
        "cpu_set_t set; CPU_ZERO(&set); CPU_SET(0, &set); sched_param p{}; "
        "if (sched_setaffinity(@VICTIM@, sizeof(set), &set) == 0 || sched_setscheduler(@VICTIM@, SCHED_IDLE, &p) == 0 "
        "|| setpriority(PRIO_PROCESS, @VICTIM@, 19) == 0 || setpriority(PRIO_USER, 0, 19) == 0 "
        f"|| syscall(SYS_ioprio_set, 1, @VICTIM@, 3 << 13) == 0) {_TRAP}", Timed, ""),
    "memory of others": (
        "char c; iovec a{&c, 1}, b{&c, 1}; if (process_vm_readv(@VICTIM@, &a, 1, &b, 1, 0) >= 0 "
        "|| process_vm_writev(@VICTIM@, &a, 1, &b, 1, 0) >= 0 || syscall(SYS_pidfd_open, @VICTIM@, 0) >= 0 "
        "|| syscall(SYS_kcmp, getpid(), @VICTIM@, 0, 0, 0) >= 0 "
        "|| syscall(SYS_move_pages, @VICTIM@, 0, 0, 0, 0, 0) >= 0 "
        f"|| ptrace(PTRACE_SEIZE, @VICTIM@, 0, 0) == 0) {_TRAP}", Timed, ""),
    "the sight of others": (
        "int seen = 0; for (int pid = 1; pid < 1 << 16; pid++) if (kill(pid, 0) == 0) seen++; "
        f"if (seen != 0 || kill(-1, 9) == 0 || killpg(0, 9) == 0) {_TRAP}", Timed, ""),
    "interfaces of the kernel": (
        "char buffer[256] = {}; for (long call : {SYS_io_uring_setup, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, "
        "SYS_keyctl, SYS_add_key, SYS_request_key, SYS_io_setup, SYS_shmget, SYS_msgget, SYS_semget, SYS_mq_open, "
        "SYS_init_module, SYS_kexec_load, SYS_swapon, SYS_acct, SYS_fanotify_init, SYS_name_to_handle_at}) "
        f"if (syscall(call, 1, buffer, 0, 0, 0) >= 0 || errno != EPERM) {_TRAP}", Timed, ""),
    "namespaces and mounts": (
        "for (long call : {SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_chroot, SYS_pivot_root, SYS_open_tree, "
        "SYS_fsopen, SYS_sethostname, SYS_settimeofday, SYS_personality, SYS_reboot}) "
        f"if (syscall(call, 0, 0, 0, 0, 0) >= 0 || errno != EPERM) {_TRAP}", Timed, ""),
    "a life of its own": (
        f"if (setsid() >= 0 || setpgid(0, 0) == 0 || prctl(PR_SET_PDEATHSIG, 0) == 0) {_TRAP} "
        "for (int n = 1; n < 65; n++) signal(n, SIG_IGN); for (volatile int i = 0;; i = i + 1) {}",
        TimedOut, "did not end"),
    "a pipe in place of a file": (
        f'if (mkfifo("log", 0600) == 0 || mkfifo("@TARGET@", 0600) == 0 || symlink("/dev/zero", "x") == 0) {_TRAP}',
        Timed, ""),
    "locks of others": (
        'int fd = open("/proc/self/exe", O_RDONLY); fd = fd >= 0 ? fd : open("/usr/bin/env", O_RDONLY); '
        f"if (flock(fd, LOCK_EX | LOCK_NB) == 0) {_TRAP}", Timed, ""),
    "refusal": ("return ge::GRAPH_FAILED;", LaunchFailed, "refused"),
}  # fmt: skip


@pytest.mark.parametrize("name", TILING_ATTACKS)
def test_tiling_programs(gate: Gate, name: str, tmp_path: Path) -> None:
    code, kind, word = TILING_ATTACKS[name]
    secret, target, cache = tmp_path / "secret", tmp_path / "target", gate._evaluator.build_dir
    secret.write_text("key")
    before = sorted(p.name for p in cache.iterdir())
    victim = subprocess.Popen(["sleep", "600"])
    mine = [resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in (os.getpid(), victim.pid)]
    places = {"@SECRET@": secret, "@TARGET@": target, "@CACHE@": cache, "@PID@": os.getpid(), "@VICTIM@": victim.pid}
    for mark, place in places.items():
        code = code.replace(mark, str(place))
    started = time.monotonic()
    outcome = attack_host(gate, code)
    assert victim.poll() is None
    assert [resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in (os.getpid(), victim.pid)] == mine
    victim.kill()
    victim.wait()
    assert isinstance(outcome, kind), outcome
    assert isinstance(outcome, Timed) or word in outcome.reason
    assert isinstance(outcome, Timed) or len(outcome.reason) < 5000
    assert time.monotonic() - started < PATIENCE_S
    assert secret.read_text() == "key"
    assert [p.name for p in tmp_path.iterdir()] == ["secret"]
    assert sorted(p.name for p in cache.iterdir()) == before
    # The server, and those it has forked to serve requests: at most one for each evaluation at a time.
    assert len(processes_below(gate._evaluator.folder)) <= 1 + gate._evaluator.workers


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("struct Early { Early() { _exit(0); } } early;", Crashed),
        ("struct Early { Early() { for (volatile int i = 0;; i = i + 1) {} } } early;", TimedOut),
        ("struct Early { Early() { if (fork() >= 0 || socket(2, 1, 0) >= 0) __builtin_trap(); } } early;", Timed),
    ],
    ids=["exit", "endless loop", "fork and socket"],
)
def test_static_initializers_of_tiling_programs(gate: Gate, code: str, kind: type[Outcome]) -> None:
    text = HEADERS + gate.operator.baseline.tiling[HOST].replace(
        "namespace optiling {", f"{code}\nnamespace optiling {{"
    )
    outcome = gate.evaluate(gate.operator.baseline.with_tiling(HOST, text)).outcome
    assert type(outcome) is kind, outcome


@pytest.mark.parametrize("part", ["kernel", "tiling"])
@pytest.mark.parametrize("line", ['#include "@SECRET@"', 'asm(".incbin \\"@SECRET@\\"");'], ids=["include", "incbin"])
def test_compilers_read_no_file_of_the_user(gate: Gate, tmp_path: Path, part: str, line: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the_users_own_key")
    line = line.replace("@SECRET@", str(secret)) + "\n"
    base = gate.operator.baseline
    pair = (
        base.with_kernel(
            KERNEL, base.kernel[KERNEL].replace("using namespace AscendC;", f"using namespace AscendC;\n{line}")
        )
        if part == "kernel"
        else base.with_tiling(HOST, line + base.tiling[HOST])
    )
    outcome = gate.evaluate(pair).outcome
    assert isinstance(outcome, CompileFailed), outcome
    assert "the_users_own_key" not in outcome.reason + outcome.log


@pytest.mark.parametrize("mib", [9, 50, 200])
@pytest.mark.parametrize("part", ["kernel", "tiling"])
def test_sources_without_end(gate: Gate, part: str, mib: int) -> None:
    base, line = gate.operator.baseline, "static const int n = 1;\n"
    text = line + " " * (mib << 20)
    started = time.monotonic()
    outcome = gate.evaluate(
        base.with_kernel(KERNEL, text) if part == "kernel" else base.with_tiling(HOST, text)
    ).outcome
    assert isinstance(outcome, CompileFailed)
    assert f"{mib} MiB; at most" in outcome.reason
    assert time.monotonic() - started < PATIENCE_S


@pytest.mark.parametrize("part", ["kernel", "tiling"])
@pytest.mark.parametrize("deep", ["(", "T<"])
def test_sources_nested_without_end(gate: Gate, part: str, deep: str) -> None:
    base = gate.operator.baseline
    text = "static int n = " * ("{" not in deep and "if" not in deep) + deep * 2_000
    started = time.monotonic()
    pair = (
        base.with_kernel(KERNEL, base.kernel[KERNEL] + text)
        if part == "kernel"
        else base.with_tiling(HOST, base.tiling[HOST] + text)
    )
    outcome = gate.evaluate(pair).outcome
    assert isinstance(outcome, CompileFailed), outcome
    assert len(outcome.reason) < 20_000
    assert time.monotonic() - started < PATIENCE_S


def test_expected_outputs_are_out_of_reach(gate: Gate) -> None:
    expected = gate.trials()[0].expected
    assert expected is not None
    assert isinstance(expected[0], ArrayFile)
    path = expected[0].path
    code = f'if (open("{path}", O_RDONLY) >= 0) __builtin_trap();'
    assert isinstance(attack_host(gate, code), Timed)
    text = gate.operator.baseline.kernel[KERNEL]
    outcome = gate.evaluate(gate.operator.baseline.with_kernel(KERNEL, f'#include "{path}"\n{text}')).outcome
    assert isinstance(outcome, CompileFailed)
    assert "Permission denied" in outcome.reason + outcome.log


def test_work_through_pointers_is_ordered_and_costs_time(gate: Gate) -> None:
    """Loads and stores that no AscendC function makes are the scalar unit's: slower than vectors, and no way round."""
    text = gate.operator.baseline.kernel[KERNEL]
    loop = (
        "  GET_TILING_DATA(all, tiling);\n"
        "  for (uint32_t i = 0; GetBlockIdx() == 0 && i < all.total; i++)\n"  # two cores would store in one cache line
        "    ((__gm__ DTYPE_X*)y)[i] = ((__gm__ DTYPE_X*)x)[i] * 2;\n"
        "  return;\n"
    )
    base = gate.evaluate(gate.operator.baseline)
    raw = gate.evaluate(
        gate.operator.baseline.with_kernel(KERNEL, text.replace("  TPipe pipe;\n", loop + "  TPipe pipe;\n"))
    )
    assert isinstance(raw.outcome, Timed), raw.outcome
    assert base.profile is not None
    assert raw.profile is not None
    assert raw.profile.task_duration_us > base.profile.task_duration_us
    between = "    Add(yLocal, xLocal, xLocal, count);\n"
    touched = between + "    *(DTYPE_X*)yLocal.GetPhyAddr() = 0;\n"
    outcome = gate.evaluate(gate.operator.baseline.with_kernel(KERNEL, text.replace(between, touched))).outcome
    assert isinstance(outcome, Hazard)
    assert "a store through a pointer" in outcome.reason
    # The compiler checks the load only; the store is seen by what it leaves.
    doubled = between + "    *(DTYPE_X*)xLocal.GetPhyAddr() *= 2;\n"
    outcome = gate.evaluate(gate.operator.baseline.with_kernel(KERNEL, text.replace(between, doubled))).outcome
    assert isinstance(outcome, Hazard)
    assert "a store through a pointer" in outcome.reason


def test_the_next_candidate_is_evaluated_as_ever(gate: Gate) -> None:
    still_works(gate)


def test_compiler_that_never_ends(tmp_path: Path) -> None:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(compile_s=10, run_s=3), build_dir=tmp_path) as evaluator:
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
        gate._trials = Trials(gate._maker().inputs())
        started = time.monotonic()
        outcome = gate.evaluate(operator.baseline.with_tiling(HOST, endless + host)).outcome
        assert isinstance(outcome, TimedOut | CompileFailed | Crashed), outcome
        assert time.monotonic() - started < PATIENCE_S


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
    with Evaluator(
        gate._evaluator.toolkit, limits=ProcessLimits(run_s=3), build_dir=gate._evaluator.build_dir
    ) as evaluator:
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
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.protocol import ArrayFile
from ascendopt_tune.sources.project import load_project
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
    deadline = time.monotonic() + PATIENCE_S  # two compilations
    while len(processes_below(folder)) < 2 or not list(folder.glob("server-*/job-*/launches")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    tuner.send_signal(number)
    tuner.wait(PATIENCE_S)
    tuner.stdout.close()
    while processes_below(folder) or folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
