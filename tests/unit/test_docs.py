"""Documentation that can go stale says what the code says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ascendopt_tune import settings
from ascendopt_tune.nouns import run_options
from ascendopt_tune.search.kernel import motifs

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def test_the_table_of_settings_is_the_generated_one() -> None:
    text = (ROOT / "docs/settings.md").read_text()
    assert text.endswith("\n\n" + settings.table()), "make docs"


def test_the_table_of_options_is_the_generated_one() -> None:
    text = (ROOT / "docs/options.md").read_text()
    assert text.endswith("\n\n" + run_options.table()), "make docs"


def test_the_table_of_motifs_is_the_generated_one() -> None:
    text = (ROOT / "docs/motifs.md").read_text()
    assert text.endswith("\n\n" + motifs.table()), "make docs"


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)\)", prose):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_life_of_a_datacopy_names_what_exists() -> None:
    text = (ROOT / "docs/life_of_a_datacopy.md").read_text()
    package = ROOT / "ascendopt_tune"
    steps = re.findall(r"^### `([\w./]+)`: (`.+`)$", text, re.MULTILINE)
    assert len(steps) >= 15
    for file, names in steps:
        source = (package / file).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"\b{name}\(|\b(struct|class) {name}\b|\b{name} =", source), f"{file}: {name}"
    # Files in running text, from the repository's or the package's root, with what is to be found there.
    for name, file in re.findall(r"`(\w+)`\s+\(`([\w./]+\.\w+)`\)", text):
        assert re.search(rf"\b{name}\b", (package / file).read_text()), f"{file}: {name}"
    for file in re.findall(r"`([\w/]+\.(?:py|h|cpp|toml|so))`", text):
        assert (package / file).exists() or (ROOT / file).exists() or file.startswith("lib"), file
    assert "DataCopy(x, from_[begin], count);" in (ROOT / "examples/scale_shift.cpp").read_text()
    line = (ROOT / "examples/scale_shift.cpp").read_text().splitlines().index("      DataCopy(x, from_[begin], count);")
    assert f"`scale_shift.cpp:{line + 1}`" in text


def test_the_walks_go_through_files_that_exist() -> None:
    package = ROOT / "ascendopt_tune"
    text = (ROOT / "docs/walks.md").read_text()
    assert text.count("```mermaid") == 3
    names = re.findall(r"[\w/]+\.(?:py|h|cpp)\b", text)
    assert len(set(names)) > 30
    folder = package
    for name in names:
        folder = (package / name).parent if "/" in name else folder  # "core_sim.cpp, l2.cpp": the first one's folder
        assert (package / name).exists() or (folder / name).exists(), name


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150, "docs/tour.md is the longer look"


def test_no_page_has_a_placeholder() -> None:
    assert not [d.name for d in DOCUMENTS if re.search(r"@[A-Z_]+@|DEMO_OUTPUT|TODO|FIXME", d.read_text())]


def test_figures_that_are_quoted_are_those_of_fidelity() -> None:
    """Pages about trust repeat figures of generated ones: a figure that changes there is changed here."""
    fidelity = (ROOT / "docs/fidelity.md").read_text()
    found = re.search(r"\*\*(\d+ of \d+) rows with a limit are within it; their median error is ([\d.]+ %)\.", fidelity)
    assert found is not None
    families = re.findall(r"^\| \w+ \| \d+ \| -?[\d.]+ \| (\w+) \|$", fidelity, re.MULTILINE)
    trust = (ROOT / "docs/trust.md").read_text()
    assert f"median error {found[2]}, {found[1]} published rows" in trust
    assert f"{families.count('held')} of {len(families)} families" in trust
    for page in ("claims.md", "peers.md"):
        assert found[2] in (ROOT / "docs" / page).read_text(), page


def test_what_others_have_met_has_a_test() -> None:
    """Every row of the table in docs/gate.md names tests that are there."""
    page = (ROOT / "docs" / "gate.md").read_text()
    rows = page[page.index("| kind | seen in") :].splitlines()[2:]
    source = "".join(p.read_text() for p in (ROOT / "tests" / "gate").glob("test_*.py"))
    assert len(rows) >= 14
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row.split("|")[-2])
        assert names, row
        assert all(f"def {name}(" in source for name in names), row


def test_every_package_that_is_used_has_its_license_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [one for group in (project["dependencies"], *project["optional-dependencies"].values()) for one in group]
    names = {re.split(r"[\[<>=~]", one)[0] for one in needed} - {project["name"]}
    text = (ROOT / "docs/licenses.md").read_text()
    assert len(names) > 20
    assert not [name for name in names if not re.search(rf"^\|.*\b{re.escape(name)}\b.*\|", text, re.MULTILINE)]


def test_the_citation_has_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_cells_of_the_readme_can_be_taken_in_at_a_glance() -> None:
    """A cell has one statement; more of it belongs to the page it links to."""
    shown = re.sub(r"\]\([^)]*\)|`", "", (ROOT / "README.md").read_text())
    cells = [c.strip() for line in shown.splitlines() if line.startswith("|") for c in line.strip("|").split("|")]
    assert len(cells) > 40
    assert [c for c in cells if len(c) > 160 or len(re.findall(r"\d[\d.]*", c)) > 3] == []


def test_long_pages_begin_with_their_answer() -> None:
    """Within the first lines of a page that is a record of much stands a list or a table of what it comes to."""
    pages = ("trust", "gate", "search", "bank", "motifs", "benchmark", "fidelity_model", "fidelity_operators")
    for page in (*pages, "fidelity_blind", "fidelity_evidence", "search_choices"):
        beginning = (ROOT / f"docs/{page}.md").read_text().splitlines()[:14]
        assert any(line.startswith(("* ", "| ")) for line in beginning), page
