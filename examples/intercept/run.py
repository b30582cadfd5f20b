"""An operator that somebody else registered in C++, served by a tuned pair, without a change to its extension."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import ascendopt_tune as aot  # before torch: it is what lets torch_npu start without CANN

import torch  # isort: skip


def build(folder: Path) -> Path:
    """Compiles my_ops.cpp; a real extension comes compiled."""
    root = Path(torch.__file__).parent
    include = [f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"]
    library = folder / "my_ops.so"
    source = Path(__file__).with_name("my_ops.cpp")
    compiler = [os.environ.get("CXX", "g++"), "-std=c++17", "-O1", "-fPIC", "-shared", "-w"]
    link = [f"-L{root}/lib", "-ltorch_cpu", "-lc10"]
    subprocess.run([*compiler, *include, str(source), *link, "-o", str(library)], check=True)
    return library


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        torch.ops.load_library(str(build(Path(folder))))
    x = torch.randn(8, 2048).npu()
    expected = torch.ops.my_ops.silu(x)

    # The registry's silu stands in for the operator: the same name and parameters as the folder of your own AscendC
    # sources would have. blocking: what is missing is tuned at the first call.
    with aot.intercept("my_ops::silu", source="silu", policy="blocking", budget=4):
        torch.testing.assert_close(torch.ops.my_ops.silu(x), expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(torch.ops.my_ops.silu(x), expected, rtol=1e-4, atol=1e-4)
        print(aot.status())
    torch.testing.assert_close(torch.ops.my_ops.silu(x), expected)  # the extension's own kernel again


if __name__ == "__main__":
    main()
