"""After a change of the clock: what the recorded replies come to now, and PASS where the search asks otherwise.

``python tests/llm/record_again.py [--ask] [NAME ...]`` from the repository's root; it writes ``conversations/tuning``.
With ``--ask`` a question without a reply is written to ``build/tuning``, and waits until the reply is in the file.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

from chat_server import Server, handler
from recorded import FOLDER, Recording, Replay, asked_of
from test_recorded_tunings import BEGINNING, tune

from ascendopt_tune import Cache, TuneRecord, paths, tune_case
from ascendopt_tune.store.entry import Entry

PASS = "PASS: on this clock what is there has no place for it; nothing better is known."


_PATIENCE_S = 1e6  # who answers takes the time it takes


def led(told: Recording, evaluations: int, replay: Replay, server: Server) -> TuneRecord:
    server.answer = replay
    with tempfile.TemporaryDirectory() as name:
        os.environ["ASCENDOPT_CACHE_DIR"] = name  # answers that were kept would not be asked for
        kept = Path(name) / "kept"
        return tune(told, evaluations, Path(name) / "one", kept, base_url=server.url, timeout_s=_PATIENCE_S)


def by_rules(told: Recording) -> Entry:
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(root=Path(folder), layers=())
        operator = told.load()
        return tune_case(operator, told.case, proposer="rules", cache=cache, warm_start=False).entry


def again(path: Path, server: Server, ask: bool) -> None:
    told = Recording.read(path)
    waits = asked_of(path, Path("build/tuning") / path.name, lambda text: print(server.tokens, text, flush=True))
    replay = Replay(told, waits if ask else None)
    server.tokens = 0
    record = led(told, told.evaluations, replay, server)
    found, rules = record.entry, by_rules(told)
    text = path.read_text(encoding="utf-8")
    figures = {"speedup": f"{found.speedup:.4f}", "rules": f"{rules.speedup:.3f}", "tokens": f"{server.tokens}"}
    if told.limit:
        asked = server.tokens
        part = led(told, told.within[0], Replay(Recording.read(path)), server).entry
        figures["within"] = f"{told.within[0]}, {part.speedup:.4f}, {server.tokens - asked}"
        print(f"{path.stem}: {figures['within']} ({part.interval}) within {told.limit} tokens")
    for key, value in figures.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
    for heading in replay.left:
        text = re.sub(rf"^=== {re.escape(heading)}\n.*?(?=^=== |\Z)", "", text, count=1, flags=re.MULTILINE | re.DOTALL)
    text += "".join(f"=== {heading}\n{PASS}\n" for heading in replay.unknown)
    path.write_text(text, encoding="utf-8")
    now, alone = (f"{entry.speedup:.2f}x ({entry.interval})" for entry in (found, rules))
    print(f"{path.stem}: was {told.speedup:.2f}x, is {now}, rules alone {alone}, modelled;", end=" ")
    evaluated = sum(trial.duplicate_of is None for trial in record.history)
    print(f"{figures['tokens']} tokens, {evaluated} evaluations, {len(replay.unknown)} questions are new,", end=" ")
    print(f"{len(replay.left)} aren't asked any more", flush=True)


def main() -> None:
    os.environ.setdefault("ASCENDOPT_TOOLKIT_DIR", str(paths.toolkit_dir()))  # built once, not in each folder
    parser = argparse.ArgumentParser(description=__doc__)
    names = sorted(path.stem for path in FOLDER.glob("*.txt"))
    parser.add_argument("--ask", action="store_true", help="wait for replies that are missing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(names)}; default all")
    server = Server()
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler(server))
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    given = parser.parse_args()
    for name in given.names or names:
        again(FOLDER / f"{name}.txt", server, given.ask)
    if given.ask:
        return
    softmax = Recording.read(FOLDER / "softmax.txt")
    print(f"BEGINNING: {BEGINNING} -> {led(softmax, 7, Replay(softmax), server).entry.speedup:.4f}")
    http.shutdown()


if __name__ == "__main__":
    main()
