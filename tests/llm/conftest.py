"""A server and its clients, one of each per test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from chat_server import KEY, Server, handler

from ascendopt_tune.llm.client import Client, Meter
from ascendopt_tune.llm.endpoint import Endpoint, Prices


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on a free port of this machine, for one test."""
    told = Server()
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler(told))
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    told.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    yield told
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def no_key_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def make_client(server: Server) -> Iterator[Callable[..., Client]]:
    """A client of the server that never sleeps; ``waited`` of it are the seconds it would have."""
    made: list[Client] = []

    def make(
        seed: int = 0,
        usage: Meter | None = None,
        say: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> Client:
        options = {"base_url": server.url, "api_key": KEY, "prices": Prices(1.0, 10.0), "timeout_s": 5.0, **options}
        offline = options.pop("model_offline", "offline-model")
        waits: list[float] = []
        end = Endpoint("online-model", offline, **options)
        client = Client(end, seed=seed, usage=usage, say=say, wait=waits.append, clock=clock)
        client.waited = waits  # type: ignore[attr-defined]
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()
