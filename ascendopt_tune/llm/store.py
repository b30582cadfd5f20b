"""Every answer a model gave, by prompt: the same prompt has the same answer, in this run and in any later one.

A diskcache of JSON text below the cache folder. It holds prompts' hashes and answers, no key and no URL. Trouble with
it is a warning: a run goes on without.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diskcache

from .. import paths
from ..errors import CacheError
from ..store.cache import CacheWarning
from ..store.index import JsonDisk

_TROUBLE = (OSError, sqlite3.Error, diskcache.Timeout, ValueError, CacheError)
_WAIT_S = 10.0


class AnswerStore:
    """Answers as JSON documents, in ``folder`` (default: ``llm`` in the writable cache)."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or paths.cache_dir() / "llm"
        self._handle: Any = None
        self._warned = False

    def get(self, key: str) -> Any:
        """The document stored under ``key``, or None."""
        return self._try(lambda: self._open().get(key))

    def put(self, key: str, document: dict[str, object]) -> None:
        self._try(lambda: self._open().set(key, document))

    def close(self) -> None:
        """Closes the files; the object may be used on."""
        if self._handle is not None:
            self._handle.close()

    def _open(self) -> Any:
        if self._handle is None:
            # Nothing is evicted: an answer that went away would make a run another one.
            self._handle = diskcache.Cache(
                str(self.folder), timeout=_WAIT_S, eviction_policy="none", cull_limit=0, disk=JsonDisk
            )
        return self._handle

    def _try(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except _TROUBLE as error:
            if not self._warned:
                self._warned = True
                text = f"the store of answers {self.folder} can't be used: {error}. Answers are not kept."
                warnings.warn(text, CacheWarning, stacklevel=3)
            return None
