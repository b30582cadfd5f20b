"""A Ray cluster on this machine: each node is a process with a cache folder of its own, and can be killed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE_S = 300.0  # a machine may be busy
_MEMORY = 150 << 20  # of each node's object store


class RayCluster:
    """Nodes with one processor each. ``address``: as ``--ray`` takes it; ``environment``: of who wants to reach it."""

    def __init__(self, count: int, folder: Path) -> None:
        self._folder = folder
        self._work = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # names of sockets have to be short
        self._nodes: list[subprocess.Popen[bytes]] = []
        # Said outright: what Ray takes otherwise depends on what was done with it in this process before.
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.environment = {**os.environ, **token, "RAY_USAGE_STATS_ENABLED": "0"}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        try:
            self._start("--head", f"--port={self.address.rpartition(':')[2]}", f"--temp-dir={self._work}",
                        "--include-dashboard=false")  # fmt: skip
            for _ in range(count - 1):
                self._start(f"--address={self.address}")
        except BaseException:
            self.close()
            raise

    def _start(self, *more: str) -> None:
        number = len(self._nodes)
        own = {"ASCENDOPT_CACHE_DIR": str(self._folder / f"node-{number}")}
        command = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--num-cpus=1", *more]
        with open(self._folder / f"node-{number}.log", "wb") as log:
            node = subprocess.Popen(
                [*command, f"--object-store-memory={_MEMORY}"],
                env={**self.environment, **own}, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._nodes.append(node)
        self._wait(len(self._nodes))  # two that start together take the same names

    def _wait(self, count: int) -> None:
        """Until so many nodes are alive."""
        ask = f"import ray; ray.init('{self.address}', log_to_driver=False); print(int(ray.cluster_resources()['CPU']))"
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            done = subprocess.run(
                [sys.executable, "-c", ask], env=self.environment, capture_output=True, text=True, check=False
            )
            if done.returncode == 0 and done.stdout.split()[-1:] == [str(count)]:
                return
            time.sleep(0.5)
        raise TimeoutError(f"{count} nodes are not up: {done.stderr}")

    def kill(self, number: int) -> None:
        """Ends a node and all it started, as a machine that is switched off."""
        node = self._nodes[number]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)
        node.wait()

    def close(self) -> None:
        for number in reversed(range(len(self._nodes))):
            self.kill(number)
        shutil.rmtree(self._work, ignore_errors=True)


@contextlib.contextmanager
def nodes(count: int, folder: Path) -> Iterator[RayCluster]:
    """A cluster of so many nodes, for the length of a ``with`` block."""
    cluster = RayCluster(count, folder)
    try:
        yield cluster
    finally:
        cluster.close()
