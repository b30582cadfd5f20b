"""The list of operators, the parametric space, the text OpenEvolve sees, and the command from end to end."""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from pathlib import Path

import pytest
from bench_examples import FakeSubject
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ascendopt_tune.bench import table
from ascendopt_tune.bench.openevolve_worker import pair_in, shown, text_of
from ascendopt_tune.bench.peers import parametric
from ascendopt_tune.bench.sizes import ELEMENTS, SIZES, filled
from ascendopt_tune.bench.space import MOST, pair_of
from ascendopt_tune.bench.subject import EvaluationStore
from ascendopt_tune.cli import app
from ascendopt_tune.errors import CacheError, CaseError, OperatorError
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.settings import settings

LINE = """[[operator]]
path = "a"
list = "test"
level = 1
inputs = ["float16[2*n,h+1]", "-"]
outputs = [["float16[n]"]]
attrs = { size = ["=n", 3] }
values = { 1 = "=steps(n, 4)" }
decode = { n = 2, h = 3 }
medium = { n = 3, h = 3 }
large = "too big"
"""


def test_the_lists() -> None:
    operators = table.read()
    by_list = {name: {o.path for o in table.listed(operators, name)} for name in table.LISTS}
    assert by_list[table.EXTENDED].isdisjoint(by_list[table.DEVELOPMENT])
    assert by_list[table.TEST] < by_list[table.EXTENDED]
    assert len(by_list[table.TEST]) == 72
    assert len(by_list[table.EXTENDED]) == 138
    assert {o.level for o in table.listed(operators, table.EXTENDED)} == set(table.LEVELS)
    assert all(o.root == "cann-ops" for o in table.listed(operators, table.EXTENDED))


def test_an_interrupted_run_has_had_every_level() -> None:
    operators = table.read()
    for name in (table.TEST, table.EXTENDED):
        order = table.chosen(operators, [], name)
        assert sorted(o.path for o in order) == sorted(o.path for o in table.listed(operators, name))
        for level in table.LEVELS:
            paths = list(dict.fromkeys((o.path, o.level) for o in order))
            share = sum(at == level for _, at in paths) / len(paths)
            for n in range(1, len(paths) + 1):
                assert abs(sum(at == level for _, at in paths[:n]) - share * n) <= 1.5


def test_cases_are_of_their_size() -> None:
    for one in table.read():
        least, most = ELEMENTS[one.size]
        assert least <= one.elements <= most, one.name


def test_rows_come_twice_where_their_order_decides() -> None:
    """A kernel that reads a row, subtracts and writes it is wrong on several cores only where rows come again."""
    rows = filled("=twice(n)", {"n": 16})
    assert sorted(rows) == sorted([*range(8)] * 2)
    assert all(a != b for a, b in itertools.pairwise(rows))
    (again,) = {rows.index(r, i + 1) - i for i, r in enumerate(rows) if r in rows[i + 1 :]}
    assert again == 2
    lists = tomllib.loads(Path(table.__file__).with_name("operators.toml").read_text())["operator"]
    once = [o["path"] for o in lists if "in_place" in o and "permutation" in str(o.get("values"))]
    assert not once, "what is changed in place is drawn more than once"


def test_127_operators_have_a_size() -> None:
    every = table.read()
    extended = table.listed(every, table.EXTENDED)
    counts = [sum(o.size == size for o in extended) for size in SIZES]
    assert min(counts) >= 127
    page = " ".join((Path(__file__).parents[2] / "docs" / "benchmark.md").read_text().split())
    decode, medium, large = counts
    assert f"{decode} have a decode case, {medium} a medium and {large} a large one" in page


def test_the_sample_is_a_third_of_each_level() -> None:
    extended = table.listed(table.read(), table.EXTENDED)
    for level in table.LEVELS:
        of = {o.path: o.sampled for o in extended if o.level == level}
        assert sum(of.values()) == -(-len(of) // table.SAMPLE)


def test_every_operator_is_there() -> None:
    root = settings().cann_ops
    if root is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    for one in table.read():
        if one.root == "cann-ops":
            assert (root / "src" / one.path / "op_kernel").is_dir(), one.path


def test_a_line(tmp_path: Path) -> None:
    path = tmp_path / "operators.toml"
    path.write_text(LINE)
    one, other = table.read(path)
    assert str(one.case) == "float16[4,4] - -> (float16[2]) size=[2, 3]"
    assert (one.size, one.elements, one.values) == ("decode", 16, {"1": [0, 4]})
    assert str(other.case) == "float16[6,4] - -> (float16[3]) size=[3, 3]"
    assert table.left_out(path) == (table.LeftOut("a", "large", "test", "too big"),)
    path.write_text(LINE.replace("2*n", "2*k"))
    with pytest.raises(CaseError, match=r"'2\*k' is no number"):
        table.read(path)
    path.write_text(LINE + LINE)
    with pytest.raises(CaseError, match="twice"):
        table.read(path)
    path.write_text(LINE.replace('"test"', '"best"'))
    with pytest.raises(CaseError, match="best"):
        table.read(path)


def test_patterns_choose_within_a_list() -> None:
    operators = table.read()
    found = table.chosen(operators, ["foreach/*"], table.TEST, ["large"])
    assert {o.size for o in found} == {"large"}
    assert found
    assert all(o.path.startswith("foreach/") and o.list == table.TEST for o in found)
    with pytest.raises(OperatorError, match="no/such"):
        table.chosen(operators, ["no/such"], table.TEST)


def test_the_space_of_numbers() -> None:
    subject = FakeSubject()
    base = subject.operator.baseline
    space = parametric(subject)
    assert space
    assert math.prod(len(k.values) for k in space) <= MOST
    assert all(len(set(k.values)) == len(k.values) for k in space)
    assert pair_of(base, space, [k.written for k in space])[0].hash == base.hash
    texts = {pair_of(base, space, [k.values[-1] if k is one else k.written for k in space])[0].hash for one in space}
    assert len(texts) == len(space)


FILES = st.dictionaries(
    st.from_regex(r"[a-z]{1,8}\.cpp", fullmatch=True), st.text(st.characters(codec="utf-8")), min_size=1
)


@given(FILES, FILES)
@example({"a.cpp": "//@end\n//@@end"}, {"a.cpp": "//@kernel "})
def test_a_pair_is_a_text_and_back(tiling: dict[str, str], kernel: dict[str, str]) -> None:
    pair = Pair(tiling, kernel)
    text = text_of(pair)
    assert pair_in(text).hash == pair.hash
    block = f"```cpp\n{text}\n```\n"
    prompt = f"# Program Evolution History\n{block}# Current Program\n{block}\n# Task\n```cpp\n"
    assert shown(prompt) == text


def test_a_torn_answer_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "store.jsonl"
    store = EvaluationStore(path)
    assert store.ask("outcome", "a", lambda: 1) == 1
    assert store.ask("outcome", "a", lambda: 2) == 1
    with pytest.raises(CacheError, match="another process"):
        EvaluationStore(path)
    store.close()
    path.write_bytes(path.read_bytes() + b'{"asked": "outcome", "pa')
    again = EvaluationStore(path)
    assert again.ask("outcome", "a", lambda: 3) == 1
    assert again.ask("outcome", "b", lambda: 4) == 4
    again.close()
    assert len(path.read_text().splitlines()) == 2


def test_the_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = "bench search --list development --operators add --sizes decode --budget 2 --seeds 1"
    command = [
        *words.split(),
        "--methods",
        "full,random,full-adaptive",
        "--json",
        "--results",
        str(tmp_path),
        "--docs",
        str(page),
    ]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    document = json.loads(first.stdout)
    assert document["time"] == "modelled"
    assert {m["method"] for m in document["methods"]} == {"full", "random", "full-adaptive"}
    assert all(len(r["trace"]) == 2 for r in document["runs"])
    told = page.read_text()
    assert "| full-adaptive | 1 |" in told
    assert "ahead of random (" in told
    assert "ahead of full-adaptive (" not in told  # no peer: the aim doesn't ask for it
    lines = (tmp_path / "runs.jsonl").read_text()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert (tmp_path / "runs.jsonl").read_text() == lines  # nothing is run twice
    assert CliRunner().invoke(app, [*command, "--jobs", "2", "--report-only"]).exit_code == 0
    why = {"operator": "silu", "size": "decode", "error": "no luck at '/home/me/ops/silu.cpp:3' (1/2), foreach/silu/x"}
    (tmp_path / "failures.jsonl").write_text(f'{json.dumps(why)}\n{{"operator": "so')
    again = CliRunner().invoke(app, [*command, "--operators", "silu", "--report-only"])
    assert json.loads(again.stdout)["failed"] == [{"operator": "silu", "size": "decode", "why": why["error"]}]
    assert "| silu | decode | no luck at 'silu.cpp:3' (1/2), foreach/silu/x |" in page.read_text()
    unknown = CliRunner().invoke(app, [*command, "--methods", "luck"])
    assert "unknown methods: luck" in str(unknown.exception)


def test_a_missing_checkout_is_said_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["bench", "search", "--operators", "math/abs", "--results", str(tmp_path / "results")]
    monkeypatch.delenv("ASCENDOPT_CANN_OPS", raising=False)
    unset = CliRunner().invoke(app, command)
    assert "math/abs is an operator of cann-ops, and ASCENDOPT_CANN_OPS is not set" in str(unset.exception)
    monkeypatch.setenv("ASCENDOPT_CANN_OPS", str(tmp_path))
    elsewhere = CliRunner().invoke(app, command)
    assert f"ASCENDOPT_CANN_OPS is {tmp_path}, which has no folder src" in str(elsewhere.exception)
    assert not (tmp_path / "results").exists()
    assert CliRunner().invoke(app, [*command, "--report-only"]).exit_code == 0
