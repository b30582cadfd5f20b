"""Packages and data. Everything else about the project is in pyproject.toml.

``registry/`` and ``cache/`` are data folders beside the package. A wheel gets copies of them in
``ascendopt_tune/_data/``; a checkout, and an editable install of it, reads them where they are (paths.py).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

SHIPPED = ("registry", "cache")


class BuildWithData(build_py):
    """``build_py`` that takes the data folders along."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for folder in SHIPPED:
            target = Path(self.build_lib) / "ascendopt_tune" / "_data" / folder
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


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
    cmdclass={"build_py": BuildWithData},
)
