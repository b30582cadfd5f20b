"""The proposers that ask a language model: for tiling programs (Stage I), for kernels (Stage II), for both at once.

1. What failed in this proposer's last batch is given back with its reason, to be repaired, at most ``REPAIRS`` times.
2. The rest of a batch are new questions: code, profile and diagnosis, history with reasons, retrieved experience, rules
   of the chip and of what may be changed. Each question of a batch has another focus; where kernels may change, the
   first one asks for a whole attempt: parts of a kernel that has little right are not worth mending one by one.
3. A reply that can't be read, or repeats what was tried, goes back to the model with the reason (llm/dialogue.py). A
   model that has no idea passes.

All are functions of the state: what they must remember stands in the moves of their trials, and the same prompt has
the same answer (llm/store.py). No answer, no proposal: the search goes on with the other proposers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..nouns.operator import Pair
from ..nouns.outcome import (
    CompileFailed,
    Crashed,
    Deadlock,
    Hazard,
    LaunchFailed,
    Outcome,
    OutOfBounds,
    Timed,
    WrongResult,
)
from ..nouns.trial import Move, Proposal, Trial
from ..search.kernel.motifs import MOTIFS, is_in
from ..search.kernel.reading.kernel_program import KernelProgram
from ..search.proposer import JOINT, SearchState
from ..search.tiling.marked import move_of_marks, on_template, start_of
from ..search.tiling.slice import synthesize
from . import facts
from .apis import api_facts
from .client import Asks, Prompt, estimate_tokens
from .dialogue import REPAIRS, converse
from .listings import Listing, changed_lines, deciding_lines, fields_first, listing, of_the_launch, tiling_first
from .prompts import make_prompt
from .replies import ProposedChange, ReplyError, experience_used, passed, plain, read_change
from .roles import Refinement, refine_template

# What a reason helps to repair, the most hopeful first. A candidate that takes too long has told nothing.
_REPAIRED: tuple[type[Outcome], ...] = (
    CompileFailed,
    LaunchFailed,
    Deadlock,
    OutOfBounds,
    Hazard,
    WrongResult,
    Crashed,
)
_TITLE = 200  # characters of a change's line
_LESSONS = 3
_REPEATED = 4  # answers in a row that change no launch, after which there are no more questions about an incumbent
_CHARACTERS = 4  # of code that goes for a token too many
_SHORTER = 4  # times that code is shortened: characters of a token vary
_LESSON_TEXT, _LESSON_DIFF = 700, 1000  # characters

TILING_FOCUS = (
    "Fine-tune parameters: number of blocks, tile length, number of buffers, shares of the Unified Buffer, alignment.",
    "Rewrite the logic: which axis is split, how the remainder is spread over blocks, how tails are handled, which "
    "tiling key is chosen.",
    "Look at the numbers of this case (shapes, bytes a core, cores) and choose what fits them exactly, whatever the "
    "program does for other shapes.",
    "Combine what helped in different trials into one program.",
)
KERNEL_WHOLE = (
    "Write the computation anew, as you would if there were no kernel yet: another layout in the Unified Buffer, other "
    "instructions, another algorithm of the same accuracy."
)
KERNEL_FOCUS = (
    "Remove what the diagnosis names as the bound.",
    "Let copies and computation overlap better: buffers per queue, order of copies and waits, fewer barriers.",
    "Issue fewer instructions: longer ones, fused ones, scalar work turned into vector work, invariants out of loops.",
    "Move fewer bytes or move them in larger copies: keep data in the Unified Buffer, join copies, align them.",
)

JOINT_WHOLE = (
    "Write both programs anew, as you would for this case if there were none yet: how data lies and is cut, what a "
    "core does in one turn, which instructions do it."
)
JOINT_FOCUS = (
    "Spread the work over more or fewer cores: the kernel takes its share by GetBlockIdx(), the tiling program says "
    "how many blocks there are and how long a share is.",
    "Cut the data otherwise: the tile, how many rows a core handles in one turn, and the buffers that go with them.",
    "Move work to the host: what is the same for all tiles and cores is computed once by the tiling program.",
    "Fit both programs to this case: what it never needs (tails, other types, other axes) goes, on both sides.",
)


class Lesson(Protocol):
    """What a retrieved experience has to tell (bank/experience.py's ``Experience`` is one)."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def bottleneck(self) -> str: ...
    @property
    def diff(self) -> str: ...
    @property
    def motif(self) -> str: ...


Retrieve = Callable[[SearchState, int], Sequence[Lesson]]  # what fits the incumbent's bottleneck, the best first


@dataclass(frozen=True)
class _Question:
    """One prompt of a batch. ``files``: what the answer may change, as it is now; ``make``: the pair with new ones.

    ``lessons``: the experience it lists, in order.
    """

    prompt: Prompt
    files: Mapping[str, str]
    cut: frozenset[str]
    make: Callable[[Mapping[str, str]], Pair]
    parent: int
    moves: tuple[Move, ...]
    prefix: str = ""
    lessons: tuple[Lesson, ...] = ()


class _LlmProposer(ABC):
    """What they share; ``_parts`` are the halves of the pair that may change, ``_title`` is what prompts call them."""

    stage: int
    _name: str
    _parts: tuple[str, ...]
    _title: str
    _other_title = ""
    _room = facts.CODE  # characters of what may be changed

    def __init__(self, client: Asks) -> None:
        self._client = client
        self.name = f"{self._name}-llm({plain(client.endpoint.model, 80)})"

    @property
    def _others(self) -> tuple[str, ...]:
        return tuple(part for part in ("tiling", "kernel") if part not in self._parts)

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        if self._repeats(state):
            return []
        batch = Move(f"{self.name}:batch", "batch", "set", len(state.seen))
        questions = self._repairs(state)[:n]
        questions += self._new(state, n - len(questions)) if len(questions) < n else []
        changes = converse(self._client, [q.prompt for q in questions], [self._reader(state, q) for q in questions])
        out: dict[str, Proposal] = {}
        for question, change in zip(questions, changes, strict=True):
            if change is not None and change.files:
                pair = question.make(change.files)
                title = plain(f"{question.prefix}{change.title}", _TITLE)
                moves = (*question.moves, *self._credited(state, question, change, pair), batch)
                out.setdefault(pair.hash, Proposal(pair, title, question.parent, moves))
        return list(out.values())

    def _repeats(self, state: SearchState) -> bool:
        """Whether the last answers about this incumbent all led to launches that were known: each costs a question."""
        children = (t for t in state.history if t.candidate.parent == state.incumbent.candidate.id)
        last = [t for t in children if t.candidate.proposer == self.name][-_REPEATED:]
        return len(last) == _REPEATED and all(t.duplicate_of is not None for t in last)

    @abstractmethod
    def _new(self, state: SearchState, n: int) -> list[_Question]:
        """Questions that ask for something new."""

    def _reader(self, state: SearchState, question: _Question) -> Callable[[str], ProposedChange]:
        def read(reply: str) -> ProposedChange:
            if (why := passed(reply)) is not None:
                return ProposedChange({}, why)
            change = read_change(reply, question.files, question.cut)
            change = replace(change, experience=experience_used(reply, len(question.lessons)))
            pair = question.make(change.files)
            if pair.hash in state.seen:
                twin = next((t for t in state.history if t.candidate.pair.hash == pair.hash), None)
                told = f" ({facts.one_line(twin, state.baseline.time_us)})" if twin is not None else ""
                raise ReplyError(f"Exactly this program was tried already{told}. Propose another change.")
            return change

        return read

    def _credited(
        self, state: SearchState, question: _Question, change: ProposedChange, pair: Pair
    ) -> tuple[Move, ...]:
        """The use of the experience that the model says it used, where the candidate shows its motif's change."""
        if change.experience is None:
            return ()
        lesson = question.lessons[change.experience - 1]
        before = next(t for t in state.history if t.candidate.id == question.parent).candidate.pair
        if any(m.name == lesson.motif for m in MOTIFS):
            old, new = (KernelProgram(p.kernel, p.tiling, state.chip, state.operator.auto_sync) for p in (before, pair))
            if not is_in(lesson.motif, old, new):
                return ()
        return (Move(f"experience:{lesson.id}", "experience", "set", question.parent),)

    def _repairs(self, state: SearchState) -> list[_Question]:
        """Questions about what failed in this proposer's last batch, what is easiest to repair first."""
        batches = [
            (move.value, trial)
            for trial in state.history
            if trial.candidate.proposer == self.name and trial.duplicate_of is None
            for move in trial.moves
            if move.family == "batch"
        ]
        last = max((number for number, _ in batches), default=None)
        failed = [t for number, t in batches if number == last and self._repairable(state, t)]
        return [self._repair(state, t) for t in sorted(failed, key=lambda t: _REPAIRED.index(type(t.outcome)))]

    def _repairable(self, state: SearchState, trial: Trial) -> bool:
        """Not after another stage has changed the other half: the repaired pair would be of yesterday."""
        failed, now = trial.candidate.pair, state.incumbent.candidate.pair
        same = all(getattr(failed, part) == getattr(now, part) for part in self._others)
        return same and type(trial.outcome) in _REPAIRED and _tries(trial) < REPAIRS

    def _repair(self, state: SearchState, trial: Trial) -> _Question:
        failed = trial.candidate.pair
        parent = next(t for t in state.history if t.candidate.id == trial.candidate.parent)
        before, now = self._whole(parent.candidate.pair), self._whole(failed)
        named = facts.places(trial, now)
        lines = {path: [*named.get(path, ()), *found] for path, found in changed_lines(before, now).items()}
        shown = self._shown(failed)
        first = [*sorted(lines, key=lambda path: (path not in named, path)), *self._first(state, failed)]

        def asked(room: int) -> tuple[list[Listing], Prompt]:
            code = listing(shown, [p for p in dict.fromkeys(first) if p in shown], room, lines)
            return code, make_prompt(
                "repair",
                **self._common(state, code, failed),
                part=self._title,
                other_part=self._other_title,
                idea=trial.candidate.change,
                diff=facts.shortened(facts.diff(before, now), facts.CONTEXT),
                failure=facts.failure(trial, state.operator),
            )

        code, prompt = _fitting(asked, facts.CODE)
        moves = tuple(m for m in trial.moves if m.family not in ("batch", "repair"))
        tried = Move(f"repair:{trial.candidate.id}", "repair", "set", _tries(trial) + 1)
        return self._question(
            prompt, code, failed, parent.candidate.id, (*moves, tried), f"{trial.candidate.change}; repaired: "
        )

    def _whole(self, pair: Pair) -> dict[str, str]:
        """All files that may change."""
        return {path: text for part in self._parts for path, text in getattr(pair, part).items()}

    def _code(self, state: SearchState, pair: Pair, room: int = 0) -> list[Listing]:
        """Those that are shown to be changed, what decides most first; of long ones what was changed so far."""
        files = self._shown(pair)
        lines = deciding_lines({path: text for path, text in files.items() if path in pair.kernel})
        for path, found in changed_lines(self._whole(state.baseline.candidate.pair), files).items():
            lines[path] = sorted({*lines.get(path, ()), *found})
        return listing(files, self._first(state, pair), room or self._room, lines)

    def _shown(self, pair: Pair) -> dict[str, str]:
        """Files that may be shown to be changed: not those that only define the operator or its shapes."""
        halves = {"tiling": of_the_launch(pair.tiling), "kernel": pair.kernel}
        return {path: text for part in self._parts for path, text in halves[part].items()}

    def _first(self, state: SearchState, pair: Pair) -> list[str]:
        return [path for part in self._parts for path in _first(state, pair, part)]

    def _question(
        self, prompt: Prompt, code: Sequence[Listing], pair: Pair, parent: int, moves: tuple[Move, ...],
        prefix: str = "", lessons: Sequence[Lesson] = (),
    ) -> _Question:  # fmt: skip
        whole = self._whole(pair)

        def make(files: Mapping[str, str]) -> Pair:
            now = {**whole, **files}
            return replace(pair, **{part: {p: now[p] for p in getattr(pair, part)} for part in self._parts})

        offered = {f.path: whole[f.path] for f in code}
        cut = frozenset(f.path for f in code if f.cut)
        return _Question(prompt, offered, cut, make, parent, moves, prefix, tuple(lessons))

    def _common(self, state: SearchState, code: Sequence[Listing], pair: Pair) -> dict[str, Any]:
        """The values every prompt needs. ``code`` may be changed; the other half of ``pair`` is for reading."""
        others = [f for part in self._others for f in _context(state, pair, part)]
        kind = facts.kind_of_cores(state)
        signatures, near = api_facts(pair.kernel.values(), kind)
        return {
            "chip": facts.chip_facts(state.chip),
            "kind": kind,
            "files": [f.path for f in code],
            "operator": state.operator.name,
            "signature": state.signature.to_text() if state.signature is not None else "",
            "case": str(state.case),
            "checks": facts.checks(state.operator, state.case),
            "sync": facts.synchronization(state.operator),
            "code": code,
            "other": others,
            "signatures": signatures if "kernel" in self._parts else [],
            "near": near if "kernel" in self._parts else [],
            "costs": facts.instruction_costs(state.chip),
            "blocks": state.operator.direct.block_dim if state.operator.direct is not None else 0,
        }

    def _fresh(
        self, state: SearchState, name: str, focus: str, more: Mapping[str, object], moves: tuple[Move, ...] = (),
        lessons: Sequence[Lesson] = (), pair: Pair | None = None,
    ) -> _Question:  # fmt: skip
        """A question about the incumbent; ``pair``: as it is shown and changed."""
        best = state.incumbent
        assert isinstance(best.outcome, Timed)
        pair = pair or best.candidate.pair
        profile = facts.profile_facts(best.outcome.profile, state.chip)

        def asked(room: int) -> tuple[list[Listing], Prompt]:
            code = self._code(state, pair, room)
            return code, make_prompt(
                name,
                **self._common(state, code, pair),
                number=best.candidate.id,
                profile=profile,
                history=facts.history(state),
                inspirations=facts.inspirations(state, self._whole),
                focus=focus,
                **more,
            )

        code, prompt = _fitting(asked, self._room)
        return self._question(prompt, code, pair, best.candidate.id, moves, lessons=lessons)


class LlmTiling(_LlmProposer):
    """Stage I: the model mutates the incumbent's tiling program."""

    stage = 1
    _name, _parts = "tiling", ("tiling",)
    _title, _other_title = "tiling program", "kernel"

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        """The marked template first: it repeats a known launch, so it costs nothing, and is in the history then.

        Nothing is asked where there is none (a kernel with a launcher of its own), or about a kernel that does the same
        whatever it decides.
        """
        best = state.incumbent.candidate.pair
        if not best.tiling or not facts.reads_tiling(best.kernel.values()):
            return []
        found, first = self._refinement(state), start_of(state).candidate
        if found.marked and (pair := replace(first.pair, tiling=found.marked)).hash not in state.seen:
            title = plain(f"marked: {', '.join(found.knobs)}", _TITLE)
            return [Proposal(pair, title, first.id, (move_of_marks(found.knobs),))]
        return super().propose(state, n)

    def _new(self, state: SearchState, n: int) -> list[_Question]:
        best = state.incumbent.candidate.pair
        pair = replace(best, tiling=on_template(state, best.tiling))
        refinement = self._refinement(state)
        template = refinement.apply(synthesize(pair.tiling))
        shown = (f.path for f in self._code(state, pair))
        more = {"sites": facts.sites(template, shown), "notes": refinement.notes}
        focus = state.rng(self.name).sample(TILING_FOCUS, len(TILING_FOCUS))
        return [self._fresh(state, "mutate_tiling", focus[i % len(focus)], more, pair=pair) for i in range(n)]

    def _refinement(self, state: SearchState) -> Refinement:
        """Template synthesis by the offline model: one question a run, about the program that the stage begins with."""
        first, launch = start_of(state).candidate, state.launch
        name = launch(first) if launch is not None else None

        def same(files: Mapping[str, str]) -> bool:
            return launch is not None and launch(replace(first, pair=replace(first.pair, tiling=files))) == name

        return refine_template(self._client, state.operator, first.pair, state.case, state.chip, same if name else None)


class LlmJoint(_LlmProposer):
    """The model changes both programs of the incumbent in one candidate."""

    stage = JOINT
    _name, _parts = "joint", ("tiling", "kernel")
    _title = "tiling program and kernel"
    _room = facts.CODE + 2_000  # nothing else is shown

    def _new(self, state: SearchState, n: int) -> list[_Question]:
        pair = state.incumbent.candidate.pair
        shown = {f.path for f in self._code(state, pair) if not f.cut}
        if not shown.intersection(pair.tiling) or not shown.intersection(pair.kernel):
            return []  # a kernel for direct launch, or one half leaves no room for the other
        focus = [JOINT_WHOLE, *state.rng(self.name).sample(JOINT_FOCUS, len(JOINT_FOCUS))]
        return [self._fresh(state, "change_both", focus[i % len(focus)], {}) for i in range(n)]


class LlmKernel(_LlmProposer):
    """Stage II: the model rewrites the incumbent's kernel, with experience found for its bottleneck."""

    stage = 2
    _name, _parts = "kernel", ("kernel",)
    _title, _other_title = "kernel", "tiling program"

    def __init__(self, client: Asks, retrieve: Retrieve | None = None) -> None:
        super().__init__(client)
        self._retrieve = retrieve

    def _new(self, state: SearchState, n: int) -> list[_Question]:
        lessons = self._lessons(state)
        focus = [KERNEL_WHOLE, *state.rng(self.name).sample(KERNEL_FOCUS, len(KERNEL_FOCUS))]
        more = {"lessons": [_told(lesson) for lesson in lessons]}
        out = []
        for i in range(n):
            text, moves = focus[i % len(focus)], tuple[Move, ...]()
            if i < len(lessons):
                title = plain(lessons[i].title, 100)
                text = f'Apply experience {i + 1}, "{title}", if it fits this kernel; if not: {text}'
                moves = (_offered(lessons[i], state),)
            out.append(self._fresh(state, "refine_kernel", text, more, moves, lessons))
        return out

    def _lessons(self, state: SearchState) -> list[Lesson]:
        """The most fitting experience that was not offered for this kernel yet."""
        if self._retrieve is None:
            return []
        children = (t for t in state.history if t.candidate.parent == state.incumbent.candidate.id)
        offered = {m.site for t in children for m in t.moves if m.family == "offered"}
        found = self._retrieve(state, _LESSONS + len(offered))
        return [x for x in found if _offered(x, state).site not in offered][:_LESSONS]


def _fitting(asked: Callable[[int], tuple[list[Listing], Prompt]], room: int) -> tuple[list[Listing], Prompt]:
    """The prompt with as much room for code as keeps it below the limit; all else in it has limits of its own."""
    code, prompt = asked(room)
    for _ in range(_SHORTER):
        over = sum(estimate_tokens(message.text) for message in prompt) - facts.TOKENS
        if over <= 0:
            break
        shown = sum(len(listed.text) for listed in code)  # may be less than there is room for
        room = max(room // 2, min(room, shown) - over * _CHARACTERS)
        code, prompt = asked(room)
    return code, prompt


def _first(state: SearchState, pair: Pair, part: str) -> list[str]:
    """The files of that half that decide most."""
    return facts.kernel_first(state.operator) if part == "kernel" else tiling_first(pair.tiling)


def _context(state: SearchState, pair: Pair, part: str) -> list[Listing]:
    """The other half, to read: the fields of the tiling data, what fills or reads them, the beginning."""
    files, first = getattr(pair, part), _first(state, pair, part)
    first = fields_first(files, first) if part == "tiling" else first
    return listing(files, first, facts.CONTEXT, deciding_lines(files))


def _offered(lesson: Lesson, state: SearchState) -> Move:
    return Move(f"offered:{lesson.id}", "offered", "set", state.incumbent.candidate.id)


def _told(lesson: Lesson) -> dict[str, str]:
    text = f"{lesson.description}\nBottleneck: {lesson.bottleneck}"
    return {
        "title": plain(lesson.title, 100),
        "text": facts.shortened(text, _LESSON_TEXT),
        "diff": facts.shortened(lesson.diff, _LESSON_DIFF),
    }


def _tries(trial: Trial) -> int:
    """How often the idea of this trial was repaired before."""
    return max((int(m.value) for m in trial.moves if m.family == "repair"), default=0)
