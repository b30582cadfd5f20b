"""The faiss index over a bank's bottleneck texts. It is derived: whatever is wrong with its file, it is made anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..files import MALFORMED, TEXT_BYTES, parse_json, read_plain, write_whole
from ..store.entry import canonical, sha256
from .embedding import Embedder, Vectors

_VECTOR_BYTES = 16 << 30


def _faiss() -> Any:
    import faiss  # half a second: for those who search only

    return faiss


class Index:
    """Inner-product index of ``texts`` (id -> text).

    A saved index of the same texts and embedder is loaded from ``folder``; vectors of an embedder that learned nothing
    from the other texts are taken over one by one, so an endpoint is asked about new texts only.

    Args:
        folder: where it is kept; None, or a folder that can't be written: in memory only.
    """

    def __init__(self, texts: Mapping[str, str], embedder: Embedder, folder: Path | None = None) -> None:
        self.ids = sorted(texts)
        self._embedder = embedder
        ordered = [texts[i] for i in self.ids]
        hashes = [sha256(t.encode()) for t in ordered]
        digest = sha256(canonical([embedder.name, self.ids, hashes]).encode())
        saved = _load(folder, embedder)
        if saved is not None and saved[1]["digest"] == digest:
            self._index, document = saved
            embedder.restore(document["state"])
            return
        embedder.fit(ordered)
        state = embedder.state()
        known = _known(saved, state)
        missing = [text for text, h in zip(ordered, hashes, strict=True) if h not in known]
        fresh = iter(embedder.embed(missing)) if missing else iter(())
        rows = [known[h] if h in known else next(fresh) for h in hashes]
        self._index = _faiss().IndexFlatIP(len(rows[0]) if rows else 1)
        if rows:
            self._index.add(np.stack(rows))
        _save(folder, embedder, self._index, {"digest": digest, "hashes": hashes, "state": state})

    def nearest(self, text: str) -> list[tuple[str, float]]:
        """All (id, inner product in [-1, 1]), the most alike first; equal ones in order of their ids."""
        if not self.ids:
            return []
        scores, positions = self._index.search(self._embedder.embed([text]), len(self.ids))
        found = [(self.ids[p], round(float(s), 6)) for s, p in zip(scores[0], positions[0], strict=True)]
        return sorted(found, key=lambda item: (-item[1], item[0]))

    def vectors(self) -> Vectors:
        """float32 [number of texts, dimensions], in order of ``ids``."""
        found: Vectors = self._index.reconstruct_n(0, len(self.ids))
        return found


def _files(folder: Path, embedder: Embedder) -> tuple[Path, Path]:
    name = sha256(embedder.name.encode())[:12]
    return folder / f"index-{name}.faiss", folder / f"index-{name}.json"


def _load(folder: Path | None, embedder: Embedder) -> tuple[Any, dict[str, Any]] | None:
    if folder is None:
        return None
    vectors, sidecar = _files(folder, embedder)
    try:
        document = parse_json(read_plain(sidecar, TEXT_BYTES))
        data = read_plain(vectors, _VECTOR_BYTES)
        if document["sha256"] != sha256(data):
            return None  # one of the two is from another moment
        index = _faiss().deserialize_index(np.frombuffer(data, dtype=np.uint8))
        whole = index.ntotal == len(document["hashes"]) and {"digest", "state"} <= document.keys()
    except (OSError, RuntimeError, *MALFORMED):
        return None
    return (index, document) if whole else None


def _known(saved: tuple[Any, dict[str, Any]] | None, state: Mapping[str, Any]) -> dict[str, Vectors]:
    """Vectors by text hash that another state of the bank left, where the embedder's state is the same."""
    if saved is None or saved[1]["state"] != state:
        return {}
    index, document = saved
    return {h: index.reconstruct(i) for i, h in enumerate(document["hashes"])}


def _save(folder: Path | None, embedder: Embedder, index: Any, document: dict[str, Any]) -> None:
    if folder is None:
        return
    data = _faiss().serialize_index(index).tobytes()
    vectors, sidecar = _files(folder, embedder)
    contents: Sequence[tuple[Path, bytes]] = [
        (vectors, data),
        (sidecar, canonical({**document, "sha256": sha256(data)}).encode()),
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in contents:
            write_whole(path, content)
    except OSError:
        return  # a folder that is read-only or full: the index is made anew next time
