"""Embeddings of a model behind an endpoint that speaks OpenAI's protocol: here, one in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from bank_examples import BOTTLENECKS, experience

from ascendopt_tune.bank.bank import Bank
from ascendopt_tune.bank.embedding import OpenAIEmbedder
from ascendopt_tune.errors import BankError

WORDS = ("buffer", "scalar", "bank", "launch")


class Handler(BaseHTTPRequestHandler):
    """Counts words; what a test wants to go wrong is in the model's name."""

    def do_POST(self) -> None:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [[float(word in text.lower()) + 0.1 for word in WORDS] for text in body["input"]]
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)][::-1]
        if body["model"] == "short":
            data = data[1:]
        if body["model"] == "ragged":
            data[0]["embedding"] = [1.0]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        answer = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        payload = json.dumps(answer).encode()
        self.send_response(500 if body["model"] == "broken" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as made:
            yield made
        server.shutdown()


def test_a_bank_is_searched_with_the_models_vectors(client: openai.OpenAI, tmp_path: Path) -> None:
    bank = Bank(tmp_path, embedder=OpenAIEmbedder(client, "words"))
    bank.add(experience(n) for n in range(4))
    for n, word in enumerate(("buffer", "scalar", "bank", "launch")):
        assert bank.search(word, 1)[0][0].bottleneck == BOTTLENECKS[n]
    assert np.linalg.norm(bank.index().vectors(), axis=1) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("model", "reason"), [("broken", "failed"), ("short", "with 1 vectors"), ("ragged", "different lengths")]
)
def test_what_goes_wrong_is_said(model: str, reason: str, client: openai.OpenAI) -> None:
    with pytest.raises(BankError, match=reason):
        OpenAIEmbedder(client, model).embed(["a", "b"])
