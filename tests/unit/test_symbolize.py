"""Lines that a report names are the user's, not those of the toolkit's headers, wherever these lay when it compiled."""

from __future__ import annotations

from pathlib import Path

from ascendopt_tune.evaluate.symbolize import _is_foreign


def test_headers_of_a_copied_cache(tmp_path: Path) -> None:
    include = tmp_path / "new/include"
    (include / "ascendc").mkdir(parents=True)
    (include / "ascendc/data_copy.h").touch()
    foreign = [include, tmp_path / "work"]
    assert _is_foreign(include / "ascendc/data_copy.h", foreign)
    assert _is_foreign(Path("/elsewhere/toolkit/1/include/ascendc/data_copy.h"), foreign)
    assert _is_foreign(tmp_path / "work/silu.cpp", foreign)
    assert not _is_foreign(Path("/home/me/my_op/op_kernel/silu.cpp"), foreign)
    assert not _is_foreign(Path("/home/me/my_op/include/rows.h"), foreign)
    assert not _is_foreign(Path("/home/me/include"), foreign)
