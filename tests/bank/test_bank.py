"""The bank on disk: merging, damage, layers, several processes, the index, and what search promises."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import zlib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bank_examples import BOTTLENECKS, experience
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.bank.bank import FILE, Bank, BankWarning, Records, read_records
from ascendopt_tune.bank.embedding import LocalEmbedder, Vectors, words
from ascendopt_tune.bank.experience import ExperienceProvenance, Use, line_of
from ascendopt_tune.errors import BankError

_ids = [experience(n).id for n in range(6)]
_records = st.builds(
    lambda found, uses: Records({e.id: e for e in found}, frozenset(uses)),
    st.lists(
        st.builds(
            lambda n, title, version: experience(n, title=title, provenance=ExperienceProvenance(version=version)),
            st.integers(0, 5),
            st.sampled_from("ab"),
            st.sampled_from(["0.1", "0.2"]),
        ),
        max_size=5,
    ),
    st.lists(st.builds(Use, st.sampled_from(_ids), st.sampled_from(["t1", "t2"]), st.booleans()), max_size=5),
)


@given(_records, _records, _records)
def test_merging_is_a_union(a: Records, b: Records, c: Records) -> None:
    assert (a | b).lines() == (b | a).lines()
    assert (a | a).lines() == a.lines()
    assert ((a | b) | c).lines() == (a | (b | c)).lines()
    assert (a | b.beyond(a)).lines() == (a | b).lines()
    assert not a.beyond(a | b).experiences
    assert (a | b).counted() == (b | a).counted()


@settings(max_examples=15, deadline=None)
@given(_records, _records)
def test_merging_banks_on_disk(tmp_path_factory: pytest.TempPathFactory, a: Records, b: Records) -> None:
    first, second = (Bank(tmp_path_factory.mktemp("bank")) for _ in range(2))
    for bank, parts in ((first, (a, b, a)), (second, (b, a))):
        for part in parts:
            bank.merge(part)
    assert first.records().lines() == second.records().lines() == (a | b).lines()
    assert list(first) == list(second)


def test_adding_twice_writes_once(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    assert bank.add([experience(0), experience(1)]) == 2
    size = (tmp_path / FILE).stat().st_size
    assert bank.add([experience(1), experience(0, applied=7)]) == 0
    assert (tmp_path / FILE).stat().st_size == size
    assert len(bank) == 2


def test_layers_are_read_and_never_written(tmp_path: Path) -> None:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    Bank(shipped).add([experience(0)])
    before = {p.name: p.stat().st_mtime_ns for p in shipped.iterdir()}
    bank = Bank(own, [shipped])
    assert bank.add([experience(0), experience(1)]) == 1
    bank.used(experience(0), "trial", True)
    assert bank.search(BOTTLENECKS[0], 1)
    assert {p.name: p.stat().st_mtime_ns for p in shipped.iterdir()} == before
    assert len(read_records(own / FILE).experiences) == 1
    assert bank.get(experience(0).id).helped == 1


def test_counts_are_of_trials(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    e = experience(0)
    bank.add([e])
    for trial, helped in (("a", True), ("a", True), ("b", False), ("c", True)):
        bank.used(e, trial, helped)
    assert (bank.get(e.id).applied, bank.get(e.id).helped) == (3, 2)
    other = Bank(tmp_path / "other")
    for _ in range(2):
        other.merge(bank.records())
    assert (other.get(e.id).applied, other.get(e.id).helped) == (3, 2)


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_torn_last_line_is_ignored_and_cut_off(tmp_path: Path, cut: int) -> None:
    bank = Bank(tmp_path)
    bank.add([experience(0), experience(1)])
    path = tmp_path / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    left = {e.id for e in bank}  # without its line break alone, a line is still a record
    assert len(left) == (2 if cut == 1 else 1)
    bank.add([experience(2)])
    assert {e.id for e in bank} >= {experience(2).id}
    assert all(json.loads(line) for line in path.read_text().splitlines())
    bank.add([experience(0), experience(1)])
    assert len(bank) == 3


def test_an_altered_line_is_skipped_with_a_warning(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.add([experience(0), experience(1)])
    path = tmp_path / FILE
    path.write_text(path.read_text().replace("Title 1", "Title 9"))
    with pytest.warns(BankWarning, match=r"line \d: the line was altered"):
        assert [e.id for e in bank] == [experience(0).id]


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("hello\nworld\n")
    with pytest.raises(BankError, match="no experience bank"):
        read_records(path)
    assert not read_records(tmp_path / "missing").experiences


def test_files_put_behind_one_another_are_a_bank(tmp_path: Path) -> None:
    lines = [line_of(experience(n)) for n in (3, 1, 3, 2)]
    (tmp_path / FILE).write_text("\n\n".join(lines))
    assert {e.title for e in Bank(tmp_path)} == {"Title 1", "Title 2", "Title 3"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cant_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BankError, match="can't be written"):
        Bank(tmp_path / "bank").add([experience(0)])


# -- processes --------------------------------------------------------------------------------------------------------


def _add(root: str, numbers: list[int]) -> int:
    bank = Bank(Path(root))
    return sum(bank.add([experience(n)]) for n in numbers)


def test_two_processes_add_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is kept, nothing twice: the two write what the other one writes, too."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])]))
    jobs = [(str(tmp_path), list(range(0, 24))), (str(tmp_path), list(range(31, 7, -1)))]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        added = pool.starmap(_add, jobs)
    assert sum(added) == 32
    assert len((tmp_path / FILE).read_text().splitlines()) == 32
    assert {e.id for e in Bank(tmp_path)} == {experience(n).id for n in range(32)}


def test_a_bank_sees_what_another_one_added(tmp_path: Path) -> None:
    first, second = Bank(tmp_path), Bank(tmp_path)
    assert not first.search(BOTTLENECKS[1])
    second.add([experience(1)])
    assert [e.id for e, _ in first.search(BOTTLENECKS[1])] == [experience(1).id]


# -- search -----------------------------------------------------------------------------------------------------------


def test_search_finds_the_symptom(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.add(experience(n) for n in range(len(BOTTLENECKS)))
    queries = (
        "the queues have 1 buffer, so copies and computation don't overlap",
        "one by one, elements are read by the scalar unit",
        "the vector pipe waits for a bank, operands conflict",
        "cores are started and have little to do; launching takes most of the task",
    )
    for n, query in enumerate(queries):
        assert bank.search(query, 1)[0][0].motif == f"motif_{n}"


def test_search_is_the_same_every_time(tmp_path: Path) -> None:
    """With equal scores as well, in whatever order the experiences came, with an index from disk or a new one."""
    found = [experience(n) for n in range(12)]
    first, second = Bank(tmp_path / "a"), Bank(tmp_path / "b")
    first.add(found)
    for e in reversed(found):
        second.add([e])
    expected = [(e.id, score) for e, score in first.search(BOTTLENECKS[2], 12)]
    assert len({score for _, score in expected}) < 12
    assert [(e.id, s) for e, s in second.search(BOTTLENECKS[2], 12)] == expected
    assert [(e.id, s) for e, s in Bank(tmp_path / "a").search(BOTTLENECKS[2], 12)] == expected


def test_filters_and_one_per_motif(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.add(experience(n, chip=f"chip{n % 2}", kind="negative" if n == 8 else "positive") for n in range(9))
    assert {e.chip for e, _ in bank.search(BOTTLENECKS[0], 9, chip="chip1")} == {"chip1"}
    assert [e.title for e, _ in bank.search(BOTTLENECKS[0], 9, kind="negative")] == ["Title 8"]
    assert len(bank.search(BOTTLENECKS[0], 9)) == 8
    assert len(bank.search(BOTTLENECKS[0], 9, kind=None)) == 9
    motifs = [e.motif for e, _ in bank.search(BOTTLENECKS[0], 9, one_per_motif=True)]
    assert sorted(motifs) == [f"motif_{n}" for n in range(4)]
    assert motifs[0] == "motif_0"


def test_what_helped_before_comes_first(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    a, b = sorted((experience(0), experience(4)), key=lambda e: e.id)  # one text, so one score
    bank.add([a, b])
    assert [e.id for e, _ in bank.search(BOTTLENECKS[0])] == [a.id, b.id]
    bank.used(b, "t", True)
    assert [e.id for e, _ in bank.search(BOTTLENECKS[0])] == [b.id, a.id]
    for n in range(3):
        bank.used(b, f"u{n}", False)
    assert [e.id for e, _ in bank.search(BOTTLENECKS[0])] == [a.id, b.id]


@pytest.mark.parametrize("damage", ["delete", "truncate", "other", "sidecar"])
def test_the_index_is_rebuilt(tmp_path: Path, damage: str) -> None:
    bank = Bank(tmp_path)
    bank.add(experience(n) for n in range(4))
    expected = bank.search(BOTTLENECKS[3], 4)
    (vectors,), (sidecar,) = tmp_path.glob("index-*.faiss"), tmp_path.glob("index-*.json")
    if damage == "delete":
        vectors.unlink()
    elif damage == "truncate":
        vectors.write_bytes(vectors.read_bytes()[:100])
    elif damage == "other":
        vectors.write_bytes(b"x" * 5000)
    else:
        sidecar.write_text("{}")
    assert Bank(tmp_path).search(BOTTLENECKS[3], 4) == expected


class Counting(LocalEmbedder):
    """Learns nothing and counts what it embeds, as a model behind an endpoint would."""

    name = "counting"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def fit(self, texts: object) -> None:
        pass

    def embed(self, texts: object) -> Vectors:
        self.asked += texts  # type: ignore[operator]
        return super().embed(texts)  # type: ignore[arg-type]


def test_a_fixed_model_is_asked_about_new_texts_only(tmp_path: Path) -> None:
    first = Counting()
    bank = Bank(tmp_path, embedder=first)
    bank.add([experience(0), experience(1)])
    bank.index()
    assert sorted(first.asked) == sorted(BOTTLENECKS[:2])
    bank.add([experience(2)])
    bank.index()
    assert first.asked[2:] == [BOTTLENECKS[2]]
    second = Counting()
    Bank(tmp_path, embedder=second).index()
    assert second.asked == []


def test_get_needs_one_match(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.add(experience(n) for n in range(40))
    assert bank.get(experience(3).id[:20]) == experience(3)
    with pytest.raises(BankError, match="no experience's id"):
        bank.get("zz")
    with pytest.raises(BankError, match="several"):
        bank.get(next(p for p in "0123456789abcdef" if sum(e.id.startswith(p) for e in bank) > 1))


# -- embedding --------------------------------------------------------------------------------------------------------


def test_numbers_count_by_their_size() -> None:
    assert words("MTE2 is busy 87 %, 1234.5 us") == ["mte2", "is", "busy", "%80", "#3", "us"]
    assert words("83 %") == words("99 %") != words("20 %")


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_vectors_are_of_length_one_and_finite(texts: list[str]) -> None:
    embedder = LocalEmbedder()
    embedder.fit(texts)
    vectors = embedder.embed(texts)
    lengths = np.linalg.norm(vectors, axis=1)
    assert all(
        n == pytest.approx(1, abs=1e-5) or (n == 0 and not words(t)) for n, t in zip(lengths, texts, strict=True)
    )
    other = LocalEmbedder()
    other.restore(json.loads(json.dumps(embedder.state())))
    assert np.array_equal(other.embed(texts), vectors)


def test_a_vector_is_what_its_definition_says() -> None:
    """One number at a time: words, pairs and pieces, each by the root of its weight and how rare it is."""
    texts = ["scalar bound: GetValue 87 % of 1234.5 us, GetValue again", "waits for MTE2", "GetValue waits"]
    shown = []
    for text in texts:
        found, weights = words(text), defaultdict[str, float](float)
        for word in found:
            weights["w" + word] += 1.0
            padded = "" if word[0] in "%#" else f" {word} "
            for length in (4, 5):
                for start in range(len(padded) - length + 1):
                    weights["c" + padded[start : start + length]] += 0.15
        for pair in pairwise(found):
            weights["p" + " ".join(pair)] += 0.6
        shown.append(weights)
    wanted = np.zeros((3, 4096))
    for row, weights in zip(wanted, shown, strict=True):
        for thing, weight in weights.items():
            number, texts_with = zlib.crc32(thing.encode()), sum(thing in other for other in shown)
            rarity = math.log(4 / (1 + texts_with)) + 0.1
            row[(number >> 1) % 4096] += (-1 if number & 1 else 1) * math.sqrt(weight) * rarity
        row /= np.linalg.norm(row)
    embedder = LocalEmbedder()
    embedder.fit(texts)
    np.testing.assert_allclose(embedder.embed(texts), wanted, atol=1e-7)
