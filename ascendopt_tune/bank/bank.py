"""The experience bank: JSON Lines files in layers, and a faiss index over what they say.

``<folder>/experience.jsonl`` is the truth: one line a record (experience.py), each with its own sha256, in any order,
so files of two banks may simply be put behind one another. The writable folder is asked together with read-only ones:
the user's cache layers and what ships with the project.

1. Adding appends under a file lock, flushed and synced; what is there already is not added again. A process that dies
   leaves at most a torn last line, which readers skip and the next writer cuts off.
2. A line that was altered is skipped with a warning that names it.
3. The index (index.py) is derived from the lines and rebuilt when they changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import paths
from ..errors import BankError, need
from ..files import TEXT_BYTES, locked, parse_json, read_plain
from ..search.kernel.motifs import MOTIFS
from ..settings import settings
from ..store.lines import append_lines
from . import worth
from .embedding import Embedder, LocalEmbedder, OpenAIEmbedder
from .experience import Experience, Use, line_of, newer, record_of
from .index import Index

FILE = "experience.jsonl"
_LOCK = "lock"
_OF_RULES = frozenset(m.name for m in MOTIFS)
PRIOR = 0.3  # of a score: what a motif can be expected to earn, whatever else a text says


class BankWarning(UserWarning):
    """A damaged line was skipped; the rest of the bank is used."""


@dataclass(frozen=True)
class Records:
    """Experiences by id and the uses of them: what a file, or several, come to. Merging is a union."""

    experiences: dict[str, Experience] = field(default_factory=dict)
    uses: frozenset[Use] = frozenset()

    def __or__(self, other: Records) -> Records:
        merged = dict(self.experiences)
        for name, e in other.experiences.items():
            merged[name] = newer(merged[name], e) if name in merged else e
        return Records(merged, self.uses | other.uses)

    def beyond(self, known: Records) -> Records:
        """What adding this to ``known`` changes."""
        merged = (known | self).experiences
        fresh = {i: e for i, e in self.experiences.items() if known.experiences.get(i) != merged[i] == e}
        return Records(fresh, self.uses - known.uses)

    def apart_from(self, run: str) -> Records:
        """What there is without what the tuning run of this name left."""
        mine = {i for i, e in self.experiences.items() if e.provenance.run == run}
        return Records(
            {i: e for i, e in self.experiences.items() if i not in mine},
            frozenset(u for u in self.uses if not u.trial.startswith(f"{run}/")),
        )

    def counted(self) -> dict[str, Experience]:
        """The experiences with ``applied`` and ``helped`` filled in."""
        applied: dict[str, dict[str, bool]] = {}
        for use in self.uses:
            trials = applied.setdefault(use.experience, {})
            trials[use.trial] = trials.get(use.trial, False) or use.helped
        return {
            i: replace(e, applied=len(applied[i]), helped=sum(applied[i].values())) if i in applied else e
            for i, e in sorted(self.experiences.items())
        }

    def lines(self) -> list[str]:
        """One spelling of the records: sorted lines."""
        found = [line_of(e) for e in self.experiences.values()] + [line_of(u) for u in self.uses]
        return sorted(found)


def read_records(path: Path) -> Records:
    """The records of a file (none if there is no file); damaged lines are skipped with a warning.

    Raises:
        BankError: the file can't be read, or no line of it is a record.
    """
    try:
        data = read_plain(path, TEXT_BYTES) if path.exists() else b""
    except OSError as error:
        raise BankError(f"the bank {path} can't be read: {error.strerror}.", "Check its permissions.") from error
    experiences: dict[str, Experience] = {}
    uses: set[Use] = set()
    failures: list[str] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = record_of(parse_json(line))
        except (ValueError, BankError) as error:
            if number == len(lines) > 1:
                break  # no line break: torn, or being written
            failures.append(f"line {number}: {error.message if isinstance(error, BankError) else 'no JSON'}")
            continue
        if isinstance(record, Use):
            uses.add(record)
        else:
            known = experiences.get(record.id)
            experiences[record.id] = newer(known, record) if known is not None else record
    if failures and not experiences and not uses:
        raise BankError(f"{path} is no experience bank ({failures[0]}).", "Give a file that `bank export` wrote.")
    for text in failures:
        warnings.warn(f"the bank {path} is damaged, {text} It is skipped.", BankWarning, stacklevel=2)
    return Records(experiences, frozenset(uses))


class Bank:
    """A writable folder and read-only ones.

    Iterating gives the experiences in order of their ids, with counts. What other processes add is seen.

    Args:
        root: the writable folder; made when something is added.
        layers: read-only folders of the same form.
        embedder: default: the local one.
        apart_from: a tuning run whose experience and uses are left out in reading.
        gains: what motifs earned where they were tried; default: what the folders' files say.
    """

    def __init__(
        self, root: Path, layers: Sequence[Path] = (), embedder: Embedder | None = None, apart_from: str = "",
        gains: Sequence[worth.MotifGain] | None = None,
    ) -> None:  # fmt: skip
        self.root, self.layers = root, tuple(layers)
        self._apart_from = apart_from
        self._embedder = embedder or LocalEmbedder()
        self._read: dict[Path, tuple[tuple[int, int, int] | None, Records]] = {}
        self._counted: dict[str, Experience] = {}
        self._stamp: object = None
        self._whole = True  # nothing is left out
        self._index: tuple[object, Index] | None = None
        self._gains = gains
        self._worth: worth.Worth | None = None

    @staticmethod
    def open(apart_from: str = "") -> Bank:
        """The user's bank: ``bank`` in the writable cache, above those of the cache layers and the shipped one.

        The embedder is that of ``ASCENDOPT_EMBEDDING_MODEL``, if it is set.
        """
        now = settings()
        embedder: Embedder = LocalEmbedder()
        if now.embedding_model is not None:
            what, local = "ASCENDOPT_EMBEDDING_MODEL", ", or unset it to use the local embedder"
            need("openai", "llm", what, or_else=local, kind=BankError)
            import openai  # seconds: only who asks a model pays for it

            try:
                client = openai.OpenAI(base_url=now.embedding_url or now.llm_base_url, api_key=now.llm_api_key)
            except openai.OpenAIError as error:
                raise BankError(
                    f"no client for the embedding model {now.embedding_model}: {error}.", "Set ASCENDOPT_LLM_API_KEY."
                ) from error
            embedder = OpenAIEmbedder(client, now.embedding_model)
        return Bank(paths.cache_dir() / "bank", [p / "bank" for p in paths.cache_layers()], embedder, apart_from)

    # -- reading ------------------------------------------------------------------------------------------------------

    def records(self) -> Records:
        """Everything, of all layers."""
        out = Records()
        for folder in (*self.layers, self.root):
            path = folder / FILE
            stamp = _stamp(path)
            if path not in self._read or self._read[path][0] != stamp:
                self._read[path] = (stamp, read_records(path))
            out = out | self._read[path][1]
        return out

    def _experiences(self) -> dict[str, Experience]:
        stamp = tuple(_stamp(folder / FILE) for folder in (*self.layers, self.root))
        if self._stamp != stamp:
            records = self.records()
            read = records.apart_from(self._apart_from) if self._apart_from else records
            self._counted, self._stamp = read.counted(), stamp
            self._whole = len(read.experiences) == len(records.experiences)
        return self._counted

    def __iter__(self) -> Iterator[Experience]:
        return iter(self._experiences().values())

    def __len__(self) -> int:
        return len(self._experiences())

    def get(self, name: str) -> Experience:
        """The experience whose id begins with ``name``.

        Raises:
            BankError: none or several do.
        """
        found = [e for i, e in self._experiences().items() if i.startswith(name)] if name else []
        if len(found) != 1:
            what = "several experiences' ids begin" if found else "no experience's id begins"
            raise BankError(f"{what} with {name!r}.", "`ascendopt-tune bank show` lists what there is.")
        return found[0]

    def search(
        self,
        text: str,
        k: int = 3,
        *,
        chip: str | None = None,
        dtype: str | None = None,
        target: str | None = None,
        kind: str | None = "positive",
        operator: str | None = None,
        one_per_motif: bool = False,
        places: Collection[str] | None = None,
    ) -> list[tuple[Experience, float]]:
        """The ``k`` experiences whose bottleneck is most like ``text``, the best first; scores are at most 1.1 + PRIOR.

        The order is the same whenever bank and text are. Experiences that were applied before move up or down by up to
        a tenth of their score, by how often they helped. Where ``places`` tells what could be done, what a motif earned
        where it was tried, with ``text``'s first bottleneck above all, adds up to PRIOR: without them it would speak
        for motifs that fit most kernels, whatever the text says. Filters: None means any.

        Args:
            one_per_motif: the best experience of each motif only (imports name no motif, and count as one each).
            places: motifs that have a place in the kernel that is asked for; experience of others is left out, except
                what names no motif of the rules.
        """
        wanted = {"chip": chip, "dtype": dtype, "target": target, "kind": kind, "operator": operator}
        experiences, expected, first = self._experiences(), self._expected(), worth.first_bottleneck(text)
        found: list[tuple[Experience, float]] = []
        for name, score in self.index().nearest(text):
            e = experiences[name]
            if places is not None and e.motif in _OF_RULES and e.motif not in places:
                continue
            if all(value is None or getattr(e, field) == value for field, value in wanted.items()):
                prior = PRIOR * expected.weight(e.motif, first) if places is not None else 0.0
                found.append((e, round(score * _trust(e) + prior, 6)))
        found.sort(key=lambda item: (-item[1], item[0].id))
        if one_per_motif:
            best: dict[str, tuple[Experience, float]] = {}
            for e, score in found:
                best.setdefault(e.motif or e.id, (e, score))
            found = list(best.values())
        return found[:k]

    def _expected(self) -> worth.Worth:
        """What motifs earned where they were tried on their own, by the files of all folders."""
        if self._worth is None:
            gains = self._gains
            if gains is None:
                gains = [g for folder in (*self.layers, self.root) for g in worth.read(folder / worth.FILE)]
            self._worth = worth.Worth(gains)
        return self._worth

    def index(self) -> Index:
        """The index over all bottleneck texts, in step with the files."""
        experiences = self._experiences()
        if self._index is None or self._index[0] != self._stamp:
            texts = {i: e.bottleneck for i, e in experiences.items()}
            self._index = (self._stamp, Index(texts, self._embedder, self.root if self._whole else None))
        return self._index[1]

    # -- writing ------------------------------------------------------------------------------------------------------

    def add(self, experiences: Iterable[Experience]) -> int:
        """Adds what the bank (all layers) doesn't have yet; returns how many were new.

        Raises:
            BankError: the folder can't be written.
        """
        made = {e.id: replace(e, applied=0, helped=0) for e in experiences}
        return len(self.merge(Records(made)).experiences)

    def used(self, experience: Experience, trial: str, helped: bool) -> None:
        """Records that ``trial`` applied the experience, and whether the result was faster. Raises as :meth:`add`."""
        self.merge(Records({}, frozenset({Use(experience.id, trial, helped)})))

    def merge(self, other: Records) -> Records:
        """Adds what ``other`` has beyond this bank, and returns that. Raises as :meth:`add`."""
        with self._locked():
            fresh = other.beyond(self.records())
            if fresh.experiences or fresh.uses:
                self._append(fresh.lines())
        return fresh

    def _append(self, lines: Sequence[str]) -> None:
        path = self.root / FILE
        try:
            append_lines(path, lines)
        except OSError as error:
            raise BankError(f"can't write {path}: {error.strerror}.", "Free space and try again.") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.root / _LOCK))
            except OSError as error:
                raise BankError(
                    f"the bank {self.root} can't be written: {error.strerror}.", "Point ASCENDOPT_CACHE_DIR elsewhere."
                ) from error
            yield


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _trust(e: Experience) -> float:
    """0.9 .. 1.1: the share of uses that helped, with one that helped and one that didn't added."""
    return 1.0 + 0.2 * ((e.helped + 1) / (e.applied + 2) - 0.5)
