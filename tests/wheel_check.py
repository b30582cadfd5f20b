"""Builds sdist and wheel from a clean tree, installs the wheel outside of it, and does the main job with it.

    python tests/wheel_check.py                          # `make wheel-check`
    python tests/wheel_check.py python3.12 python3.13    # with other interpreters as well
    python tests/wheel_check.py --toolkit                # and a wheel with the toolkit built: the first run's seconds
    python tests/wheel_check.py --toolkit=FOLDER         # the same with one that is built already

Without torch, which is not installed there. The wheel is built from the sdist. Also type-checks a user's lines against
the installed package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parent.parent
USER_SCRIPT = """
from ascendopt_tune.nouns.case import TensorSpec
spec: TensorSpec = TensorSpec("float16", (8, 2048))
print(spec.nbytes)
"""
CASE = ["--input", "x=float16[8,2048]", "--input", "y=float16[8,2048]", "--json"]
FIRST_RUN_S = 45.0  # with a built toolkit, on a busy machine; without it a minute and more


def run(*command: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def clean_tree(work: Path) -> tuple[Path, set[str]]:
    """A copy of what is under version control, and its files."""
    tracked = run("git", "ls-files", cwd=ROOT).splitlines()
    for name in tracked:
        (work / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, work / "tree" / name, follow_symlinks=False)
    return work / "tree", set(tracked)


def built(tree: Path, out: Path) -> Path:
    """The wheel that is built from the sdist that is built from ``tree``."""
    run(sys.executable, "-m", "build", "--outdir", str(out), str(tree), cwd=out.parent)
    (wheel,) = out.glob("*.whl")
    return wheel


def sdist_is_whole(out: Path, tracked: set[str]) -> None:
    """Whoever has the sdist has the project: all but what belongs to the forge and to version control."""
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = {name for name in tracked - names if not name.startswith((".git", ".ci"))}
    assert not missing, sorted(missing)[:20]


def installed(python: str, wheel: Path, folder: Path, *more: str) -> Path:
    """Programs of a new environment with the wheel."""
    run(python, "-m", "venv", str(folder), cwd=folder.parent)
    pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    run(*pip, "-c", str(ROOT / "constraints.txt"), str(wheel), *more, cwd=folder.parent)
    return folder / "bin"


def does_the_main_job(bin: Path, work: Path, env: dict[str, str]) -> None:
    tool = str(bin / "ascendopt-tune")
    record = json.loads(run(tool, "tune", "add", *CASE, "--budget", "3", cwd=work, env=env))
    assert record["baseline"]["task_duration_us"] > 0, record
    assert record["reference"] == "baseline", "this environment has no torch"
    assert json.loads(run(tool, "tune", "add", *CASE, "--budget", "3", cwd=work, env=env))["cached"], (
        "the second call missed the cache"
    )
    shipped = json.loads(run(tool, "bank", "show", "--json", cwd=work, env=env))
    assert shipped["validated"] >= 150, shipped
    (work / "user.py").write_text(USER_SCRIPT)
    assert run(str(bin / "python"), "user.py", cwd=work) == "32768\n"


def toolkit_is_taken(tree: Path, work: Path, made: str) -> None:
    """A wheel with the toolkit: for this platform, and nothing of the toolkit is compiled where it is installed."""
    folder = Path(made) if made else work / "toolkit"
    if not made:
        run(sys.executable, "-m", "ascendopt_tune", "toolkit", "--build", "--out", str(folder), cwd=tree)
    environment = {**os.environ, "ASCENDOPT_TOOLKIT_BUILT": str(folder)}
    out = work / "wheel-with-toolkit"
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(tree), cwd=work, env=environment)
    (wheel,) = out.glob("*.whl")
    assert "-py3-none-linux_" in wheel.name, wheel.name
    assert any("_data/toolkit/lib64/libvnpu.so" in name for name in zipfile.ZipFile(wheel).namelist())
    bin = installed(sys.executable, wheel, work / "venv-toolkit")
    env = {k: v for k, v in os.environ.items() if not k.startswith("ASCENDOPT_")}
    env["ASCENDOPT_CACHE_DIR"] = str(work / "cache-toolkit")
    began = time.monotonic()
    run(str(bin / "ascendopt-tune"), "run", "add", *CASE, cwd=work, env=env)
    seconds = time.monotonic() - began
    print(f"wheel-check: the first run took {seconds:.1f} s with the toolkit that the wheel has", flush=True)
    assert seconds < FIRST_RUN_S


def main() -> None:
    pythons = [word for word in sys.argv[1:] if not word.startswith("--")]
    os.environ.pop("PYTHONPATH", None)  # what is there need not be installed, says pip
    toolkits = [word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--toolkit")]
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        tree, tracked = clean_tree(work)
        wheel = built(tree, work / "dist")
        sdist_is_whole(work / "dist", tracked)
        # The toolkit is named by the contents of its sources: shared with the tests unless the wheel lacks one of them.
        toolkit = platformdirs.user_cache_path("ascendopt_tune", appauthor=False) / "toolkit"
        env = {"ASCENDOPT_TOOLKIT_DIR": str(toolkit), **os.environ}
        bin = installed(sys.executable, wheel, work / "venv", "mypy")
        does_the_main_job(bin, work, env | {"ASCENDOPT_CACHE_DIR": str(work / "cache")})
        run(str(bin / "python"), "-m", "mypy", "--strict", "user.py", cwd=work)
        for python in pythons:
            name = Path(python).name
            other = installed(python, wheel, work / f"venv-{name}")
            does_the_main_job(other, work, env | {"ASCENDOPT_CACHE_DIR": str(work / f"cache-{name}")})
        for made in toolkits:
            toolkit_is_taken(tree, work, made)
        print(
            "wheel-check: built from a clean tree, installed outside of it, tuned, answered from the cache, types found"
        )


if __name__ == "__main__":
    main()
