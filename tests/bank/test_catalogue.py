"""The first reading: which findings the motifs have an edit for is what docs/motifs_reading.md says, and still so."""

from __future__ import annotations

import blind
import catalogue
import outside
import pytest

from ascendopt_tune.settings import settings


def test_the_page_has_the_counts() -> None:
    page = blind.PAGE.read_text()
    assert catalogue.with_counts(page) == page
    assert catalogue.together() in page


def test_what_meets_a_finding_is_a_motif_of_its_class() -> None:
    met_by = outside.met_by()
    for finding in catalogue.of_kernels():
        assert finding.met <= met_by.get(finding.kind, (frozenset(), ""))[0], finding


def test_findings_are_met_where_they_were() -> None:
    root = settings().cann_ops
    if root is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    assert [(row["op"], row["lines"], sorted(met)) for row, met in catalogue.changed(root / "src")] == []
