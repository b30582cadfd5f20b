"""Of a header that a host program doesn't find, the message names a folder around the operator that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.build.missing import missing_in, where_it_is


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
    assert where_it_is(operator, header).endswith(f"-I {operator.parents[1] / 'common'}")


@pytest.mark.parametrize("header", ["nowhere.h", "../../shared_log.h", "../common/../sub/more.h", "/etc/passwd"])
def test_otherwise_the_option_is(operator: Path, header: str) -> None:
    step = where_it_is(operator, header)
    assert "-I FOLDER" in step
    assert "passwd" not in step


def test_a_way_that_leads_up_begins_as_deep_below(operator: Path) -> None:
    common = operator.parents[1] / "common"
    assert where_it_is(operator, "../common/shared_log.h").endswith(f"-I {common}")
    assert (common / "../common/shared_log.h").is_file()
    assert where_it_is(operator, "../../common/sub/more.h").endswith(f"-I {common / 'sub'}")
    assert "op_kernel/ of a folder called inc" in where_it_is(operator, "../inc/nowhere.h")


def test_the_header_is_read_from_a_compilers_message() -> None:
    assert missing_in("a.cpp:1:10: fatal error: ../inc/a.h: No such file or directory") == "../inc/a.h"
    assert missing_in("a.cpp:1:10: error: expected ';'") == ""
