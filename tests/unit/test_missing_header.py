"""Of a header that a host program doesn't find, the message names a folder around the operator that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.build.host import _where_it_is


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src" / "common" / "sub").mkdir(parents=True)
    (tmp_path / "src" / "common" / "shared_log.h").touch()
    (tmp_path / "src" / "common" / "sub" / "more.h").touch()
    root = tmp_path / "src" / "ops" / "my_op"
    root.mkdir(parents=True)
    return root


@pytest.mark.parametrize("header", ["shared_log.h", "sub/more.h"])
def test_the_folder_is_named(operator: Path, header: str) -> None:
    assert _where_it_is(operator, header).endswith(f"-I {operator.parents[1] / 'common'}")


@pytest.mark.parametrize("header", ["nowhere.h", "../common/shared_log.h", "/etc/passwd"])
def test_otherwise_the_option_is(operator: Path, header: str) -> None:
    step = _where_it_is(operator, header)
    assert "-I FOLDER" in step
    assert "passwd" not in step
