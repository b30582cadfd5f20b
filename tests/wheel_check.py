"""Builds the wheel, installs it in a new environment outside the tree, and does the main job with it.

Without torch, which is not installed there. Also type-checks a user's lines against the installed package. Run by
`make wheel-check`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parent.parent
USER_SCRIPT = """
from ascendopt_tune.nouns.case import TensorSpec
spec: TensorSpec = TensorSpec("float16", (8, 2048))
print(spec.nbytes)
"""


def run(*command: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", str(work), str(ROOT), cwd=work)
        (wheel,) = work.glob("*.whl")
        run(sys.executable, "-m", "venv", "venv", cwd=work)
        python = str(work / "venv/bin/python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        run(*pip, "-c", str(ROOT / "constraints.txt"), str(wheel), "mypy", cwd=work)
        # The toolkit is named by the contents of its sources: shared with the tests unless the wheel lacks one of them.
        toolkit = platformdirs.user_cache_path("ascendopt_tune", appauthor=False) / "toolkit"
        env = {"ASCENDOPT_TOOLKIT_DIR": str(toolkit), **os.environ, "ASCENDOPT_CACHE_DIR": str(work / "cache")}
        tool = str(work / "venv/bin/ascendopt-tune")
        case = ["--input", "x=float16[8,2048]", "--input", "y=float16[8,2048]", "--budget", "3", "--json"]
        record = json.loads(run(tool, "tune", "add", *case, cwd=work, env=env))
        assert record["baseline"]["task_duration_us"] > 0, record
        assert record["reference"] == "baseline", "this environment has no torch"
        assert json.loads(run(tool, "tune", "add", *case, cwd=work, env=env))["cached"], (
            "the second call missed the cache"
        )
        shipped = json.loads(run(tool, "bank", "show", "--json", cwd=work, env=env))
        assert shipped["validated"] >= 150, shipped
        (work / "user.py").write_text(USER_SCRIPT)
        run(python, "-m", "mypy", "--strict", "user.py", cwd=work)
        assert run(python, "user.py", cwd=work) == "32768\n"
        print("wheel-check: installed outside the tree, tuned, answered from the cache, types found")


if __name__ == "__main__":
    main()
