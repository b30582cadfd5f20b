"""What every test gets: a cache folder of its own, one shared toolkit, and a count of what was skipped and why."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import platformdirs
import pytest

import ascendopt_tune  # noqa: F401  before torch, whichever test imports that first

# Building the virtual toolkit takes tens of seconds, so tests share one folder, with each other and with other runs. It
# is named by its contents: a change of the virtual NPU's sources makes another one.
os.environ.setdefault(
    "ASCENDOPT_TOOLKIT_DIR", str(platformdirs.user_cache_path("ascendopt_tune", appauthor=False) / "toolkit")
)
# As the command line has it (ascendopt_tune/__main__.py): more workers than processors would wait for each other.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# AddressSanitizer has to be preloaded (`make sanitize`), but compilers take minutes with it.
if "ASCENDOPT_SANITIZE" in os.environ and "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("LD_PRELOAD", None)
# A busy machine is no defect of what is tested.
hypothesis.settings.register_profile(
    "any machine", deadline=None, print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")
_KEPT = (
    "ASCENDOPT_TOOLKIT_DIR",
    "ASCENDOPT_BUILD_DIR",
    "ASCENDOPT_CXX",
    "ASCENDOPT_SANITIZE",
    "ASCENDOPT_CANN_OPS",
    "ASCENDOPT_OPS_NN",
    "ASCENDOPT_OPS_TRANSFORMER",
    "ASCENDOPT_OPS_MATH",
    "ASCENDOPT_S9_OPERATORS",
    "ASCENDOPT_ASC_DEVKIT",
    "ASCENDOPT_CATLASS",
    "ASCENDOPT_VLLM_ASCEND",
    "ASCENDOPT_MKB",
    "ASCENDOPT_MKB_SOLUTIONS",
    "ASCENDOPT_REFERENCE",
    "ASCENDOPT_MEASUREMENTS",
    "ASCENDOPT_TESTFLOAT",
)


_SLOW = Path(__file__).with_name("slow.txt")
# Folders and files that take minutes: a worker that began one of them last would keep the others waiting.
_LONG = (
    "tests/e2e/",
    "tests/vnpu/test_vllm_ascend.py",
    "tests/torch/",
    "tests/calibrate/",
    "tests/gate/",
    "tests/registry/",
)


@functools.cache
def slow_tests() -> tuple[str, ...]:
    """How the names of tests begin that `make test` leaves out (slow.txt)."""
    lines = (line.partition("  # ")[0].strip() for line in _SLOW.read_text().splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


@pytest.hookimpl(tryfirst=True)  # before those without the wanted markers are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; the order is otherwise the collected one."""
    for item in items:
        if item.nodeid.startswith(slow_tests()):
            item.add_marker("slow")

    def rank(item: pytest.Item) -> int:
        return next((i for i, start in enumerate(_LONG) if item.nodeid.startswith(start)), len(_LONG))

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Tests' own formulas: as evaluate/reference.py, _one_thread_first."""
    if "torch" in sys.modules:
        sys.modules["torch"].ones(1).exp()


@pytest.fixture(scope="session", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all tests of a run keep the operators they compile: what several of them need is compiled once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "programs"
    os.environ["ASCENDOPT_BUILD_DIR"] = str(folder)
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own writable cache folder; a developer's own settings don't reach a test."""
    for name in [n for n in os.environ if n.startswith("ASCENDOPT_") and n not in _KEPT]:
        monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(folder))
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Skipped tests don't pass unnoticed: how many, and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    texts = (r.longrepr[2] if isinstance(r.longrepr, tuple) else str(r.longrepr) for r in skipped)
    reasons = Counter(text.removeprefix("Skipped: ") for text in texts)
    terminalreporter.section(f"{len(skipped)} skipped")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:5d}  {reason}")
