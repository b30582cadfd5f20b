"""Documentation that can go stale says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from ascendopt_tune import settings

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_table_of_settings_is_the_generated_one() -> None:
    text = (ROOT / "docs/settings.md").read_text()
    assert text.endswith("\n\n" + settings.table()), "paste the output of ascendopt_tune.settings.table()"


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_no_placeholder_is_left_in_the_readme() -> None:
    assert "DEMO_OUTPUT" not in (ROOT / "README.md").read_text()
