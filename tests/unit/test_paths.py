"""Where things are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune import paths
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.settings import override


def test_checkout_or_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel's copy comes before a folder that happens to lie beside the package."""
    monkeypatch.setattr(paths, "_CHECKOUT", tmp_path / "checkout")
    monkeypatch.setattr(paths, "_SHIPPED", tmp_path / "package" / "_data")
    with pytest.raises(AscendOptError, match="Reinstall"):
        paths.shipped("registry")
    (tmp_path / "checkout" / "registry").mkdir(parents=True)
    assert paths.shipped("registry") == tmp_path / "checkout" / "registry"
    (tmp_path / "package" / "_data" / "registry").mkdir(parents=True)
    assert paths.shipped("registry") == tmp_path / "package" / "_data" / "registry"


def test_writable_folders_follow_the_settings(tmp_path: Path) -> None:
    with override(cache_dir=tmp_path, toolkit_dir=None):
        assert paths.cache_dir() == tmp_path
        assert paths.toolkit_dir() == tmp_path / "toolkit"
        with override(toolkit_dir=tmp_path / "elsewhere"):
            assert paths.toolkit_dir() == tmp_path / "elsewhere"
    with override(cache_dir=tmp_path, build_dir=None):
        assert paths.build_dir() == tmp_path / "build"
        with override(build_dir=tmp_path / "elsewhere"):
            assert paths.build_dir() == tmp_path / "elsewhere"
    with override(cache_dir=None):
        assert paths.cache_dir().name == "ascendopt_tune"
    assert list(tmp_path.iterdir()) == []


def test_the_users_layers_come_before_the_shipped_one(tmp_path: Path) -> None:
    with override(cache_layers=(tmp_path / "a", tmp_path / "b")):
        assert paths.cache_layers() == (tmp_path / "a", tmp_path / "b", paths.shipped("cache"))


def test_the_package_has_its_sources() -> None:
    assert (paths.vnpu() / "include" / "kernel_operator.h").is_file()
    assert list(paths.chips().glob("*.toml"))
