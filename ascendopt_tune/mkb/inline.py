"""A program of several files as the one text that MultiKernelBench has a place for, with the names that it wants."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*\n?', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*\n?", re.MULTILINE)
_WORD_OR_SKIP = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|[A-Za-z_]\w*", re.DOTALL
)  # comments and literals first


def inlined(main: str, files: Mapping[str, str], kept: Mapping[str, str]) -> str:
    """The text of file ``main`` with the headers among ``files`` in place of their first include.

    Args:
        kept: headers that stay an include -> by which name.
    """
    seen: set[str] = set()

    def text_of(path: str) -> str:
        def include(found: re.Match[str]) -> str:
            target = _target(path, found[1], files)
            if target is None:
                return found[0]
            if target in seen:
                return ""
            seen.add(target)
            if target in kept:
                return f'#include "{kept[target]}"\n'
            return _ONCE.sub("", text_of(target)).rstrip("\n") + "\n"

        return _INCLUDE.sub(include, files[path])

    return text_of(main)


def includes(path: str, text: str, files: Mapping[str, str]) -> list[str]:
    """Which of ``files`` the file at ``path`` includes."""
    found = (_target(path, name, files) for name in _INCLUDE.findall(text))
    return [target for target in found if target is not None]


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with identifiers replaced, outside of comments and literals."""
    return _WORD_OR_SKIP.sub(lambda word: names.get(word[0], word[0]), text)


def _target(path: str, name: str, files: Mapping[str, str]) -> str | None:
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    if beside in files:
        return beside
    return next((p for p in files if p == name or p.endswith("/" + name)), None)
