"""OpenEvolve with a recorded model behind it, with as many tokens as the search had.

``python tests/llm/record_openevolve.py NAME`` replays ``conversations/openevolve/NAME.txt`` and writes its figures. A
question without a reply it writes to ``build/openevolve``, and waits until the reply is in the file.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from multiprocessing.connection import Listener
from pathlib import Path

from chat_server import Reply, Server, handler
from recorded import FOLDER, OPENEVOLVE, Recording, Replay, asked_of

from ascendopt_tune.bench import openevolve_worker
from ascendopt_tune.bench.peers import _questions, _say_when_ended
from ascendopt_tune.bench.run import Run
from ascendopt_tune.bench.sizes import MEDIUM
from ascendopt_tune.bench.subject import Subject
from ascendopt_tune.bench.table import BenchOperator
from ascendopt_tune.llm import facts
from ascendopt_tune.llm.client import Message, estimate_tokens
from ascendopt_tune.nouns.clocks import Interval, interval
from ascendopt_tune.nouns.history import History
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.acceptance import accept

CHIP = "ascend910b2"  # the default chip, of the other recordings too
_MOST = 1000  # evaluations; the tokens end it
_CURRENT = "# Current Program\n```cpp\n"


class Questions(Replay):
    """A question is named by the program it shows: the n-th about a program has the n-th reply about it."""

    def heading(self, messages: list[Message]) -> str:
        shown = messages[1].text.rpartition(_CURRENT)[2].partition("\n```\n")[0]
        name = hashlib.sha256(shown.encode()).hexdigest()[:8]
        self._count[name] += 1
        return f"program {name} #{self._count[name]}"


@dataclass(frozen=True)
class Evolved:
    """What came of it. ``failed``: how many of the evaluations did not pass the gate."""

    speedup: float
    interval: Interval | None
    evaluations: int
    failed: int
    tokens: int


class _Entry(BenchOperator):
    """An operator of the recordings as the benchmark takes them."""

    def load(self) -> Operator:
        return Recording.read(FOLDER / f"{self.path}.txt").load()


def system_message(subject: Subject) -> str:
    """What somebody who uses OpenEvolve tells it of the task."""
    operator = subject.operator
    reference = (operator.root / "reference.py").read_text(encoding="utf-8").strip()
    return Path(__file__).with_name("openevolve_system.md").read_text(encoding="utf-8").format(
        **facts.chip_facts(subject.chip) | {"name": operator.name}, case=subject.case, chip=subject.chip.name,
        summary=operator.settings["summary"], reference=reference,
        checks=facts.checks(operator, subject.case), synchronization=facts.synchronization(operator),
    )  # fmt: skip


def worth(run: Run, text: str) -> tuple[float, dict[str, str]]:
    """Score and artifacts of a program: the profile without the diagnosis, or why it failed."""
    try:
        pair = openevolve_worker.pair_in(text)
    except ValueError:
        return 0.0, {"failure": "The lines //@tiling PATH, //@kernel PATH and //@end are not there any more."}
    trial = run.attempt(pair, "OpenEvolve")
    if isinstance(trial.outcome, Timed):
        assert run.baseline.time_us is not None
        profile = trial.outcome.profile
        told = facts.profile_facts(profile, run.subject.chip).partition("\ndiagnosis:")[0]
        return run.baseline.time_us / profile.task_duration_us, {"profile": told}
    return 0.0, {"failure": facts.failure(trial, run.subject.operator)}


def evolve(told: Recording, tokens: int, questions: Questions, server: Server, results: Path) -> Evolved:
    """Runs OpenEvolve until the next question would take more tokens than these, as the search's own client reckons."""
    entry = _Entry(told.operator, MEDIUM, 1, "", told.case, root="registry")
    with Subject(entry, results, CHIP) as subject, tempfile.TemporaryDirectory(prefix="openevolve-") as name:
        folder, key = Path(name), os.urandom(16)
        run = Run(subject, 0, _MOST)
        (folder / "pair.cpp").write_text(openevolve_worker.text_of(subject.operator.baseline))
        (folder / "system.md").write_text(system_message(subject), encoding="utf-8")
        with Listener(str(folder / "socket"), "AF_UNIX", authkey=key) as listener:
            arguments = [str(folder / "pair.cpp"), server.url, str(folder / "system.md")]
            ours = {openevolve_worker.ADDRESS: str(listener.address), openevolve_worker.KEY: key.hex()}
            with (folder / "log").open("w") as log:
                process = subprocess.Popen(
                    [sys.executable, str(Path(__file__).with_name("openevolve_process.py")), *arguments],
                    env=os.environ | ours | {"PYTHONHASHSEED": "0", "NO_PROXY": "127.0.0.1"},
                    stdout=log, stderr=log, cwd=folder, start_new_session=True,
                )  # fmt: skip

            def end() -> None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

            def answer(messages: list[Message]) -> Reply | str:
                if server.tokens + sum(estimate_tokens(m.text) for m in messages) >= tokens:
                    end()
                    return Reply(status=400, text="all tokens are spent")
                return questions(messages)

            server.answer = answer
            threading.Thread(target=_say_when_ended, args=(process, str(listener.address), key), daemon=True).start()
            try:
                for connection, (_, text) in _questions(listener):
                    connection.send(worth(run, text))
            finally:
                end()
                process.wait()
        assert server.requests, (folder / "log").read_text()[-4000:]
        print((folder / "log").read_text()[-4000:], file=sys.stderr)
        history = History(run.history)
        evaluated = history.evaluated
        accepted = accept(evaluated[1:], evaluated[0], subject, "virtual")
        best = accepted.winner[0] if accepted.winner is not None else evaluated[0]
        assert run.baseline.time_us is not None
        assert best.time_us is not None
        return Evolved(
            run.baseline.time_us / best.time_us, interval(accepted.speedups) if accepted.winner else None,
            len(evaluated), sum(t.time_us is None for t in evaluated), server.tokens,
        )  # fmt: skip


def again(name: str, server: Server, results: Path) -> None:
    ours, path = Recording.read(FOLDER / f"{name}.txt"), OPENEVOLVE / f"{name}.txt"
    if not path.exists():
        head = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()[:2]
        path.write_text("\n".join([*head, "evaluations = 0", "speedup = 1.0", "tokens = 0"]) + "\n", encoding="utf-8")

    def say(text: str) -> None:
        print(f"{name}: {server.tokens} of {ours.limit} tokens; {text}", flush=True)

    ask = asked_of(path, results / f"{name}.md", say)
    questions = Questions(Recording.read(path), ask)
    found = evolve(ours, ours.limit, questions, server, results)
    text = path.read_text(encoding="utf-8")
    figures = {"evaluations": found.evaluations, "speedup": f"{found.speedup:.4f}", "tokens": found.tokens}
    for key, value in figures.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")
    print(f"{name}: {found.speedup:.2f}x ({found.interval}), modelled;", end=" ")
    print(f"{found.tokens} tokens of {ours.limit}; {found.evaluations} evaluations, {found.failed} failed;", end=" ")
    print(f"{len(questions.left)} replies aren't asked for", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", help="of conversations/tuning")
    parser.add_argument("--results", type=Path, default=Path("build/openevolve"), help="evaluations are kept here")
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    for name in given.names:
        server = Server()
        http = ThreadingHTTPServer(("127.0.0.1", 0), handler(server))
        http.daemon_threads = True
        threading.Thread(target=http.serve_forever, daemon=True).start()
        server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        again(name, server, given.results)
        http.shutdown()


if __name__ == "__main__":
    main()
