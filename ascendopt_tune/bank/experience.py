"""Experience: what one optimization was worth on one kernel, with the evidence; and Use: what became of it elsewhere.

An experience is a fact: its ``id`` names what was changed where (motif, diff, operator, case, chip, target), so the
same rewind gives the same id on any machine, whatever texts and numbers a later version attaches to it. Two records of
one id are one experience; :func:`newer` picks the one to keep, in the same way whichever comes first.

Uses are facts, too, one per trial, so the counts *applied* and *helped* are the same however often and in whatever
order banks are merged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from ..errors import BankError
from ..nouns.profile import Profile
from ..store.entry import canonical, restore, sha256

SCHEMA = 1
KINDS = ("positive", "negative")
_ID = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ExperienceProvenance:
    """Where an experience is from.

    ``source``: ``rewind``, ``refinement`` (a search tried it) or ``import``. ``command`` measures it again (empty for
    imports). ``version`` is ascendopt_tune's, ``toolkit`` the toolkit's that measured. ``run`` names the tuning run
    of a refinement (its key's hash).
    """

    source: str = "rewind"
    command: str = ""
    seed: int = 0
    version: str = ""
    toolkit: str = ""
    run: str = ""


@dataclass(frozen=True)
class Experience:
    """One optimization, from the slow kernel to the fast one.

    ``bottleneck`` is the retrieval key: what the slow kernel's profile and code show, in plain words; it never names
    the motif. ``diff`` is a unified diff slow -> fast of all files that differ. ``before`` and ``after`` are the
    profiles of the slow and the fast kernel (times in us of the target's clock, modelled for ``virtual``); None where
    nobody measured. ``site`` is the place in the kernel, as the motif names places. ``case`` is the text of the Case,
    ``dtype`` its first input's, ``regime`` how large and how aligned it is (distill.py).
    ``kind``: ``positive`` (fast is faster beyond noise) or ``negative``: it was tried or measured and did not help;
    ``reason`` says why. ``applied`` and ``helped`` count its uses since; they are no part of the record.
    """

    motif: str
    title: str
    description: str
    bottleneck: str
    diff: str
    before: Profile | None = None
    after: Profile | None = None
    preconditions: str = ""
    site: str = ""
    operator: str = ""
    case: str = ""
    dtype: str = ""
    regime: str = ""
    chip: str = ""
    target: str = ""
    kind: str = "positive"
    reason: str = ""
    provenance: ExperienceProvenance = field(default_factory=ExperienceProvenance)
    applied: int = 0
    helped: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BankError(f"an experience can't be of kind {self.kind!r}.", f"Kinds: {', '.join(KINDS)}.")

    @cached_property
    def id(self) -> str:
        """sha256, 64 hex digits, of what was changed where; imports without a place are named by their texts."""
        what = [self.motif, self.site, self.kind, self.operator, self.case, self.chip, self.target, self.diff]
        texts = [self.title, self.description] if not self.operator else []
        return sha256(canonical([*what, *texts]).encode())

    @property
    def speedup(self) -> float | None:
        """Task duration before over after; None where it wasn't measured."""
        if self.before is None or self.after is None or not self.after.task_duration_us:
            return None
        return self.before.task_duration_us / self.after.task_duration_us

    @property
    def validated(self) -> bool:
        """Both kernels passed the gate and were measured, and a command measures them again."""
        return self.kind == "positive" and self.speedup is not None and bool(self.provenance.command)

    def to_json(self) -> dict[str, Any]:
        """The record with its id and counts; :meth:`from_json` is the inverse."""
        document = asdict(replace(self, before=None, after=None))
        profiles = {"before": self.before, "after": self.after}
        document |= {name: _profile_json(profile) if profile else None for name, profile in profiles.items()}
        return {"id": self.id, **document}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Experience:
        """Raises BankError when a field is missing, unknown or of another type, or the id is not its content's."""
        try:
            values = {k: v for k, v in document.items() if k != "id"}
            values |= {n: Profile.from_json(values[n]) if values[n] is not None else None for n in ("before", "after")}
            values["provenance"] = ExperienceProvenance(**values["provenance"])
            made = Experience(**values)
        except (KeyError, TypeError, AttributeError) as error:
            raise BankError(f"an experience's record can't be read: {error!r}.") from error
        _check_types(made)
        if document.get("id", made.id) != made.id:
            raise BankError(f"experience {str(document['id'])[:12]} was altered: its content is {made.id[:12]}'s.")
        return made


@dataclass(frozen=True)
class Use:
    """One trial that applied an experience. ``trial`` names it, ``run/pair's hash``, so it counts once."""

    experience: str
    trial: str
    helped: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Use:
        """Raises BankError for anything else than a use."""
        try:
            use = Use(**document)
        except TypeError as error:
            raise BankError(f"a use's record can't be read: {error!r}.") from error
        if not (isinstance(use.experience, str) and _ID.fullmatch(use.experience)):
            raise BankError("a use names no experience.")
        if not isinstance(use.trial, str) or not isinstance(use.helped, bool):
            raise BankError("a use's record has a field of another type.")
        return use


def newer(a: Experience, b: Experience) -> Experience:
    """Of two records of one id the one to keep: the later version's, else the one whose text sorts last."""
    return max(a, b, key=lambda e: (_version(e.provenance.version), canonical(e.to_json())))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text))


def _profile_json(profile: Profile) -> dict[str, Any]:
    document = {k: v for k, v in asdict(profile).items() if k != "modelled" or v is not None}
    return {**document, "counters": dict(profile.counters)}


def _check_types(e: Experience) -> None:
    for name in (f.name for f in fields(Experience) if f.type == "str"):
        if not isinstance(getattr(e, name), str):
            raise BankError(f"an experience's {name} is no text.")
    for profile in (e.before, e.after):
        if profile is not None and not all(isinstance(v, (int, float)) for v in _numbers(profile)):
            raise BankError("an experience's profile holds something that is no number.")
    if not all(isinstance(n, int) and n >= 0 for n in (e.applied, e.helped)):
        raise BankError("an experience's counts are no counts.")


def _numbers(profile: Profile) -> list[object]:
    document = asdict(profile)
    counters = document.pop("counters")
    document.pop("modelled")
    modelled = _numbers(profile.modelled) if profile.modelled is not None else []
    return [*modelled, *document.values(), *(counters.values() if isinstance(counters, Mapping) else [counters])]


def line_of(record: Experience | Use) -> str:
    """The record as one line of a bank's file, without line break; the counts are not in it."""
    what = "use" if isinstance(record, Use) else "experience"
    body = record.to_json() if isinstance(record, Use) else replace(record, applied=0, helped=0).to_json()
    if isinstance(record, Experience):
        del body["applied"], body["helped"]
    text = canonical(body)
    return canonical({"schema": SCHEMA, what: body, "sha256": sha256(text.encode())})


def record_of(document: Any) -> Experience | Use:
    """The record of a parsed line.

    Raises:
        BankError: not a bank's line, from a newer version, or altered.
    """
    if not isinstance(document, dict) or "schema" not in document:
        raise BankError("the line is no record of a bank.")
    if document["schema"] != SCHEMA:
        raise BankError(
            f"the line has schema {document['schema']}, this version reads {SCHEMA}.", "Use the version it is from."
        )
    for what, read in (("experience", Experience.from_json), ("use", Use.from_json)):
        if what in document:
            body = document[what]
            if not isinstance(body, dict) or sha256(canonical(body).encode()) != document.get("sha256"):
                raise BankError("the line was altered: its sha256 is another one.")
            return read(restore(body))
    raise BankError("the line holds neither an experience nor a use.")
