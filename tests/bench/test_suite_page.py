"""The page of a benchmark: what is in the folder of results decides what it shows."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from page_checks import CHROMIUM, browsed, sound
from test_summary import run
from typer.testing import CliRunner

from ascendopt_tune.bench.record import RunRecord
from ascendopt_tune.bench.table import TEST, listed, read
from ascendopt_tune.cli import app, bench
from ascendopt_tune.errors import CaseError
from ascendopt_tune.report import named, suite
from ascendopt_tune.report.page import Figure
from ascendopt_tune.report.suite import anytime_svg, results_of


def results(folder: Path, operators: int = 12) -> Path:
    """Runs of several methods on operators of the test list at all sizes, the stages alone on the sample."""
    paths = list(dict.fromkeys(o.path for o in listed(read(), TEST)))[:operators]
    runs: list[RunRecord] = []
    for n, o in enumerate(o for o in listed(read(), TEST) if o.path in paths):
        for method, share in (("full", 1.0), ("stage-1", 0.4), ("stage-2", 0.5), ("random", 0.3)):
            if o.sampled or not method.startswith("stage"):
                up = 1 + share * (n % 5) / 4
                one = run(o.path, method, up, level=o.level, size=o.size)
                runs.append(replace(one, over_clocks=(up * 0.9, up * 1.05) if up > 1 else (), wins=float(up > 1)))
    folder.mkdir()
    (folder / "runs.jsonl").write_text("".join(json.dumps(r.to_json()) + "\n" for r in runs))
    return folder


def test_the_suite_page_has_the_papers_figures_and_their_data(tmp_path: Path) -> None:
    folder = results(tmp_path / "bench")
    found = named.of_path(folder)
    assert (found.kind, found.default) == ("bench", folder / "report.html")
    found.write(tmp_path / "suite.html")
    text = sound(tmp_path / "suite.html")
    for title in ("How much faster", "By level and size", "The stages apart", "By evaluation", "full against each",
                  "Outcomes", "The experience bank", "Modelled against measured", "Every case"):  # fmt: skip
        assert f"<h2>{title}</h2>" in text
    assert text.count("<svg") == 4
    assert text.count("<details") >= 8, "every figure has its data beside it"
    assert "fast_1.2" in text
    assert "39.7 %" in text, "the paper's Figure 2"
    assert "1.19x" in text, "its Table 3"
    assert "over plausible clocks" in text
    root = ElementTree.fromstring(anytime_svg(results_of(folder), "white"))
    names = [e.text or "" for e in root.findall("{*}text")]
    assert any(name.startswith("full, decode ") for name in names)
    assert any(name.startswith("random ") for name in names)
    assert not any(name.startswith("stage-1") for name in names), "it didn't run on every case"


def test_the_markdown_page_has_its_picture_and_this_page_beside_it(tmp_path: Path) -> None:
    found = results_of(results(tmp_path / "bench", 3))
    written = bench._write(tmp_path / "page.md", found)
    assert [path.name for path in written] == ["page.md", "page.svg", "page.html"]
    assert "](page.svg)" in written[0].read_text()
    picture = ElementTree.parse(written[1]).getroot()
    assert len(picture.findall("{*}polyline")) == 5, "two methods, and the first one at each size"
    assert picture.findall("{*}rect")[0].get("fill") == "white"
    sound(written[2])
    empty = replace(found, runs=())
    assert bench._write(tmp_path / "empty.md", empty) == [tmp_path / "empty.md"]


def test_the_newest_run_of_the_commonest_plan_counts(tmp_path: Path) -> None:
    folder = results(tmp_path / "bench", 3)
    again = replace(run(results_of(folder).runs[0].operator, "full", 8.0, size="large"), level=1)
    other = replace(again, budget=400, best_us=1.0)
    with (folder / "runs.jsonl").open("a") as file:
        file.write("".join(json.dumps(r.to_json()) + "\n" for r in (again, other)))
    found = results_of(folder)
    assert found.plan.budget == 4
    assert found.plan.sampled == ("stage-1", "stage-2")
    assert max(r.speedup for r in found.runs) == pytest.approx(8.0)


@pytest.mark.parametrize(("text", "reason"), [("", "has no run"), ('{"key": 1}\n', "can't be read")])
def test_a_folder_that_tells_nothing_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text(text)
    with pytest.raises(CaseError, match=reason):
        named.of_path(tmp_path).write(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
def test_a_browser_draws_the_suite(tmp_path: Path) -> None:
    named.of_path(results(tmp_path / "bench")).write(tmp_path / "suite.html")
    acts = """
    const box = document.querySelector(".search");
    box.value = "decode no-such";
    box.dispatchEvent(new Event("input"));
    const rows = [...box.parentElement.querySelectorAll("tbody tr")];
    if (!rows.length || !rows.every(row => row.hidden)) throw new Error("rows that don't fit are shown");
    box.value = "decode";
    box.dispatchEvent(new Event("input"));
    if (!rows.some(row => row.hidden) || !rows.some(row => !row.hidden)) throw new Error("decode is not found");
    """
    browsed(tmp_path / "suite.html", 400, tmp_path, acts)


def test_its_page_has_the_fidelity_of_times_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernels themselves are run in tests/vnpu/test_fidelity.py."""
    folder, page = results(tmp_path / "bench", 3), tmp_path / "suite.html"
    command = importlib.import_module("ascendopt_tune.cli.report")
    monkeypatch.setattr(command, "modelled_and_measured", lambda: "what was found")
    monkeypatch.setattr(suite, "beside_a_suite", lambda found: Figure("Modelled against measured", f"{found} is here"))
    done = CliRunner().invoke(app, ["report", str(folder), "--fidelity", "-o", str(page)])
    assert done.exit_code == 0, done.output
    assert "what was found is here" in page.read_text()
    (tmp_path / "p.json").write_text('{"bundle": "b", "entries": []}')
    refused = CliRunner().invoke(app, ["report", str(tmp_path / "p.json"), "--fidelity"])
    assert "is no benchmark" in str(refused.exception)
