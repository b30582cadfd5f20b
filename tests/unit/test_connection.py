"""What is owed is answered, however the evaluation server ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from ascendopt_tune.errors import Lost
from ascendopt_tune.evaluate import protocol
from ascendopt_tune.evaluate.connection import Connection

_HELLO = protocol.dumps({"id": -1, "value": {"pid": 1, "torch": False}})
_PLAYED = """
import sys
sys.stdin.buffer.readline()
sys.stdout.buffer.write({hello!r} + b"\\n")
sys.stdout.buffer.flush()
sys.stdin.buffer.readline()
sys.stdout.buffer.write({answer!r})
sys.stdout.buffer.flush()
"""


class Played(Connection):
    """A connection to a process that says hello, hears one request, writes ``answer`` and ends."""

    answer = b""

    def _launch(self) -> tuple[IO[bytes], IO[bytes]]:
        code = _PLAYED.format(hello=_HELLO, answer=self.answer)
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout


@pytest.mark.parametrize("answer", [b"", b'{"id": 0, "val'], ids=["nothing", "half a line"])
def test_a_server_that_ends_in_the_middle_of_an_answer(answer: bytes, tmp_path: Path) -> None:
    connection = Played({}, tmp_path)
    connection.answer = answer
    connection.start()
    with pytest.raises(Lost, match="the evaluation server ended"):
        connection.ask("evaluate").result(timeout=60)
    assert not connection.alive
    connection.close()


def test_a_whole_answer_is_a_result(tmp_path: Path) -> None:
    connection = Played({}, tmp_path)
    connection.answer = protocol.dumps({"id": 0, "value": 7}) + b"\n"
    connection.start()
    assert connection.ask("evaluate").result(timeout=60) == 7
    connection.close()
