"""What the search finds for the registry's operators on cube cores, beside what others choose. Modelled times.

``python benchmarks/cube.py [--set small|models] [--only NAME] [--out results.jsonl] [--docs docs/cube_tuned.md]``.
Cases were fixed before any of them was tuned. Each is tuned with 40 evaluations, seed 0, an empty cache and no
stored results, and confirmed as always. Results are appended to ``--out`` as they come; what is there is not run again.

Beside it each case is run as written with the tiling that the platform's tiling class chooses
(``MultiCoreMatmulTiling``), and, with ``ASCENDOPT_CATLASS`` set, with that of catlass' example 102, for the types it is
made for. Attention has neither.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ascendopt_tune.build.toolkit import host_compiler, virtual
from ascendopt_tune.files import write_between
from ascendopt_tune.paths import shipped

CHIP, CORES = "ascend910b2", 24
TYPES = {"float16": 1, "int8": 2, "bfloat16": 27}  # as matmul_tiling::DataType
L0 = 64 * 1024
CATLASS = "ASCENDOPT_CATLASS"


@dataclass(frozen=True)
class Case:
    """``words`` are the options of ``ascendopt-tune tune`` that say it; ``layer``: whose layer it is."""

    group: str
    operator: str
    name: str
    layer: str
    words: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.group}: {self.operator}, {self.name}"

    def tensor(self, name: str) -> tuple[str, tuple[int, ...]]:
        """(type, shape) of an input."""
        found = next(m for w in self.words if (m := re.fullmatch(rf"{name}=(\w+)\[([\d,]+)\]", w)))
        return found[1], tuple(map(int, found[2].split(",")))


def _case(group: str, operator: str, name: str, layer: str, *inputs: str, **others: str | Sequence[str]) -> Case:
    words = [w for text in inputs for w in ("--input", text)]
    for option, texts in others.items():
        words += [w for text in ([texts] if isinstance(texts, str) else texts) for w in (f"--{option}", text)]
    return Case(group, operator, name, layer, tuple(words))


SCALE = "scale=0.08838834764831845"
# `small`: what the operators were first measured with. `models`: values of each model's config.json: Llama-3.1-8B has
# hidden_size 4096, 32 heads of 128, 8 heads of keys; Qwen2.5-7B hidden_size 3584, 28 heads of 128, intermediate_size
# 18944; Qwen3-30B-A3B hidden_size 2048, moe_intermediate_size 768, 128 experts of which a token takes 8; StarCoder2-3B
# hidden_size 3072, intermediate_size 12288, gelu_pytorch_tanh. Decoding 16 sequences, prefill of 512 tokens; TP and EP:
# so many ranks share a layer or its experts.
CASES = (
    _case("small", "matmul", "decoding", "16 x 2048 x 1024", "a=float16[16,2048]", "b=float16[2048,1024]"),
    _case("small", "matmul", "prefill", "512 x 1024 x 1024", "a=float16[512,1024]", "b=float16[1024,1024]"),
    _case("small", "quant_matmul", "decoding", "16 x 4096 x 1024",
          "a=int8[16,4096]", "b=int8[1024,4096]", "scale=int64[1024]"),
    _case("small", "quant_matmul", "prefill", "512 x 1024 x 1024",
          "a=int8[512,1024]", "b=int8[1024,1024]", "scale=int64[1024]"),
    _case("small", "grouped_matmul", "decoding", "64 rows, 8 experts of 512 x 512",
          "a=float16[64,512]", "b=float16[8,512,512]", "counts=int64[8]"),
    _case("small", "grouped_matmul", "prefill", "256 rows, 16 experts of 512 x 512",
          "a=float16[256,512]", "b=float16[16,512,512]", "counts=int64[16]"),
    _case("small", "matmul_gelu", "decoding", "16 x 1024 x 1024", "a=float16[16,1024]", "b=float16[1024,1024]"),
    _case("small", "matmul_gelu", "prefill", "512 x 512 x 1024", "a=float16[512,512]", "b=float16[512,1024]"),
    _case("small", "flash_attention", "decoding", "16 heads of 128, 512 keys, causal",
          "q=float16[16,1,128]", "k=float16[16,512,128]", "v=float16[16,512,128]", attr=[SCALE, "causal=true"]),
    _case("small", "flash_attention", "prefill", "8 heads of 128, 256 queries, causal",
          "q=float16[8,256,128]", "k=float16[8,256,128]", "v=float16[8,256,128]", attr=[SCALE, "causal=true"]),
    _case("models", "matmul", "decoding", "Llama-3.1-8B, k_proj", "a=bfloat16[16,4096]", "b=bfloat16[4096,1024]"),
    _case("models", "matmul", "prefill", "Llama-3.1-8B, q_proj, TP 8", "a=bfloat16[512,4096]", "b=bfloat16[4096,512]"),
    _case("models", "quant_matmul", "decoding", "Qwen2.5-7B, down_proj, TP 8",
          "a=int8[16,2368]", "b=int8[3584,2368]", "scale=int64[3584]"),
    _case("models", "quant_matmul", "prefill", "Qwen2.5-7B, q_proj, TP 4",
          "a=int8[512,3584]", "b=int8[896,3584]", "scale=int64[896]"),
    _case("models", "grouped_matmul", "decoding", "Qwen3-30B-A3B, down_proj, EP 16",
          "a=bfloat16[64,768]", "b=bfloat16[8,768,2048]", "counts=int64[8]", domain="counts=0:16"),
    _case("models", "grouped_matmul", "prefill", "Qwen3-30B-A3B, up_proj, EP 16",
          "a=bfloat16[256,2048]", "b=bfloat16[8,2048,768]", "counts=int64[8]", domain="counts=0:64"),
    _case("models", "matmul_gelu", "decoding", "StarCoder2-3B, c_fc, TP 8",
          "a=bfloat16[16,3072]", "b=bfloat16[3072,1536]"),
    _case("models", "matmul_gelu", "prefill", "StarCoder2-3B, c_fc, TP 8",
          "a=bfloat16[512,3072]", "b=bfloat16[3072,1536]"),
    _case("models", "flash_attention", "decoding", "Llama-3.1-8B, TP 8, 1024 keys, 4 heads for a head of keys",
          "q=bfloat16[16,4,128]", "k=bfloat16[16,1024,128]", "v=bfloat16[16,1024,128]", attr=SCALE),
    _case("models", "flash_attention", "prefill", "Llama-3.1-8B, TP 8, causal",
          "q=bfloat16[4,512,128]", "k=bfloat16[4,512,128]", "v=bfloat16[4,512,128]", attr=[SCALE, "causal=true"]),
)  # fmt: skip


# ---- what others choose ----


@cache
def _choices() -> Any:
    """``cube_choices.cpp`` as a library."""
    prefix, folder, catlass = virtual().prefix, Path(tempfile.mkdtemp()), os.environ.get(CATLASS, "")
    example = Path(catlass) / "examples/102_dynamic_optimized_matmul/include"
    theirs = ["-DCATLASS", f"-I{catlass}/include", f"-I{example}"] if catlass else []
    source = str(Path(__file__).with_name("cube_choices.cpp"))
    command = [host_compiler(), "-std=c++17", "-shared", "-fPIC", "-w", f"-I{prefix}/include", *theirs, source]
    command += [f"-L{prefix}/lib64", "-lvnpu_host", f"-Wl,-rpath,{prefix}/lib64", "-o", str(folder / "choices.so")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "choices.so"))


def _product(case: Case) -> tuple[int, int, int, str, bool]:
    """m, n, k, type, and whether rows of b are along k; of groups the mean m."""
    kind, a = case.tensor("a")
    _, b = case.tensor("b")
    turned = case.operator == "quant_matmul"
    rows = -(-a[0] // b[0]) if len(b) == 3 else a[0]
    return rows, b[0] if turned else b[-1], a[1], kind, turned


def _platform(case: Case) -> dict[str, int]:
    m, n, k, kind, turned = _product(case)
    out = (ctypes.c_int * 6)()
    if _choices().platform_choice(m, n, k, CORES, TYPES[kind], int(turned), out) != 0:
        return {}
    return dict(zip(("singleM", "singleN", "BASE_M", "BASE_N", "BASE_K", "STEP_K"), out, strict=True))


def _catlass(case: Case) -> dict[str, int]:
    m, n, k, kind, turned = _product(case)
    if CATLASS not in os.environ or kind == "int8" or turned:
        return {}
    out = (ctypes.c_int * 3)()
    _choices().catlass_choice(m, n, k, out)
    deep = out[2]
    while deep > 16 and (2 * 2 * max(out[0], out[1]) * deep > L0 or out[2] % deep):
        deep -= 16
    return {"BASE_M": out[0], "BASE_N": out[1], "BASE_K": deep, "STEP_K": out[2] // deep}


def _written(text: str, numbers: Mapping[str, int]) -> str:
    """The tiling program with these numbers for its constants and its shares of a core."""
    for name, value in numbers.items():
        text = re.sub(rf"(constexpr \w+ {name} = )-?\d+;", rf"\g<1>{value};", text)
        text = re.sub(rf"(const uint32_t {name} = )[^;]+;", rf"\g<1>{value};", text)
    return text


def chosen(case: Case) -> dict[str, float | None]:
    """By whom -> task duration of the operator as written with that tiling; None where there is none, or it fails."""
    if case.operator == "flash_attention":
        return {"platform": None, "catlass": None}
    if case.operator == "matmul_gelu":  # asks the class itself, and has no constants for another choice
        own = {"cube.SetFixSplit(std::min(BASE_M, Align(m)), std::min(BASE_N, Align(n)), BASE_K);": ""}
        return {"platform": _run(case, lambda text: _replaced(text, own)), "catlass": None}
    platform, catlass = _platform(case), _catlass(case)
    return {
        who: _run(case, lambda text, numbers=numbers: _written(text, numbers)) if numbers else None  # type: ignore[misc]
        for who, numbers in (("platform", platform), ("catlass", catlass))
    }


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def _run(case: Case, change: Any) -> float | None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / case.operator
        shutil.copytree(shipped("registry") / case.operator, copy)
        program = copy / "op_host" / f"{case.operator}.cpp"
        before = program.read_text()
        after = change(before)
        if after == before:
            return None
        program.write_text(after)
        done = _command("run", str(copy), *case.words)
    return done["profile"]["task_duration_us"] if done.get("profile") else None


# ---- a case ----


def _command(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "ascendopt_tune", *words, "--chip", CHIP, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)  # type: ignore[no-any-return]
    except json.JSONDecodeError:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}


def measured(case: Case) -> dict[str, Any]:
    told = _command("tune", case.operator, *case.words, "--cold", "--retune", "--budget", "40", "--seed", "0")
    keys = ("decision", "speedup", "speedup_low", "speedup_high", "wins", "evaluations", "changes", "seconds")
    out = {"key": case.key} | {key: told.get(key) for key in keys}
    out["as_written"] = told["baseline"]["task_duration_us"]
    return out | {"others": chosen(case)}


# ---- the table ----


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def table(results: Mapping[str, Mapping[str, Any]], group: str) -> list[str]:
    lines = [
        "| operator | case | as written, us | platform | catlass | best, us | gain (over plausible clocks) |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    gains = []
    for case in (c for c in CASES if c.group == group and c.key in results):
        r = results[case.key]
        gains.append(r["speedup"])
        won = r.get("speedup_low") is not None
        gain = f"{r['speedup']:.2f}x ({r['speedup_low']:.2f} to {r['speedup_high']:.2f})" if won else "no win"
        kind = case.tensor("q" if case.operator == "flash_attention" else "a")[0]
        times = [_number(t) for t in (r["as_written"], r["others"]["platform"], r["others"]["catlass"])]
        best = _number(r["as_written"] / r["speedup"])
        name = f"`{case.operator}`, {kind}"
        lines.append(f"| {name} | {case.name}: {case.layer} | {' | '.join(times)} | {best} | {gain} |")
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        lines += ["", f"The geometric mean of these {len(gains)} is {mean:.2f}."]
    return lines


def marks(group: str) -> tuple[str, str]:
    return f"<!-- tuned: written by `python benchmarks/cube.py --set {group} --docs` -->", f"<!-- end of {group} -->"


def main(words: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("small", "models"), default="small", dest="group")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--out", type=Path, default=Path("cube.jsonl"))
    parser.add_argument("--docs", type=Path, help="the page to write the table into")
    asked = parser.parse_args(list(words) if words is not None else None)
    lines = asked.out.read_text().splitlines() if asked.out.exists() else []
    results = {r["key"]: r for r in map(json.loads, lines)}
    for case in CASES:
        if case.group == asked.group and asked.only in case.key and case.key not in results:
            results[case.key] = measured(case)
            with asked.out.open("a") as out:
                out.write(json.dumps(results[case.key]) + "\n")
            print(case.key, results[case.key]["speedup"], flush=True)
    told = "\n".join(table(results, asked.group))
    print(told)
    if asked.docs:
        write_between(asked.docs, *marks(asked.group), "the table", f"\n{told}\n")


if __name__ == "__main__":
    main()
