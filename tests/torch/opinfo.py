"""torch's own operator samples (OpInfo) on device npu against the CPU: what is equal, raises, differs or crashes.

``make opinfo`` sweeps all of them, in processes of their own, so that an operator that ends its process is counted;
``test_opinfo.py`` takes a sample of them. An operator's verdict is its worst one:

* ``equal``: every sample's result has the CPU's type, dtype, shape, strides and values (as torch.testing compares them;
  ``bits`` counts the calls that are equal to the bit), arguments are changed as on the CPU, and what raises on the CPU
  raises here;
* ``raises``: a sample that the CPU computes raises an exception here;
* ``different``: a sample gives something else. Memory is filled with 0xFF before every call, so that a result nobody
  wrote is different, too;
* ``crash``: the process ended.

Besides the operator itself its method, in-place and ``out=`` forms are called, and the gradients of its inputs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import torch

warnings.simplefilter("ignore")
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

VERDICTS = ("equal", "raises", "different", "crash")  # from good to bad
#: Their result is memory that nobody wrote, on the CPU too: only dtype, shape and strides are compared.
EMPTY = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})
_KEPT_MESSAGE = 300  # characters


@dataclass
class Row:
    """One OpInfo entry: how many calls had which verdict, and the first message of each that is not equal."""

    name: str
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    messages: dict[str, str] = field(default_factory=dict)
    bits: int = 0
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        return next((v for v in reversed(VERDICTS) if self.calls[v]), "equal")

    def add(self, verdict: str, form: str, message: str = "") -> None:
        self.calls[verdict] += 1
        if verdict != "equal":
            self.messages.setdefault(verdict, f"{form}: {message}"[:_KEPT_MESSAGE])


def name_of(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


def entries(dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """The OpInfo entries that take ``dtype`` on the CPU, by name."""
    return {name_of(info): info for info in op_db if dtype in info.dtypes}


#: Takes an index tensor that has to be on the CPU, whatever the device of the others.
CPU_ARGUMENTS = frozenset({"tensor_split"})


def copied(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """The same strides and offset, and the same lazy conjugation and negation, over a copy of the storage."""
    if tensor.layout != torch.strided:
        return tensor.to(device)
    bare = tensor.detach()
    whole = torch.empty(0, dtype=bare.dtype).set_(bare.untyped_storage()).clone().to(device)
    copy = whole.as_strided(bare.size(), bare.stride(), bare.storage_offset())
    copy = copy.conj() if bare.is_conj() else copy
    copy = torch._neg_view(copy) if bare.is_neg() else copy
    return copy.requires_grad_(tensor.requires_grad)


def moved(value: Any) -> Any:
    """A CPU argument for device npu."""
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":
        return copied(value, "npu")
    if isinstance(value, torch.device) and value.type == "cpu":
        return torch.device("npu:0")
    return "npu:0" if isinstance(value, str) and value == "cpu" else value


def cloned(value: Any) -> Any:
    """A CPU argument for a call that may change it."""
    return copied(value, "cpu") if isinstance(value, torch.Tensor) and value.layout == torch.strided else value


def dirty_memory() -> None:
    """Fills blocks of the sizes that small results have with 0xFF, and gives them back to the allocator."""
    blocks = [torch.empty(512 << size, dtype=torch.uint8, device="npu") for size in range(12) for _ in range(4)]
    for block in blocks:
        block.fill_(255)


def describe(value: Any) -> Any:
    """What has to be the same besides values."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    if value.layout != torch.strided:
        return value.dtype, value.shape, value.layout
    return value.dtype, value.shape, value.stride(), value.is_conj(), value.is_neg(), value.requires_grad


def differs(expected: Any, actual: Any, values: bool = True) -> tuple[str, bool]:
    """What distinguishes two results, or nothing; and whether their values are equal to the bit."""
    first, spec = pytree.tree_flatten(expected)
    second, other = pytree.tree_flatten(actual)
    if spec != other:
        return f"structure {other} instead of {spec}", False
    bits = True
    for e, a in zip(first, second, strict=True):
        if describe(e) != describe(a):
            return f"{describe(a)} instead of {describe(e)}", False
        if isinstance(e, torch.Tensor) and values:
            for exact in ({"rtol": 0, "atol": 0}, {}):
                try:
                    torch.testing.assert_close(a.detach().cpu(), e.detach(), equal_nan=True, **exact)
                    break
                except AssertionError as error:
                    text, bits = str(error), False
            else:
                return text, False
        elif values and not isinstance(e, (torch.Tensor, torch.Generator)) and e != a and not (e != e and a != a):
            return f"{a!r} instead of {e!r}", False
    return "", bits


def attempt(call: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, Exception | None]:
    torch.manual_seed(0)
    try:
        return call(*args, **kwargs), None
    except Exception as error:
        return None, error


def compare(
    row: Row, form: str, call: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], values: bool = True
) -> None:
    """Calls on both devices, with arguments of their own, and adds the verdict on results and changed arguments."""
    ours_args, ours_kwargs = pytree.tree_map(moved, (args, kwargs))
    if row.name in CPU_ARGUMENTS:
        ours_args[1:] = args[1:]
    theirs_args, theirs_kwargs = pytree.tree_map(cloned, (args, kwargs))
    expected, refused = attempt(call, theirs_args, theirs_kwargs)
    dirty_memory()
    actual, error = attempt(call, ours_args, ours_kwargs)
    if refused is not None:
        row.add("equal" if error is not None else "different", form, f"does not raise {refused!r}")
    elif error is not None:
        row.add("raises", form, f"{type(error).__name__}: {error}")
    else:
        text, bits = differs(expected, actual, values)
        row.bits += bits
        tensors = (pytree.tree_flatten(v)[0] for v in ((theirs_args, theirs_kwargs), (ours_args, ours_kwargs)))
        changed, _ = differs(*([t for t in v if isinstance(t, torch.Tensor)] for v in tensors), values)
        row.add("different" if text or changed else "equal", form, text or f"changed arguments: {changed}")


def gradients(row: Row, info: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Compares the gradients of the inputs, where the CPU has them."""

    def call(*args: Any, **kwargs: Any) -> Any:
        outputs = [t for t in pytree.tree_leaves(info(*args, **kwargs)) if isinstance(t, torch.Tensor)]
        outputs = [t for t in outputs if t.requires_grad]
        inputs = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]
        if not outputs or not inputs:
            return None
        ones = [torch.ones_like(t) for t in outputs]
        return torch.autograd.grad(outputs, inputs, ones, allow_unused=True)

    if attempt(call, *pytree.tree_map(cloned, (args, kwargs)))[1] is None:
        compare(row, "gradient", call, args, kwargs)


def outputs(info: Any, args: list[Any], kwargs: dict[str, Any]) -> Iterator[Any]:
    """Tensors for out=: of the right size and of none; nothing when the operator has no out= form."""
    if not info.supports_out:
        return
    result, error = attempt(info.op, *pytree.tree_map(cloned, (args, kwargs)))
    if error is not None or not all(isinstance(t, torch.Tensor) for t in pytree.tree_leaves(result)):
        return
    yield pytree.tree_map(torch.zeros_like, result)
    yield pytree.tree_map(lambda t: torch.empty(0, dtype=t.dtype), result)


def check(info: Any, samples: int | None = None, dtype: torch.dtype = torch.float32) -> Row:
    """Compares an entry over its first ``samples`` samples of ``dtype`` (None: all)."""
    row = Row(name_of(info))
    values = info.name not in EMPTY
    for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), samples):
        args, kwargs = [sample.input, *sample.args], sample.kwargs
        compare(row, "function", info.op, args, kwargs, values)
        if info.method_variant is not None:
            compare(row, "method", info.method_variant, args, kwargs, values)
        if info.inplace_variant is not None and not sample.broadcasts_input:
            compare(row, "in place", info.inplace_variant, args, kwargs, values)
        for out in outputs(info, args, kwargs):
            compare(row, "out=", info.op, args, {**kwargs, "out": out}, values)
    if info.supports_autograd and values and (dtype.is_floating_point or dtype.is_complex):
        for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=True), samples):
            gradients(row, info, [sample.input, *sample.args], sample.kwargs)
    return row


# -- the sweep --------------------------------------------------------------------------------------------------------


def work(names: list[str], samples: int | None, dtype: torch.dtype, results: Path) -> None:
    """A child: appends what it begins and what came out to ``results``, a JSON object a line."""
    every = entries(dtype)
    with results.open("a", buffering=1) as file:
        for name in names:
            print(json.dumps({"begin": name}), file=file)
            start = time.monotonic()
            row = check(every[name], samples, dtype)
            row.seconds = round(time.monotonic() - start, 3)
            print(json.dumps(asdict(row)), file=file)


def shard(names: list[str], samples: int | None, dtype: str = "float32") -> Iterator[Row]:
    """Runs names in child processes; one that ends its process has the verdict crash, and the next child goes on."""
    while names:
        with tempfile.NamedTemporaryFile("w+", suffix=".jsonl") as file:
            command = [sys.executable, __file__, "--work", file.name, "--samples", str(samples or 0), "--dtype", dtype]
            child = subprocess.run(command, input="\n".join(names), capture_output=True, text=True, check=False)
            records = [json.loads(line) for line in file.read().splitlines()]
        current = None
        for record in records:
            current = record.get("begin")
            if current is None:
                yield Row(**record)
                names = names[1:]
        if current is not None and child.returncode != 1:  # 1: a Python exception of the sweep's own
            row = Row(current)
            row.add("crash", "process", f"exit code {child.returncode}: {child.stderr[-_KEPT_MESSAGE:]}")
            yield row
            names = names[1:]
        elif names:
            raise RuntimeError(f"the sweep itself failed: {child.stderr[-2000:]}")


def summary(rows: list[Row]) -> str:
    """Counts by verdict, and every entry that is not equal with its first message."""
    lines = []
    for verdict in reversed(VERDICTS[1:]):
        for row in rows:
            if row.verdict == verdict:
                first = row.messages[verdict].strip().splitlines() or [""]
                lines.append(
                    f"{verdict:9}  {row.name} ({row.calls[verdict]} of {sum(row.calls.values())}): {' '.join(first)}"
                )
    total = Counter(row.verdict for row in rows)
    calls = Counter({v: sum(row.calls[v] for row in rows) for v in VERDICTS})
    for what, counts in (("operators", total), ("calls", calls)):
        text = ", ".join(f"{counts[v]} {v}" for v in VERDICTS)
        lines.append(f"{what}: {text}; {100 * counts['equal'] / max(1, counts.total()):.1f} % equal")
    lines.append(f"calls with the CPU's bits: {100 * sum(r.bits for r in rows) / max(1, calls.total()):.1f} %")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="OpInfo entries; default: all with the dtype")
    parser.add_argument("--samples", type=int, default=0, help="samples of each entry; 0: all")
    parser.add_argument("--dtype", default="float32", help="of the samples; default float32")
    parser.add_argument("--shards", type=int, default=min(8, os.cpu_count() or 1), help="processes at a time")
    parser.add_argument("--json", type=Path, help="where the rows go")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.work:
        work(sys.stdin.read().split("\n"), options.samples or None, getattr(torch, options.dtype), options.work)
        return
    names = options.names or list(entries(getattr(torch, options.dtype)))
    start = time.monotonic()
    with ThreadPoolExecutor(options.shards) as pool:
        parts = [names[i :: options.shards] for i in range(options.shards)]
        rows = sorted(
            (
                row
                for part in pool.map(lambda p: list(shard(p, options.samples or None, options.dtype)), parts)
                for row in part
            ),
            key=lambda row: row.name,
        )
    if options.json:
        options.json.write_text(json.dumps([{**asdict(r), "verdict": r.verdict} for r in rows], indent=1))
    print(summary(rows))
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
