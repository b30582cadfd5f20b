"""``ascendopt-tune report``: what it is given, what it makes of that, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cache_examples as example
import pytest
import test_report
import test_story
from page_checks import CHROMIUM, fits_a_phone, sound
from typer.testing import CliRunner

from ascendopt_tune.cli import app
from ascendopt_tune.errors import AscendOptError, CacheError, CaseError
from ascendopt_tune.report import named
from ascendopt_tune.report.run_record import run_document
from ascendopt_tune.report.text import json_text, together_json
from ascendopt_tune.settings import override
from ascendopt_tune.store.cache import Cache

PREBUILD = {
    "bundle": "bundle/",
    "digest": "sha256:0",
    "signed": False,
    "time": "modelled",
    "entries": [
        {"operator": "add", "case": "float16[8]", "chip": "ascend910b2", "result": "tuned", "baseline_us": 4.0,
         "best_us": 2.0, "speedup_low": 1.5, "speedup_high": 2.5, "wins": 1.0, "reason": ""},
        {"operator": "ops/mine", "case": "", "chip": "ascend910b2", "result": "failed", "baseline_us": 0.0,
         "best_us": 0.0, "reason": "no tiling <function>"},
    ],
}  # fmt: skip
WARMUP = {
    "time": "modelled", "model_us_before": 20.0, "model_us_after": 10.0, "seconds": 3.0, "shares_of": "the model",
    "cases": [
        {"operator": "add", "case": "float16[8]", "calls": 2, "share": 0.5, "before_us": 5.0, "after_us": 2.5,
         "source": "tuned", "bytes": 32, "search": "8 of 40 evaluations, unfinished: seconds", "finished": False},
        {"operator": "mul", "case": "float16[8]", "calls": 1, "share": None, "before_us": None, "after_us": None,
         "source": "no time was left", "bytes": 32, "search": "", "finished": True},
    ],
    "untimed": [{"operator": "aten::mm", "calls": 3, "bytes": 4096}],
}  # fmt: skip


def written(folder: Path, name: str, document: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def test_a_model_s_times_are_compared_where_all_originals_have_one(tmp_path: Path) -> None:
    """An original of torch's own has no modelled time: before and after would be of different things."""
    timed = {**WARMUP, "cases": WARMUP["cases"][:1]}  # type: ignore[index]
    for name, document in ("timed", timed), ("untimed", WARMUP):
        page = tmp_path / f"{name}.html"
        named.of_path(written(tmp_path, f"{name}.json", document)).write(page)
        assert ("20.0 us" in page.read_text()) == (name == "timed")
        assert ("originals without a time" in page.read_text()) == (name == "untimed")


def test_records_say_themselves_what_they_are(tmp_path: Path) -> None:
    run = json.loads(json_text(run_document(test_story.record(), example.operator())))
    both = [test_report.record(), test_report.record(improved=False)]
    together = json.loads(json_text(together_json(both, [1.0, 2.0])))
    for kind, document, words in (
        ("run", run, "fuse &lt;two&gt; instructions"),
        ("cases", together, "one pair for 2 cases"),
        ("prebuild", PREBUILD, "no tiling &lt;function&gt;"),
        ("warmup", WARMUP, "unfinished: seconds"),
    ):
        found = named.of_path(written(tmp_path, f"{kind}.json", document))
        assert (found.kind, found.default) == (kind, tmp_path / f"{kind}.html")
        found.write(found.default)
        text = sound(found.default)
        assert words in text
        assert "<b>modelled</b>" in text


def test_cases_have_bars_and_a_table(tmp_path: Path) -> None:
    found = named.of_path(written(tmp_path, "p.json", PREBUILD))
    found.write(found.default)
    text = found.default.read_text()
    assert "2.00x <span>(1.50 to 2.50)</span>" in text
    assert text.count("<svg") == 1
    assert "of 2 asked for" in text
    found = named.of_path(written(tmp_path, "w.json", WARMUP))
    found.write(found.default)
    text = found.default.read_text()
    assert "aten::mm" in text
    assert "<td>mul float16[8]</td>" in text


def test_a_result_of_the_cache_has_a_page(tmp_path: Path) -> None:
    with override(cache_dir=tmp_path / "cache"):
        entry = example.entry()
        Cache().put(entry)
        page = tmp_path / "page.html"
        done = CliRunner().invoke(app, ["report", entry.key.hash[:10], "-o", str(page)])
        assert done.exit_code == 0, done.output
        text = sound(page)
        assert "<h1>add</h1>" in text
        assert entry.key.hash in text
        missing = CliRunner().invoke(app, ["report", "0" * 12, "-o", str(page)])
        assert isinstance(missing.exception, CacheError)
        assert "cache list" in str(missing.exception)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("there/is/none.json", None, "can't be read"),
        ("page.json", "<html>", "no JSON"),
        ("list.json", "[1]", "no record"),
        ("other.json", '{"a": 1}', "no record"),
        ("error.json", '{"error": {"message": "no such operator"}}', "failed: no such operator"),
        ("half.json", '{"bundle": "b", "entries": [{}]}', "isn't whole"),
        ("case.json", '{"history": [], "baseline": {}, "best": 1, "case": {}}', "isn't whole"),
    ],
)
def test_what_has_no_page_is_told(name: str, text: str | None, reason: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(AscendOptError, match=reason) as found:
        named.of_path(tmp_path / name).write(tmp_path / "page.html")
    assert found.value.hint
    assert not (tmp_path / "page.html").exists()


def test_folders_say_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"without runs\.jsonl"):
        named.of_path(tmp_path)
    (tmp_path / "op_host").mkdir()
    with pytest.raises(CaseError, match=r"tune has --report"):
        named.of_path(tmp_path)
    (tmp_path / "entry.json").touch()
    with pytest.raises(CaseError, match="digits of its key"):
        named.of_path(tmp_path)


def test_an_operator_of_another_text_shows_no_lines() -> None:
    """Lines are compared with the pair that was tuned, or not at all."""
    changed = replace(example.operator(), baseline=test_story.pair(9))
    assert run_document(test_story.record(), changed)["report"]["files"] == []
    assert run_document(test_story.record(), example.operator())["report"]["files"]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
@pytest.mark.parametrize("document", [{**PREBUILD, "digest": "sha256:" + "0123456789abcdef" * 4}, WARMUP])
def test_a_page_of_cases_fits_a_phone(document: dict[str, object], tmp_path: Path) -> None:
    found = named.of_path(written(tmp_path, "p.json", document))
    found.write(found.default)
    fits_a_phone(found.default, tmp_path)
