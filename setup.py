"""Packages and data. Everything else about the project is in pyproject.toml.

``registry/`` and ``cache/`` are data folders beside the package. A wheel gets copies of them in
``ascendopt_tune/_data/``; a checkout, and an editable install of it, reads them where they are (paths.py).

With ``ASCENDOPT_TOOLKIT_BUILT`` (a folder that ``ascendopt-tune toolkit --build --out`` made) the wheel has that
toolkit as well, and is one for this platform (``make wheel-with-toolkit``).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SHIPPED = {"registry": "registry", "cache": "cache"}
TOOLKIT = os.environ.get("ASCENDOPT_TOOLKIT_BUILT")
if TOOLKIT:
    SHIPPED["toolkit"] = TOOLKIT


class BuildWithData(build_py):
    """``build_py`` that takes the data folders along."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # What an earlier build left may be gone from the sources; it would go into the wheel.
        shutil.rmtree(Path(self.build_lib) / "ascendopt_tune", ignore_errors=True)
        super().run()
        data = Path(self.build_lib) / "ascendopt_tune" / "_data"
        for name, folder in SHIPPED.items():
            shutil.copytree(folder, data / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


class WheelOfItsPlatform(bdist_wheel):
    """A wheel with a toolkit runs on one platform, with any Python."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = self.root_is_pure and not TOOLKIT

    def get_tag(self) -> tuple[str, str, str]:
        *_, platform = super().get_tag()
        return "py3", "none", platform


setup(
    # Explicit: with the data folders on top, setuptools' discovery refuses. The package_dir makes an editable install a
    # plain path, which type checkers of other projects follow.
    packages=find_packages(include=["ascendopt_tune", "ascendopt_tune.*"]),
    package_dir={"": "."},
    package_data={
        "ascendopt_tune": [
            "py.typed",
            "vnpu/**/*",
            "torch_ops/serving/fast/*",
            "report/templates/*",
            "fidelity/**/*",
            "calibrate/kernels/*",
            "bench/*.toml",
            "**/*.md",
        ]
    },
    exclude_package_data={"ascendopt_tune": ["**/__pycache__/*"]},
    include_package_data=False,
    cmdclass={"build_py": BuildWithData, "bdist_wheel": WheelOfItsPlatform},
)
