"""A real HTTP server that speaks the chat-completions protocol, and answers as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from ascendopt_tune.llm.client import Message, estimate_tokens

KEY = "sk-very-secret-1234567890"


@dataclass(frozen=True)
class Reply:
    """What the server does with one request. ``body`` (bytes) goes out as it is; else ``text`` as a completion.

    ``trickle_s``: pause after each piece of the body. ``cut``: the connection ends in the middle of the body.
    """

    text: str = ""
    status: int = 200
    finish: str = "stop"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    usage: object = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120})
    stream: bool | None = None  # None: as the request asks
    wait_s: float = 0.0
    trickle_s: float = 0.0
    cut: bool = False


@dataclass
class Server:
    """``requests``: bodies as they came. ``answer``: a list that is used up, or a function of the messages.

    ``tokens``: of the questions that were answered and of their answers, estimated from their texts.
    """

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    answer: Sequence[Reply | str] | Callable[[list[Message]], Reply | str] = ()
    tokens: int = 0

    def next(self, request: dict[str, Any]) -> Reply:
        number = len(self.requests)
        self.requests.append(request)
        if callable(self.answer):
            found = self.answer([Message(m["role"], m["content"]) for m in request["messages"]])
        else:
            found = self.answer[number] if number < len(self.answer) else Reply(status=500, text="no reply is left")
        reply = Reply(found) if isinstance(found, str) else found
        if reply.status == 200:
            self.tokens += sum(estimate_tokens(m["content"]) for m in request["messages"]) + estimate_tokens(reply.text)
        return reply


def _completion(reply: Reply, request: Mapping[str, Any]) -> bytes:
    if reply.status != 200:
        return json.dumps({"error": {"message": reply.text, "type": "test"}}).encode()
    choice = {"index": 0, "message": {"role": "assistant", "content": reply.text}, "finish_reason": reply.finish}
    document = {"id": "1", "object": "chat.completion", "created": 1, "model": request["model"], "choices": [choice]}
    return json.dumps({**document, "usage": reply.usage}).encode()


def _stream(reply: Reply, request: Mapping[str, Any]) -> bytes:
    def chunk(delta: Mapping[str, str], finish: str | None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
        return "data: " + json.dumps({**head, "choices": [choice], **more}) + "\n\n"

    pieces = [reply.text[i : i + 7] for i in range(0, len(reply.text), 7)]
    out = [": keep-alive\n\n", chunk({"role": "assistant", "content": ""}, None)]
    out += [chunk({"content": piece}, None) for piece in pieces]
    out.append(chunk({}, reply.finish))
    if request.get("stream_options", {}).get("include_usage"):
        out.append("data: " + json.dumps({"choices": [], "usage": reply.usage}) + "\n\n")
    return ("".join(out) + "data: [DONE]\n\n").encode()


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.headers.append({k.lower(): v for k, v in self.headers.items()})
            reply = server.next(request)
            streamed = bool(request.get("stream")) if reply.stream is None else reply.stream
            streamed = streamed and reply.status == 200
            body = reply.body or (_stream if streamed else _completion)(reply, request)
            time.sleep(reply.wait_s)
            try:
                self.send_response(reply.status)
                self.send_header("content-type", "text/event-stream" if streamed else "application/json")
                self.send_header("content-length", str(len(body)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if reply.cut:
                    self.wfile.write(body[: len(body) // 2])
                    self.close_connection = True
                    return
                step = max(1, len(body) // 50) if reply.trickle_s else len(body) or 1
                for i in range(0, len(body), step):
                    self.wfile.write(body[i : i + step])
                    self.wfile.flush()
                    time.sleep(reply.trickle_s)
            except OSError:  # the client has enough
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


class Transcript:
    """Replays a conversation: each (mark, reply) answers the first question whose last message contains the mark.

    Questions may come in any order, several at a time; what no line answers gets ``otherwise``.
    """

    def __init__(self, *lines: tuple[str, Reply | str], otherwise: Reply | str = "I have no idea.") -> None:
        self.left = list(lines)
        self._otherwise = otherwise
        self._lock = threading.Lock()

    def __call__(self, messages: list[Message]) -> Reply | str:
        with self._lock:
            for i, (mark, reply) in enumerate(self.left):
                if mark in messages[-1].text:
                    del self.left[i]
                    return reply
        return self._otherwise


def edit(path: str, search: str, replace: str, change: str = "a change") -> str:
    """A reply in the form that is asked for."""
    return f"CHANGE: {change}\n\n{path}\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"
