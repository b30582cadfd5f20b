"""The HTML report: small, alone, well-formed; what it shows of a run."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import cache_examples as example
import pytest
import test_story
from page_checks import CHROMIUM, MOST_BYTES, browsed, fits_a_phone, sound

from ascendopt_tune.bank.experience import Experience
from ascendopt_tune.bank.refinement import led_to
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Move
from ascendopt_tune.report.charts import bars, trajectory
from ascendopt_tune.report.html import write_report, write_run
from ascendopt_tune.report.repeat import command
from ascendopt_tune.report.roofline import roofline_point
from ascendopt_tune.report.run_record import run_document
from ascendopt_tune.report.text import json_text
from ascendopt_tune.report.timeline import first_cores

# A task of 5 us on one core: two copies in, one stretch of work and of waiting.
TIMELINE = {
    "end_us": 5.0,
    "lanes": [
        {"core": 0, "pipe": "MTE2 (GM to UB)", "busy": {"DataCopy": [[1.0, 0.5], [2.0, 0.5]]}, "waits": []},
        {"core": 0, "pipe": "V (vector)", "busy": {"Add <1>": [[2.5, 1.5]]}, "waits": [[1.0, 1.5]]},
    ],
}


# Zooms in and goes later by keyboard, goes back by a button, and hides what wasn't timed.
ACTS = """
const svg = () => document.querySelector("#zoom svg").getAttribute("viewBox");
const expect = (found, wanted) => { if (found !== wanted) throw new Error(`${found} is not ${wanted}`); };
const press = key => zoom.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
expect(svg(), "0 0 5000 32");
press("+");
expect(svg(), "1250 0 2500 32");
expect([...zoom.querySelectorAll(".axis")[1].children].map(e => e.textContent).join(), "1.25 us,2.50 us,3.75 us");
press("ArrowRight");
expect(svg(), "1875 0 2500 32");
document.querySelector("button[data-key=ArrowLeft]").click();
expect(svg(), "1250 0 2500 32");
press("-");
expect(svg(), "0 0 5000 32");
expect(zoom.querySelector("output").value, "0.00 to 5.00 us");
document.querySelector("#filter input[value=Hazard]").click();
expect(document.querySelector("tr[data-outcome=Hazard]").hidden, true);
expect(document.querySelector("tr[data-outcome=Timed]").hidden, false);
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    timelines = {"baseline": TIMELINE, "best": TIMELINE}
    write_report(tmp_path / "report.html", example.operator(), test_story.record(), timelines)
    return tmp_path / "report.html"


def test_it_is_small_alone_and_well_formed(page: Path) -> None:
    sound(page, MOST_BYTES // 4)


def test_it_shows_candidates_changes_and_where_they_come_from(page: Path) -> None:
    text, record = page.read_text(), test_story.record()
    assert text.count("<tr data-outcome=") == len(record.history)
    for trial in record.history:
        assert escape(trial.candidate.change.replace("->", "→")) in text
    assert 'class="tree"' in text
    assert text.count('<table class="diff">') >= 1
    assert "How to repeat it" in text
    assert "modelled" in text
    step = next(t for t in record.history.evaluated[1:] if t.candidate.change.startswith("fuse"))
    n, id = 1 + record.history.evaluated.index(step), step.candidate.id
    assert f"<summary>Evaluation {n} (candidate {id})," in text
    parent = f'<td class="number">{step.candidate.parent}</td>'
    assert f'<td class="number">{id}</td>{parent}<td class="number">{n}</td>' in text, "what the figure calls it"


def test_reasons_name_no_folder_of_this_machine(tmp_path: Path) -> None:
    told, reason = test_story.record(), "read at /home/me/ops/add/op_kernel/add.cpp:7, see /opt/inc/x/kernel.h:3"
    failed = test_story.trial(9, test_story.pair(9), f"9: {reason}", 0, 1, "x")
    write_report(tmp_path / "r.html", example.operator(), replace(told, history=(*told.history, failed)))
    text = (tmp_path / "r.html").read_text()
    assert "9: read at op_kernel/add.cpp:7, see kernel.h:3" in text
    assert "/home/me" not in text


def test_pictures_are_xml_and_label_what_was_accepted() -> None:
    trials = test_story.record().history.evaluated
    root = ElementTree.fromstring(trajectory(trials, "modelled"))
    texts = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("speedup over the pair as written (modelled)" in t for t in texts)
    ElementTree.fromstring(bars([("task <1>", (2.0, 1.0))], ("baseline", "best"), "modelled time (us)"))


def test_the_command_repeats_the_case() -> None:
    record = test_story.record()
    words = shlex.split(command(example.operator(), record))
    assert words[:3] == ["ascendopt-tune", "tune", "add"]
    assert "x=float16[1024,64]" in words
    assert words[words.index("--seed") + 1] == str(record.entry.provenance.seed)
    assert words[words.index("--budget") + 1] == str(record.entry.provenance.budget)


def test_it_shows_the_first_cores_and_the_roofline(tmp_path: Path) -> None:
    counters = {"mte2_bytes": 4096.0, "mte3_bytes": 4096.0, "cores_active_us": 4.0, "l2_miss_bytes": 0.0}
    told = test_story.record()
    best = Profile(5.0, 4.0, aiv_vec_time_us=2.0, block_dim=8, counters={**counters, "stall_vec_on_mte2_us": 1.0})
    told = replace(told, entry=replace(told.entry, best=best))
    write_report(tmp_path / "r.html", example.operator(), told, {"best": TIMELINE})
    text = sound(tmp_path / "r.html")
    assert 'viewBox="0 0 5000 32"' in text
    assert "M1000 8h500M2000 8h500" in text
    assert text.count('<div class="axis"><span>0.00 us</span><span>2.50 us</span><span>5.00 us</span></div>') == 1
    assert "</i> Add &lt;1&gt;</span>" in text, "colours have their names beside them"
    assert "Add &lt;1&gt;: 1.50 us of V (vector) on core 0" in text
    assert "V, for MTE2" in text
    assert "best: 4.00 units at work" in text
    point = roofline_point(best, load_chip("ascend910b2"))
    assert point is not None
    assert (point.work_us, point.bytes, point.bound) == (16.0, 8192.0, "vector")
    assert point.least_us == pytest.approx(16 / 48)
    assert roofline_point(Profile(5.0), load_chip("ascend910b2")) is None


def test_an_accepted_change_names_the_experience_it_came_from(tmp_path: Path) -> None:
    told = test_story.record()
    fused = told.history[5]
    parent = told.history.parent(fused)
    assert parent is not None
    of = Experience("fusion", "Two <instructions> become one", "", "", "", operator="softmax")
    other = replace(of, motif="another", title="of something else")
    found = {parent.candidate.pair.hash: (other, of), fused.candidate.pair.hash: (of,)}
    write_report(tmp_path / "r.html", example.operator(), replace(told, experience=found))
    text = sound(tmp_path / "r.html")
    assert text.count("From the experience bank") == 1
    assert f"<code>{of.id[:12]}</code>: Two &lt;instructions&gt; become one" in text
    asked = replace(fused, moves=(Move(f"experience:{other.id}", "experience", "set", 1.0),))
    assert led_to(found, parent, asked) == [other], "what a language model was asked to apply"


def test_a_timeline_is_cut_to_what_a_page_holds(tmp_path: Path) -> None:
    """The first two cores; neighbours of one name become one where there are too many."""
    events = [{"ph": "X", "name": "task", "cat": "task", "pid": 99, "tid": 0, "ts": 0, "dur": 1000.0, "args": {}}]
    for pid in (1, 2, 3):
        events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": 2, "args": {"name": "V (vector)"}})
        events.append({"ph": "X", "name": "block", "cat": "block", "pid": pid, "tid": 0, "ts": 0, "dur": 1000.0})
        for n in range(900):
            span = {"ph": "X", "name": "Add", "cat": "instruction", "pid": pid, "tid": 2, "ts": n + 0.1, "dur": 0.5}
            events.append(span)
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    cut = first_cores(tmp_path / "t.json")
    assert cut["end_us"] == 1000.0
    assert [(lane["core"], lane["pipe"]) for lane in cut["lanes"]] == [(0, "V (vector)"), (1, "V (vector)")]
    (spans,) = cut["lanes"][0]["busy"].values()
    assert len(spans) <= 200
    assert spans[0][0] == pytest.approx(0.1)
    assert spans[-1][0] + spans[-1][1] == pytest.approx(899.6)


def test_a_long_run_of_a_large_case_keeps_to_the_size(tmp_path: Path) -> None:
    """400 candidates, half of them with all a compiler says, and timelines as full as they get."""
    told = test_story.record()
    failed = [
        replace(
            test_story.trial(n, test_story.pair(n), f"{n}: " + "error: no matching function for call " * 60, 0, 1, "x")
        )
        for n in range(6, 206)
    ]
    slow = [
        test_story.trial(n, test_story.pair(n), 20.0, 5, 2, f"change {n}: " + "words " * 12) for n in range(206, 406)
    ]
    full = [[round(1000 + n * 10.123, 3), 4.567] for n in range(200)]
    lane = {"core": 0, "pipe": "V (vector)", "busy": {"Add": full[:100], "Mul": full[100:]}, "waits": full}
    timeline = {"end_us": 5000.0, "lanes": [lane] * 8}
    told = replace(told, history=(*told.history, *failed, *slow))
    write_report(tmp_path / "r.html", example.operator(), told, {"baseline": timeline, "best": timeline})
    sound(tmp_path / "r.html")


def test_the_page_of_a_record_is_the_page_of_the_run(page: Path, tmp_path: Path) -> None:
    """A record goes through JSON; an older one, without what is under ``report``, has a page with what it tells."""
    document = run_document(test_story.record(), example.operator(), {"baseline": TIMELINE, "best": TIMELINE})
    document = json.loads(json_text(document))
    write_run(tmp_path / "again.html", document)
    assert (tmp_path / "again.html").read_text() == page.read_text()
    del document["report"]
    write_run(tmp_path / "old.html", document)
    text = sound(tmp_path / "old.html")
    assert text.count("<tr data-outcome=") == len(document["history"])
    assert "How to repeat it" not in text


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
@pytest.mark.parametrize("width", [1200, 400])
def test_a_browser_finds_nothing_to_complain_of(page: Path, width: int, tmp_path: Path) -> None:
    browsed(page, width, tmp_path, ACTS)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
def test_it_fits_a_phone(page: Path, tmp_path: Path) -> None:
    fits_a_phone(page, tmp_path)
