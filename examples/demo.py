"""`make demo`: the main job on the virtual NPU, as a user runs it. Writes demo-output/record.json and report.html."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

OUTPUT = Path("demo-output")
CASE = ["rms_norm", "--input", "x=float16[64,4096]", "--input", "gamma=float16[4096]"]


def ascendopt_tune(*arguments: str) -> None:
    """Shows the command and runs it; a failure ends the demo."""
    print(f"\n$ ascendopt-tune {shlex.join(arguments)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "ascendopt_tune", *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    OUTPUT.mkdir(exist_ok=True)
    record, report = OUTPUT / "record.json", OUTPUT / "report.html"
    # --retune: the demo searches also where an earlier one has filled the cache.
    ascendopt_tune("tune", *CASE, "--retune", "--record", str(record), "--report", str(report))
    ascendopt_tune("tune", *CASE, "--record", str(OUTPUT / "second.json"))
    if not json.loads((OUTPUT / "second.json").read_text())["cached"]:
        sys.exit("the second call was not answered from the cache")


if __name__ == "__main__":
    main()
