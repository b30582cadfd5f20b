"""From a model's reply to changed files: leniently read, strictly checked.

Models answer in several ways, whatever they are asked for. Read are, in this order of preference,
1. SEARCH/REPLACE blocks (``<<<<<<< SEARCH``, ``=======``, ``>>>>>>> REPLACE``) under the name of a file,
2. unified diffs (line numbers are ignored, a hunk is found by its lines),
3. fenced blocks with a whole file, named before, behind or inside the fence, or recognised by its lines,
4. a whole file with nothing around it.

Whatever is read can only change files that were offered; it must parse as well as before, stay within bounds, and
change something. Everything else is a :class:`ReplyError` whose text tells the model what to do better.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..sources.cpp import breaks_syntax
from .listings import notice_of

_LEAST_BYTES, _GROWTH, _MOST_BYTES = 64 << 10, 4, 1 << 20  # a file may grow to the larger of the first two
_SIMILAR = 0.3  # share of its lines that a whole file without a name has in common with the file it is
_SNIPPET = 0.5  # of the original's lines: a nameless block that is shorter is a piece, not the file
_TITLE = 160  # characters
_LINE = 400  # characters of a line in which a file's name is looked for
_CANDIDATES = 8  # nameless blocks that are looked at, the longest

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\n`]*)$")
_SEARCH, _DIVIDER, _END = (re.compile(t) for t in (r"<{5,9} *SEARCH\b", r"={5,9}\s*$", r">{5,9} *REPLACE\b"))
_MARKER = re.compile(r"^(<{5,9} *SEARCH|>{5,9} *REPLACE)", re.MULTILINE)
_HUNK = re.compile(r"^@@.*@@", re.MULTILINE)
_PATH = re.compile(r"[\w.~+-]*(?:[/\\][\w.~+-]+)*\.[A-Za-z]\w{0,4}\b|(?:~|\.{1,2})?/[\w./~+-]+")
_HEADER = re.compile(
    r"^(?:[\s#*`>-]|//)*(?:(?:file|path|filename)\s*[:=]\s*)?[*`\"']*(?P<path>[^\s*`\"':]+)[*`\"']*:?[\s*`]*$", re.I
)
_ELIDED = re.compile(
    r"^[ \t]*(?://|/\*)[ \t]*(?:\.{3}|…|\W*(?:(?:the )?rest of|remaining|existing|other) (?:the )?"
    r"(?:code|file|function|implementation)|(?:same|unchanged|as before|omitted)\b)[^\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_CHANGE = re.compile(r"^[ \t*#`-]*CHANGE[*` ]*:[*` ]*(\S[^\n]*)$", re.MULTILINE | re.IGNORECASE)
_PASS = re.compile(r"[*`]*PASS[*`]*\b[:. \t-]*([^\n]*)")
_EXPERIENCE = re.compile(r"^[ \t*#`-]*EXPERIENCE[*` ]*:[*` #]*(\d{1,3})\b", re.MULTILINE | re.IGNORECASE)
_THINK, _UNTHINK = (re.compile(t, re.IGNORECASE) for t in (r"<think(?:ing)?>", r"</think(?:ing)?>"))


class ReplyError(ValueError):
    """A reply that can't be used; the text is written for the model that gave it."""


@dataclass(frozen=True)
class ProposedChange:
    """``files``: the changed files with their whole new text; none: the model passes.

    ``title``: the change in one line. ``experience``: which of those listed was used, from 1.
    """

    files: Mapping[str, str]
    title: str
    experience: int | None = None


@dataclass(frozen=True)
class _Fenced:
    info: str
    before: str  # the nearest line before it that isn't empty
    text: str


def read_change(reply: str, files: Mapping[str, str], cut: frozenset[str] = frozenset()) -> ProposedChange:
    """The change that ``reply`` makes to ``files`` (path -> text): the files that were offered, and no others.

    Args:
        cut: files of which the model saw a part only; they can be edited, not replaced.

    Raises:
        ReplyError: it makes none that may be used; the text says why.
    """
    text = _without_thinking(reply).replace("\r\n", "\n")
    if not text.strip():
        raise ReplyError("The reply is empty.")
    if _MARKER.search(text):
        changed = _with_whole_files(text, files, _by_blocks(text, files), cut)
    elif any(f.info.startswith("diff") for f in _fences(text)) or (_HUNK.search(text) and "\n+++ " in f"\n{text}"):
        changed = _by_diff(text, files)
    else:
        changed = _by_files(text, files, cut)
    changed = {path: new for path, new in changed.items() if new != files[path]}
    _check(changed, files)
    return ProposedChange(changed, title_of(text))


def passed(reply: str) -> str | None:
    """Why the model proposes nothing, where it says so (``PASS: reason`` in front, and no change); else None."""
    text = _without_thinking(reply).strip()
    found = _PASS.match(text)
    if found is None or _MARKER.search(text) or _fences(text):
        return None
    return plain(found.group(1), _TITLE) or "no reason given"


def has_blocks(reply: str) -> bool:
    """Whether the reply has SEARCH/REPLACE blocks."""
    return _MARKER.search(_without_thinking(reply)) is not None


def experience_used(reply: str, count: int) -> int | None:
    """The number, from 1, that ``EXPERIENCE:`` names of ``count`` listed ones; None for none of them."""
    found = _EXPERIENCE.search(_without_thinking(reply))
    number = int(found.group(1)) if found else 0
    return number if 1 <= number <= count else None


def read_fields(reply: str, names: Sequence[str]) -> dict[str, str]:
    """``NAME: text`` lines of a reply, by name in lower case; a text goes on until the next such line or a fence.

    Raises:
        ReplyError: one of ``names`` is missing or empty.
    """
    text = _without_thinking(reply)
    start = rf"^[ \t*#>-]*({'|'.join(names)})[*` ]*:[*` ]*"
    end = rf"{start.replace('(', '(?:')}|^[ \t*#>-]*(?-i:[A-Z]{{4,}})[*` ]*:|^[ \t]*(?:```|~~~)|^<{{5,9}} *SEARCH|\Z"
    pattern = re.compile(rf"{start}(.*?)(?={end})", re.MULTILINE | re.DOTALL | re.IGNORECASE)
    found: dict[str, str] = {}
    for key, value in pattern.findall(text):
        found.setdefault(key.lower(), plain(value, 2000))
    for name in names:
        if not found.get(name.lower()):
            raise ReplyError(f"The line `{name}: ...` is missing.")
    return found


def read_json(reply: str) -> dict[str, Any]:
    """The JSON object in a reply, fenced or not.

    Raises:
        ReplyError: there is none.
    """
    text = _without_thinking(reply)
    for candidate in [*(f.text for f in _fences(text)), text]:
        try:
            document, _ = json.JSONDecoder().raw_decode(candidate, max(0, candidate.find("{")))
        except ValueError:
            continue
        if isinstance(document, dict):
            return document
    raise ReplyError("There is no JSON object in the reply.")


def read_program(reply: str) -> str:
    """The one Python program of a reply: its longest fenced block, or the reply where it has none; empty: ``NOTHING``.

    Raises:
        ReplyError: there is no program, or it holds characters that no source file has.
    """
    text = _without_thinking(reply)
    fences = [f.text for f in _fences(text) if f.text.strip()]
    program = max(fences, key=len) if fences else text
    if not fences and text.strip().strip("`.* ").upper() == "NOTHING":
        return ""
    if "@" not in program or "def " not in program:
        raise ReplyError("There is no program in the reply: answer with one fenced block that holds the whole of it.")
    if len(program) > _LEAST_BYTES:
        raise ReplyError(f"The program has {len(program)} characters; the limit is {_LEAST_BYTES}.")
    if bad := _unprintable(program):
        raise ReplyError(f"The program contains the character U+{ord(bad):04X}.")
    return program


def title_of(reply: str) -> str:
    """One line about the change: what stands behind ``CHANGE:``, else the first line of prose."""
    found = _CHANGE.search(reply)
    if found:
        return plain(found.group(1), _TITLE)
    fenced = False
    for line in reply.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and re.match(r"[\s*#-]*\w+ \w+", line) and not _MARKER.match(line):
            return plain(line, _TITLE)
    return "rewritten"


def plain(text: str, length: int) -> str:
    """One line of printable text without Markdown's marks, at most ``length`` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).strip("*#`- ")
    return line if len(line) <= length else line[: length - 3].rstrip() + "..."


# -- reading ----------------------------------------------------------------------------------------------------------


def _without_thinking(reply: str) -> str:
    """The reply without ``<think>...</think>``; thoughts that don't end are the whole rest.

    Raises:
        ReplyError: the reply is too long to be looked at.
    """
    if len(reply) > _MOST_BYTES:
        raise ReplyError(f"The reply has {len(reply)} characters; the limit is {_MOST_BYTES}.")
    parts, at = [], 0
    while (opened := _THINK.search(reply, at)) is not None:
        parts.append(reply[at : opened.start()])
        closed = _UNTHINK.search(reply, opened.end())
        at = closed.end() if closed else len(reply)
    return "".join([*parts, reply[at:]])


def _fences(text: str) -> list[_Fenced]:
    """Fenced blocks; one that is never closed goes to the end."""
    out: list[_Fenced] = []
    before, fence, info, lines = "", "", "", list[str]()
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line.rstrip("\n"))
        if fence:
            if found and found.group(1).startswith(fence) and not found.group(2).strip():
                out.append(_Fenced(info, before, "".join(lines)))
                fence, before = "", ""
            else:
                lines.append(line)
        elif found:
            fence, info, lines = found.group(1), found.group(2).strip(), []
        elif line.strip():
            before = line.strip()
    if fence:
        out.append(_Fenced(info, before, "".join(lines)))
    return out


def _known(name: str, files: Mapping[str, str]) -> str | None:
    """The offered file that ``name`` means: its path, or the end of exactly one."""
    name = name.strip().replace("\\", "/").removeprefix("./")
    for prefix in ("a/", "b/"):  # of diffs
        if name.removeprefix(prefix) in files:
            return name.removeprefix(prefix)
    if name in files:
        return name
    if "/" in name and (name.startswith(("/", "~")) or ".." in PurePosixPath(name).parts):
        return None
    ends = [p for p in files if p.endswith(f"/{name}")]
    return ends[0] if len(ends) == 1 else None


def _named(line: str, files: Mapping[str, str]) -> str | None:
    """The file a line names. A line that is nothing but the name of another file is refused.

    Raises:
        ReplyError: it names a file that was not offered.
    """
    line = line[:_LINE]
    for found in _PATH.finditer(line):
        if (path := _known(found.group(), files)) is not None:
            return path
    whole = _HEADER.match(line)
    if whole and _PATH.fullmatch(whole["path"]):
        raise ReplyError(
            f"{plain(whole['path'], 80)} is not a file you may change. You may change: {', '.join(files)}."
        )
    return None


@dataclass(frozen=True)
class _Block:
    head: tuple[str, ...]  # the last lines before it that aren't empty
    search: str
    replace: str


def _blocks(text: str) -> list[_Block]:
    """The SEARCH/REPLACE blocks. Line by line: no text takes more than its length.

    Raises:
        ReplyError: a marker is missing.
    """
    out: list[_Block] = []
    head: list[str] = []
    search: list[str] = []
    replace: list[str] = []
    state = "outside"
    for line in text.splitlines(keepends=True):
        if state == "outside" and _SEARCH.match(line):
            state, search, replace = "search", [], []
        elif state == "search" and _DIVIDER.match(line):
            state = "replace"
        elif state == "replace" and _END.match(line):
            out.append(_Block(tuple(head[-3:]), "".join(search), "".join(replace)))
            state, head = "outside", []
        elif _SEARCH.match(line) or _END.match(line):
            state = "broken"
            break
        elif state == "outside":
            head += [line.rstrip("\n")] if line.strip() else []
        else:
            (search if state == "search" else replace).append(line)
    if state != "outside":
        raise ReplyError(
            "A SEARCH/REPLACE block is not complete: <<<<<<< SEARCH, the old lines, =======, the new lines, "
            ">>>>>>> REPLACE, each marker on a line of its own."
        )
    return out


def _by_blocks(text: str, files: Mapping[str, str]) -> dict[str, str]:
    out, path = dict(files), None
    for block in _blocks(text):
        named = next((p for line in reversed(block.head) if (p := _named(_unfenced(line), files)) is not None), None)
        path = named or path or _only_file_with(block.search, out)
        out[path] = _replace(out[path], block.search, block.replace, path)
    return out


def _with_whole_files(
    text: str, files: Mapping[str, str], edited: Mapping[str, str], cut: frozenset[str]
) -> dict[str, str]:
    """``edited``, and the whole files that the same reply gives of what it doesn't edit."""
    rest = [f for f in _fences(text) if not _MARKER.search(f.text)]
    named = [
        (f, _known(_unfenced(f"```{f.info}").strip(), files) or _known(f.before.strip(" *`#:"), files)) for f in rest
    ]
    whole = "".join(
        f"{path}\n~~~~~~\n{f.text}~~~~~~\n" for f, path in named if path is not None and edited[path] == files[path]
    )
    return {**edited, **_by_files(whole, files, cut)} if whole else dict(edited)


def _unfenced(line: str) -> str:
    """A fence's info without the name of its language: ``cpp op_host/x.cpp`` -> ``op_host/x.cpp``."""
    found = _FENCE.match(line)
    return re.sub(r"^(?:cpp|c\+\+|c|cc|text|plaintext)\b[\s:]*", "", found.group(2)) if found else line


def _only_file_with(search: str, files: Mapping[str, str]) -> str:
    if len(files) == 1:
        return next(iter(files))
    having = [path for path, text in files.items() if search.strip() and search.strip() in text]
    if len(having) != 1:
        raise ReplyError(f"Write the name of the file above each SEARCH/REPLACE block: one of {', '.join(files)}.")
    return having[0]


def _replace(text: str, search: str, replace: str, path: str) -> str:
    """``text`` with the one place that reads ``search`` replaced.

    Differences in white space at the ends of lines, then in indentation, are forgiven; at last a part of a line counts.
    """
    if not search.strip():
        raise ReplyError(f"A SEARCH part for {path} is empty: give the lines to replace.")
    if text.count(search) == 1:
        return text.replace(search, replace)
    lines, wanted = text.splitlines(keepends=True), search.splitlines()
    for strip in (str.rstrip, str.strip):
        places = [
            i
            for i in range(len(lines) - len(wanted) + 1)
            if all(strip(lines[i + k]) == strip(w) for k, w in enumerate(wanted))
        ]
        if len(places) > 1:
            break
        if places:
            at = places[0]
            new = replace if strip is str.rstrip else _indented(replace, wanted, lines[at : at + len(wanted)])
            return "".join(lines[:at]) + new + "".join(lines[at + len(wanted) :])
    piece = search.strip()
    if text.count(piece) == 1:
        return text.replace(piece, replace.strip())
    first = plain(next(line for line in wanted if line.strip()), 100)
    if len(places) > 1 or piece in text:
        raise ReplyError(f"The SEARCH part that begins with `{first}` fits {path} at several places: add lines to it.")
    raise ReplyError(f"The SEARCH part that begins with `{first}` is not in {path}: copy the lines as they are there.")


def _indented(replace: str, wanted: Sequence[str], found: Sequence[str]) -> str:
    """``replace`` moved by the difference in indentation between what was looked for and what was found."""

    def depth(lines: Sequence[str]) -> int:
        return min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)

    shift = depth(found) - depth(wanted)
    if shift >= 0:
        return "".join(" " * shift + line if line.strip() else line for line in replace.splitlines(keepends=True))
    return re.sub(rf"^ {{0,{-shift}}}", "", replace, flags=re.MULTILINE)


def _by_diff(text: str, files: Mapping[str, str]) -> dict[str, str]:
    diffs = [f.text for f in _fences(text) if f.info.startswith("diff") or _HUNK.search(f.text)] or [text]
    out, path = dict(files), None
    for diff in diffs:
        old: list[str] = []
        new: list[str] = []

        def flush(path: str | None, old: list[str], new: list[str]) -> None:
            if old != new:
                search = "".join(old)
                place = path or _only_file_with(search, out)
                out[place] = _replace(out[place], search, "".join(new), place)
            old.clear()
            new.clear()

        for line in diff.splitlines(keepends=True):
            if line.startswith(("--- ", "diff ", "index ")):
                flush(path, old, new)
            elif line.startswith("+++ "):
                flush(path, old, new)
                path = _named(line[4:].split("\t")[0], files)
            elif line.startswith("@@"):
                flush(path, old, new)
            elif line.startswith("-"):
                old.append(line[1:])
            elif line.startswith("+"):
                new.append(line[1:])
            elif not line.startswith("\\"):
                old.append(line.removeprefix(" "))
                new.append(line.removeprefix(" "))
        flush(path, old, new)
    return out


def _by_files(text: str, files: Mapping[str, str], cut: frozenset[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    nameless: list[str] = []
    for fenced in _fences(text):
        first = fenced.text.split("\n", 1)[0][:_LINE]
        path = _named(_unfenced(f"```{fenced.info}"), files) or _named(fenced.before, files)
        if path is None and (alone := _HEADER.match(first)):
            path = _known(alone["path"], files)
        if path is None:
            nameless.append(fenced.text)
        elif len(fenced.text) > len(out.get(path, "")):
            out[path] = fenced.text
    if not out and not nameless and re.search(r"^[ \t]*#[ \t]*include\b", text, re.MULTILINE):
        nameless = [text[re.search(r"^[ \t]*(?:#|//|/\*)", text, re.MULTILINE).start() :]]  # type: ignore[union-attr]
    for block in sorted(nameless, key=len, reverse=True)[:_CANDIDATES]:
        path = _most_like(block, files)
        if path is not None and path not in out:
            out[path] = block
    if not out:
        raise ReplyError("There is neither a SEARCH/REPLACE block nor a whole file in the reply.")
    for path, new in out.items():
        if (notice := notice_of(files[path])) and not notice_of(new):
            out[path] = notice + new.lstrip()  # files are shown without it
        if path in cut:
            raise ReplyError(f"You saw a part of {path} only: change it with SEARCH/REPLACE blocks.")
        for found in _ELIDED.finditer(new):
            if found.group() not in files[path]:
                line = plain(found.group(), 60)
                raise ReplyError(f"{path} is not whole (`{line}`): use SEARCH/REPLACE blocks, or give every line.")
    return out


def _most_like(block: str, files: Mapping[str, str]) -> str | None:
    """The file that ``block`` is a new version of, told by the lines they share; None if it is a piece or foreign."""
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    best: tuple[float, str] | None = None
    for path, text in sorted(files.items()):
        known = {line.strip() for line in text.splitlines()}
        share = sum(line in known for line in lines) / max(1, len(lines))
        whole = len(lines) >= _SNIPPET * sum(bool(line.strip()) for line in text.splitlines())
        if whole and share >= _SIMILAR and (best is None or share > best[0]):
            best = (share, path)
    return best[1] if best else None


# -- checking ---------------------------------------------------------------------------------------------------------


def _check(changed: Mapping[str, str], files: Mapping[str, str]) -> None:
    if not changed:
        raise ReplyError("The reply changes nothing.")
    for path, text in changed.items():
        limit = min(max(_LEAST_BYTES, _GROWTH * len(files[path])), _MOST_BYTES)
        if len(text) > limit:
            raise ReplyError(f"{path} would have {len(text)} characters; the limit is {limit}.")
        if bad := _unprintable(text):
            raise ReplyError(f"{path} would contain the character U+{ord(bad):04X}.")
    if breaks_syntax(files, {**files, **changed}):
        raise ReplyError(f"{', '.join(changed)} would not parse: check braces, parentheses and semicolons.")


def _unprintable(text: str) -> str | None:
    """A character no source file has: a control character, half of a character, or what stands for one."""
    for c in text:
        if (ord(c) < 32 and c not in "\n\t\f") or 0xD800 <= ord(c) <= 0xDFFF or ord(c) in (127, 0xFFFD):
            return c
    return None
