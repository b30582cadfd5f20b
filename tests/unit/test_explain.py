"""``ascendopt-tune explain``: the marked program is the program, and every site is told with its reasons."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ascendopt_tune.cli import app
from ascendopt_tune.report.region import marked_sites, marked_text
from ascendopt_tune.search.tiling.slice import synthesize
from ascendopt_tune.sources.registry import load_operator, operator_names

DATA = Path(__file__).parent / "data" / "tiling"
MARK = re.compile(r"/\*<\d+ \w+\*/|/\*\d+>\*/")


@pytest.mark.parametrize("name", [*(p.stem for p in sorted(DATA.glob("*.cpp"))), *operator_names()])
def test_without_its_markers_the_text_is_the_program(name: str) -> None:
    source = DATA / f"{name}.cpp"
    files = {"t.cpp": source.read_text()} if source.exists() else dict(load_operator(name).baseline.tiling)
    template = synthesize(files)
    sites = marked_sites(template, [])
    assert sites
    for path, text in marked_text(template, sites).items():
        assert MARK.sub("", text) == files[path]
        for m in sites:
            if m.site.path == path:
                begin, end = text.index(f"/*<{m.number} "), text.index(f"/*{m.number}>*/")
                inside = text[text.index("*/", begin) + 2 : end]
                assert MARK.sub("", inside) == m.site.text
                assert files[path].splitlines()[m.line - 1][m.column - 1 :].startswith(m.site.text.splitlines()[0])


def test_json_names_sinks_sites_and_rules() -> None:
    done = CliRunner().invoke(app, ["explain", "rms_norm", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["operator"] == "rms_norm"
    assert "block_dim" in {s["kind"] for s in found["sinks"]}
    by_role = {s["role"]: s for s in found["sites"]}
    assert {"core_count", "ub_size"} <= by_role.keys()
    site = by_role["core_count"]
    assert site["families"] == ["core_count"]
    assert any(change.startswith("cores: at most") for change in site["changes"])
    assert "reaches the" in site["why"]
    (text,) = [t for t in found["template"].values() if "/*<1 " in t]
    assert f"/*{site['number']}>*/" in text


def test_the_terminal_shows_marked_lines_and_reasons() -> None:
    done = CliRunner().invoke(app, ["explain", "softmax"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "/*<1 " in done.stdout
    assert "Unified Buffer" in done.stdout
    assert "tiling data" in done.stdout
