"""The reading that was done before any motif was asked: its table is that of docs/motifs.md, its motifs are right."""

from __future__ import annotations

import blind
import outside
import pytest

from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.settings import settings


def test_the_page_has_the_table() -> None:
    page = blind.PAGE.read_text()
    assert page.partition(blind.BEGIN)[2].partition(blind.END)[0].strip() == blind.table()


def test_what_meets_a_finding_is_a_motif_of_its_class() -> None:
    known, met_by = {m.name for m in MOTIFS}, outside.met_by()
    findings = blind.reading()
    assert len({f.op for f in findings}) == 24
    for finding in findings:
        assert finding.first | finding.met <= known, finding
        if finding.kind in met_by:
            assert finding.met <= met_by[finding.kind][0], finding
        assert finding.spans or not finding.met, finding
        assert finding.met or not finding.first, f"no longer met: {finding}"


def test_no_operator_of_it_is_in_the_first_reading() -> None:
    assert not {f.op for f in blind.reading()} & set(outside.wild())


def test_findings_are_met_where_they_were() -> None:
    folders = {"cann-ops": settings().cann_ops, "vllm-ascend": settings().vllm_ascend}
    below = {"cann-ops": "src", "vllm-ascend": "csrc"}
    here = {name: folder / below[name] for name, folder in folders.items() if folder is not None}
    if not here:
        pytest.skip("ASCENDOPT_CANN_OPS and ASCENDOPT_VLLM_ASCEND are not set")
    assert list(blind.unconfirmed(here)) == []
