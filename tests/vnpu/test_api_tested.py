"""Every AscendC API that docs/api.md calls covered is called in a test's kernel, but for a short list."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "docs"))
import api_table  # noqa: E402

#: Covered without a test of their own, and why that is enough.
UNTESTED = {
    "tiling data in the kernel": "every operator of the registry reads its tiling data through them",
    api_table.USED: "inner names that operators of cann-ops use; its tests run them",
}
UNTESTED_NAMES = {
    "GetMrgSortResult": "reads what MrgSort left, which test_api_sort.py checks by its lists",
    "GetReduceRepeatMaxMinSpr": "another name of GetReduceMaxMinCount",
    "GetReduceRepeatSumSpr": "another name of GetAccVal",
    "complex32": "a type with two half members, which copies alone take",
    "DisableDmaAtomic": "another name of SetAtomicNone",
    "ascendc_assert": "another name of assert; a sample of asc-devkit calls it",
    "InitStartBufHandle": "does nothing",
    "SetSysWorkSpace": "what its page is called; the function is spelled otherwise, and operators call it",
    "GetIndex": "a field of TensorDesc, which the list tests read otherwise",
    "GetDataObj": "a field of TensorDesc, which the list tests read otherwise",
}


def covered() -> dict[str, str]:
    """Name -> chapter of what the table calls covered."""
    states = (api_table.COVERED, api_table.LIMITED)
    return {api.name: api.chapter for api, s in api_table.statuses().items() if s.state in states}


def test_covered_apis_are_called_by_a_test() -> None:
    files = [*(HERE / "kernels").iterdir(), *HERE.glob("test_*.py"), *HERE.glob("test_*.cpp")]
    words = {w for f in files if f.name != Path(__file__).name for w in re.findall(r"\w+", f.read_text())}
    names = {n for n, chapter in covered().items() if chapter not in UNTESTED}
    assert sorted(names - words - set(UNTESTED_NAMES)) == [], "write a property test in tests/vnpu/test_api_*.py"
    assert sorted(set(UNTESTED_NAMES) & words) == [], "these have a test by now: take them off the list"
