"""What a read-only layer costs: opening it, and one lookup, against a bare get of diskcache. Ratios of one run.

A layer of thousands of entries is a manifest to read and a dictionary to build; a lookup is the key's hash and a
dictionary. ``Cache.find`` asks the writable folder first, then the layer; what it finds it reads and checks, once per
process and case: a served call looks into the dispatch table only (``benchmarks/dispatch.py``).
``python benchmarks/bundle.py [--entries 10000]``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import diskcache

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.settings import override
from ascendopt_tune.store.bundle import SCHEMA, Bundle, BundleRow, open_bundle
from ascendopt_tune.store.cache import Cache
from ascendopt_tune.store.entry import Key, canonical, sha256

OPERATORS = 25


def manifest(folder: Path, entries: int) -> list[BundleRow]:
    """A manifest of that many entries, as a bundle's; the entries themselves are not needed to open it."""
    rows: dict[str, list[BundleRow]] = {}
    for i in range(entries):
        row = BundleRow(sha256(b"key%d" % i), sha256(b"call%d" % i), sha256(b"entry%d" % i), 20.0 + i / 7, 10.0 + i / 9)
        rows.setdefault(f"operator_{i % OPERATORS}", []).append(row)
    about = {"chips": ["ascend910b2"], "targets": ["virtual"], "toolkits": ["vnpu-1"]}
    (folder / "entries").mkdir()
    (folder / "bundle.json").write_text(canonical({"schema": SCHEMA, "about": about, "entries": rows}))
    return [row for found in rows.values() for row in found]


def key(number: int) -> Key:
    """A key as of a call of three tensors and an attribute."""
    spec = TensorSpec("float16", (1 + number, 4096))
    case = Case((spec, spec, TensorSpec("float16", (4096,))), (spec,), (("epsilon", 1e-6),))
    return Key(
        operator=f"operator_{number % OPERATORS}",
        baseline=sha256(b"pair"),
        build=canonical({"entry": "operator", "kernel_main": "op_kernel/operator.cpp", "kernel_options": []}),
        case=canonical(case.to_json()),
        chip="ascend910b2",
        target="virtual",
        toolkit="vnpu-1",
    )


def median_us(call: Callable[[int], object], repeats: int, clock: Callable[[], int] = time.perf_counter_ns) -> float:
    times = []
    for i in range(repeats):
        start = clock()
        call(i)
        times.append((clock() - start) / 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = manifest(folder, options.entries)
        opening = median_us(lambda i: _open(folder), 9, time.process_time_ns)
        bundle = open_bundle(folder)
        bare = diskcache.Cache(str(folder / "diskcache"))
        rows = rows[:1000]
        for row in rows:
            bare[row.call] = row.hash
        get = median_us(lambda i: bare[rows[i % len(rows)].call], 3000)
        table = median_us(lambda i: bundle.calls(f"operator_{i % OPERATORS}").get(rows[i % len(rows)].call), 3000)
        keys = [key(i) for i in range(1000)]
        lookup = median_us(lambda i: bundle.calls(keys[i % 1000].operator).get(keys[i % 1000].call), 3000)
        with override(trust=(f"sha256:{bundle.digest}",)):
            cache = Cache(folder / "empty", (folder,))
            find = median_us(lambda i: cache.find(keys[i % 1000]), 3000)
        bare.close()
    print(f"opening a bundle of {options.entries} entries {opening / 1e3:10.1f} ms of processor time")
    print(f"a look into its table                {table:10.2f} us")
    print(f"a lookup in it, with the key's hash  {lookup:10.2f} us")
    print(f"Cache.find that finds nothing        {find:10.2f} us")
    print(f"a bare get of diskcache              {get:10.2f} us")
    print(f"lookup / diskcache get               {lookup / get:10.3f} x")


def _open(folder: Path) -> Bundle:
    bundle = open_bundle(folder)
    for operator in bundle.rows:
        bundle.calls(operator)
    return bundle


if __name__ == "__main__":
    main()
