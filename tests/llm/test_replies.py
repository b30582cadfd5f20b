"""Replies as models write them: what is read from them, and what is refused, with a reason the model can act on."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from chat_server import edit
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.llm.prompts import fenced
from ascendopt_tune.llm.replies import ReplyError, plain, read_change, read_fields, read_json, title_of

TILING = """\
#include "t.h"

constexpr int TILE = 2048;  // elements
constexpr int BUFFERS = 2;

int Tile(int ub) {
  int a = ub / TILE;
  return a * BUFFERS;
}
"""
HEADER = "struct Tiling {\n  int length;\n  int count;\n};\n"
FILES = {"op_host/t.cpp": TILING, "op_host/t.h": HEADER}
WANTED = TILING.replace("2048", "4096")
BLOCK = """\
<<<<<<< SEARCH
constexpr int TILE = 2048;  // elements
=======
constexpr int TILE = 4096;  // elements
>>>>>>> REPLACE
"""
LONGER = BLOCK.replace("<<<<<<<", "<<<<<<<<").replace("=======", "========")
SLOPPY = BLOCK.replace("2048;  // elements", "2048;  // elements   ")
DIFF = """\
--- a/op_host/t.cpp
+++ b/op_host/t.cpp
@@ -99,2 +99,2 @@ nonsense
-constexpr int TILE = 2048;  // elements
+constexpr int TILE = 4096;  // elements
 constexpr int BUFFERS = 2;
"""

# How it is written -> the reply. All of them say the same.
GOOD = {
    "blocks": f"CHANGE: larger tiles\n\nop_host/t.cpp\n{BLOCK}",
    "blocks in a fence": f"CHANGE: larger tiles\n\nop_host/t.cpp\n```cpp\n{BLOCK}```\n",
    "blocks, the name in the fence": f"**CHANGE:** larger tiles\n\n```cpp\nop_host/t.cpp\n{BLOCK}```\n",
    "blocks, the name behind the fence": f"CHANGE: larger tiles\n```cpp op_host/t.cpp\n{BLOCK}```",
    "blocks, a heading": f"# CHANGE: larger tiles\n### File: `op_host/t.cpp`\n{BLOCK}",
    "blocks, the short name": f"CHANGE: larger tiles\nt.cpp:\n{BLOCK}",
    "blocks without a name": f"CHANGE: larger tiles\n{BLOCK}",
    "blocks with blanks at the end": f"CHANGE: larger tiles\n{SLOPPY}",
    "blocks with other line ends": f"CHANGE: larger tiles\n{BLOCK}".replace("\n", "\r\n"),
    "blocks with longer markers": f"CHANGE: larger tiles\n{LONGER}",
    "a diff": f"CHANGE: larger tiles\n```diff\n{DIFF}```",
    "a bare diff": f"CHANGE: larger tiles\n\n{DIFF}",
    "a whole file": f"CHANGE: larger tiles\n\nop_host/t.cpp\n\n```cpp\n{WANTED}```\n",
    "a whole file, the name in bold": f"CHANGE: larger tiles\n**`op_host/t.cpp`**\n```\n{WANTED}```\nHope that helps!",
    "a whole file, the name in the fence": f"CHANGE: larger tiles\n```cpp:op_host/t.cpp\n{WANTED}```",
    "a whole file without a name": f"CHANGE: larger tiles\n```c++\n{WANTED}```",
    "a fence that is never closed": f"CHANGE: larger tiles\nop_host/t.cpp\n```cpp\n{WANTED}",
    "tildes": f"CHANGE: larger tiles\nop_host/t.cpp\n~~~cpp\n{WANTED}~~~",
    "a longer fence": f"CHANGE: larger tiles\nop_host/t.cpp\n````cpp\n{WANTED}````",
    "nothing but the file": WANTED,
    "thoughts before": f"<think>x.cpp?\n```\nint x;\n```</think>\nCHANGE: larger tiles\nop_host/t.cpp\n{BLOCK}",
    "a snippet beside the file": f"CHANGE: larger tiles\n```cpp\nint a;\n```\nop_host/t.cpp\n```cpp\n{WANTED}```",
    "an unchanged file as well": f"CHANGE: larger tiles\nt.h\n```\n{HEADER}```\nt.cpp\n```\n{WANTED}```",
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_reply_is_read_however_it_is_written(name: str) -> None:
    change = read_change(GOOD[name], FILES)
    assert change.files == {"op_host/t.cpp": WANTED}
    if name != "nothing but the file":
        assert change.title == "larger tiles"


def _block(search: str, replace: str = "int x;") -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def _edit(search: str, replace: str = "int x;") -> str:
    return f"op_host/t.cpp\n{_block(search, replace)}"


def test_several_edits_in_several_files() -> None:
    reply = _edit("constexpr int TILE = 2048;", "constexpr int TILE = 1024;")
    reply += _block("  return a * BUFFERS;", "  return a;") + "op_host/t.h\n" + _block("  int count;", "  int number;")
    change = read_change(reply, FILES)
    assert change.files["op_host/t.h"] == HEADER.replace("count", "number")
    assert change.files["op_host/t.cpp"] == TILING.replace("2048", "1024").replace("a * BUFFERS", "a")


def test_indentation_is_forgiven_and_kept() -> None:
    reply = (
        "<<<<<<< SEARCH\nint a = ub / TILE;\nreturn a * BUFFERS;\n=======\nif (ub) {\n  return 1;\n}\n>>>>>>> REPLACE\n"
    )
    text = read_change(reply, {"t.cpp": TILING}).files["t.cpp"]
    assert "int Tile(int ub) {\n  if (ub) {\n    return 1;\n  }\n}\n" in text


# The reply, and what the reason tells.
REFUSED = {
    "nothing": ("", "empty"),
    "thoughts only": ("<think>what a question", "empty"),
    "prose": ("I would double the tile length.", "neither a SEARCH/REPLACE block nor a whole file"),
    "no change": (f"op_host/t.cpp\n```cpp\n{TILING}```", "changes nothing"),
    "a file of the other stage": (f"op_kernel/k.cpp\n```cpp\n{WANTED}```", "op_kernel/k.cpp is not a file you may"),
    "the gate": (f"ascendopt_tune/evaluate/gate.py\n{BLOCK}", "gate.py is not a file you may change"),
    "a path upwards": (f"op_host/../../t.cpp\n{BLOCK}", "is not a file you may change"),
    "an absolute path": (f"```cpp\n/etc/passwd\n{BLOCK}```", "/etc/passwd is not a file you may change"),
    "a home folder": (f"~/.bashrc\n```\n{WANTED}```", "is not a file you may change"),
    "a diff of another file": (DIFF.replace("op_host/t.cpp", "setup.py"), "setup.py is not a file you may change"),
    "text that is not there": (_edit("constexpr int TILES = 7;"), "is not in op_host/t.cpp"),
    "text that is there twice": (_edit("constexpr int"), "at several places"),
    "no text": (_edit(""), "is empty"),
    "half a block": ("op_host/t.cpp\n<<<<<<< SEARCH\nint x;\n", "not complete"),
    "a block without an end": (BLOCK.replace(">>>>>>> REPLACE", ""), "not complete"),
    "broken syntax": (_edit("  return a * BUFFERS;\n}", "  return (a * BUFFERS;"), "would not parse"),
    "left out": ("op_host/t.cpp\n```cpp\n// ... rest of the code\nint f() { return 1; }\n```", "not whole"),
    "left out politely": ("t.cpp\n```cpp\nconstexpr int TILE = 4096;\n// (existing code)\n```", "not whole"),
    "huge": (_edit("constexpr int BUFFERS = 2;", "int x; " * 20_000), "the limit is 65536"),
    "a null character": (_edit("constexpr int BUFFERS = 2;", "int \x00x;"), "U+0000"),
    "half a character": (_edit("constexpr int BUFFERS = 2;", "// \ud800"), "U+D800"),
    "an escape sequence": (_edit("constexpr int BUFFERS = 2;", "// \x1b[2J"), "U+001B"),
    "something else's file": ("```python\nimport os\nos.system('rm -rf /')\n```", "neither"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_used_has_a_reason(name: str) -> None:
    reply, reason = REFUSED[name]
    with pytest.raises(ReplyError) as caught:
        read_change(reply, FILES)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 400


PIECES = "\n| |<think>|<<<<<<< SEARCH\n|```\n|CHANGE|*\n|// |@@ @@\n|=======\n|int x;\n|a|a/|#|TITLE"


@pytest.mark.parametrize("piece", PIECES.split("|"))
def test_no_text_takes_long(piece: str) -> None:
    """A reply of many equal pieces is read in time that grows with its length only."""
    text = (piece * (200_000 // len(piece))) + "\n"
    for more in ("", "+++ op_host/t.cpp\n", "op_host/t.cpp\n```cpp\n"):
        started = time.process_time()
        with pytest.raises(ReplyError):
            read_change(more + text, FILES)
        with pytest.raises(ReplyError):
            read_fields(more + text, ("TITLE",))
        assert time.process_time() - started < 5


def test_a_file_that_was_shown_in_part_is_not_replaced() -> None:
    with pytest.raises(ReplyError, match="a part of"):
        read_change(f"op_host/t.cpp\n```cpp\n{WANTED}```", FILES, frozenset(["op_host/t.cpp"]))
    assert read_change(GOOD["blocks"], FILES, frozenset(["op_host/t.cpp"])).files == {"op_host/t.cpp": WANTED}


ALL = [*GOOD.values(), *(reply for reply, _ in REFUSED.values())]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300) | st.lists(st.sampled_from(ALL), max_size=3).map("\n".join))
def test_any_text_gives_a_change_of_the_offered_files_or_a_reason(text: str) -> None:
    try:
        change = read_change(text, FILES)
    except ReplyError:
        return
    assert change.files
    assert change.files.keys() <= FILES.keys()
    assert all(new != FILES[path] and new.encode() for path, new in change.files.items())
    assert change.title.isprintable()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("CHANGE: one\nCHANGE: two", "one"),
        ("change: **bold** `code`", "bold** `code"),
        ("CHANGE: \x1b[31mred\x07 [link](x)", "[31mred [link](x)"),
        ("I doubled the tile.\nAnd more.", "I doubled the tile."),
        ("```cpp\nint x;\n```\nDone as asked.", "Done as asked."),
        ("CHANGE: " + "x" * 400, "x" * 157 + "..."),
        ("", "rewritten"),
    ],
)
def test_the_title_is_one_printable_line(text: str, title: str) -> None:
    assert title_of(text) == title


@pytest.mark.parametrize(
    ("reply", "document"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Sure:\n{"a": {"b": 2}}\nBye', {"a": {"b": 2}}),
        ('<think>{}</think>{"a": 3}', {"a": 3}),
    ],
)
def test_json_is_found(reply: str, document: Mapping[str, object]) -> None:
    assert read_json(reply) == document
    with pytest.raises(ReplyError, match="no JSON object"):
        read_json("[1, 2]")


def test_fields_are_found() -> None:
    reply = "Here it is.\n**TITLE:** Two buffers\nDESCRIPTION: first line\nsecond line\n\n"
    reply += "BOTTLENECK: waits\n```cpp\nTITLE: no\n```"
    assert read_fields(reply, ("TITLE", "DESCRIPTION", "BOTTLENECK")) == {
        "title": "Two buffers",
        "description": "first line second line",
        "bottleneck": "waits",
    }
    with pytest.raises(ReplyError, match="`PRECONDITIONS"):
        read_fields(reply, ("TITLE", "PRECONDITIONS"))


@given(st.text(alphabet="`~\nabc", max_size=60))
def test_a_fence_can_not_be_closed_from_inside(text: str) -> None:
    lines = fenced(text).split("\n")
    assert lines[0] == lines[-1]
    assert not any(line.startswith(lines[0]) for line in lines[1:-1])
    assert plain(text, 20).isprintable()


def test_blocks_and_a_whole_file_in_one_reply() -> None:
    files = {"op_host/a.cpp": "int a = 1;\nint b = 2;\n", "op_kernel/a.cpp": "int c = 3;\nint d = 4;\n"}
    reply = (
        edit("op_host/a.cpp", "int a = 1;", "int a = 5;") + "\nop_kernel/a.cpp\n```cpp\nint c = 6;\nint d = 4;\n```\n"
    )
    assert read_change(reply, files).files == {
        "op_host/a.cpp": "int a = 5;\nint b = 2;\n",
        "op_kernel/a.cpp": "int c = 6;\nint d = 4;\n",
    }
    with pytest.raises(ReplyError, match="a part of op_kernel"):
        read_change(reply, files, frozenset(("op_kernel/a.cpp",)))
    quoted = edit("op_host/a.cpp", "int a = 1;", "int a = 5;") + "\nas in op_host/a.cpp\n```cpp\nint a = 5;\n```\n"
    assert read_change(quoted, files).files.keys() == {"op_host/a.cpp"}
