"""How torch_npu comes to run on the virtual NPU: import orders, children, and the cases that are left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch_npu")

INSTALL = "from ascendopt_tune.torch_ops.device.activate import watch_imports, is_virtual, activate; watch_imports()\n"
CHECK = "assert is_virtual() and torch.equal(torch.arange(3).npu().cpu(), torch.arange(3))\nprint('works')\n"


def run(code: str, expect: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a new interpreter that knows nothing of this process's torch_npu."""
    env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "TASK_QUEUE_ENABLE")} | environment
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False, timeout=240
    )
    assert done.returncode == expect, done.stderr
    return done


def test_before_torch() -> None:
    done = run(INSTALL + "import os, torch\n" + CHECK + "assert os.environ['TASK_QUEUE_ENABLE'] == '0'\n")
    assert done.stdout == "works\n", "stdout belongs to the program"


def test_after_torch_without_torch_npu() -> None:
    run("import torch\n" + INSTALL + CHECK, TORCH_DEVICE_BACKEND_AUTOLOAD="0")


def test_torch_npu_imported_by_hand() -> None:
    run(
        INSTALL + "import torch\nassert not is_virtual()\nimport torch_npu\n" + CHECK, TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    )


def test_activate() -> None:
    run(INSTALL + "assert activate() is True\nimport torch\n" + CHECK)


def test_install_is_cheap() -> None:
    run("import sys\n" + INSTALL + "assert 'torch' not in sys.modules\nassert not is_virtual()")


def test_child_that_imports_torch_first(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "import torch\ndef work(n):\n    return torch.arange(n).npu().cpu().sum().item()\n"
    )
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "if __name__ == '__main__':\n"
        f"    {INSTALL.strip()}\n"
        "    import torch, child\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        assert pool.apply(child.work, (4,)) == 6\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    env["PYTHONPATH"] = os.pathsep.join(p for p in (os.getcwd(), env.get("PYTHONPATH", "")) if p)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=env, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr


def test_expandable_segments() -> None:
    """torch_npu maps physical pieces into a reserved range; a tensor spans several of them."""
    code = (
        "import torch\nx = torch.arange(20 << 20)\ny = x.npu()\nassert torch.equal(y.cpu(), x)\n"
        "assert torch.npu.memory_snapshot()[0]['is_expandable']\n"
        "del y\ntorch.npu.empty_cache()\nassert torch.npu.memory_reserved() == 0\n"
        "free, total = torch.npu.mem_get_info()\nassert free == total\nassert torch.equal(x.npu().cpu(), x)\n"
    )
    run(INSTALL + code, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")


def fake_cann(folder: Path) -> Path:
    (folder / "lib64").mkdir(parents=True)
    (folder / "lib64" / "libascendcl.so").write_bytes(b"")
    return folder


def test_real_cann_is_not_shadowed(tmp_path: Path) -> None:
    cann = fake_cann(tmp_path / "cann")
    code = "from ascendopt_tune.torch_ops.device import activate\nprint(activate.prepare(), activate.is_virtual())"
    assert run(code, ASCEND_HOME_PATH=str(cann)).stdout == "None False\n"
    assert run(code, ASCEND_HOME_PATH=str(cann), ASCENDOPT_TARGET="npu").stdout == "None False\n"
    code = f"{INSTALL}try:\n    import torch\nexcept Exception as error:\n    print(error)"
    assert "asks for a real NPU, and no CANN toolkit was found" in run(code, ASCENDOPT_TARGET="npu").stdout
    code = "from ascendopt_tune.torch_ops.device import activate\nprint(activate.prepare().kind, activate.is_virtual())"
    assert run(code, ASCEND_HOME_PATH=str(cann), ASCENDOPT_TARGET="virtual").stdout == "virtual True\n"


def test_cuda_build_is_refused(tmp_path: Path) -> None:
    for package in ("torch", "torch_npu"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise SystemExit('must not be imported')\n")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n")
    path = os.pathsep.join([str(tmp_path), os.getcwd(), os.environ.get("PYTHONPATH", "")])
    done = run(INSTALL + "import torch\n", expect=1, PYTHONPATH=path)
    assert "ToolchainError" in done.stderr
    assert "CUDA 13.0 build" in done.stderr
    assert "CPU build" in done.stderr
