"""Every environment variable the project reads: typed, with its default and its meaning. No other file reads one.

The environment is the one source, so worker processes inherit what their parent was told. :func:`settings` parses it
anew at each call (microseconds; not for the hot path, which asks :func:`disabled` only). An ``ASCENDOPT_*`` name that
is not declared here is an error: a misspelt switch must not be ignored in silence.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .errors import SettingsError, did_you_mean

PREFIX = "ASCENDOPT_"
TARGETS = ("auto", "virtual", "npu")
POLICIES = ("off", "lookup", "lazy", "blocking")
PROPOSERS = ("rules", "llm", "both")


@dataclass(frozen=True)
class Settings:
    """The parsed environment. ``None`` means: not set, the reader has a rule for that (see the variable's text)."""

    cache_dir: Path | None = None
    cache_layers: tuple[Path, ...] = ()
    trust: tuple[str, ...] = ()
    toolkit_dir: Path | None = None
    build_dir: Path | None = None
    toolkit_built: Path | None = None
    target: str = "auto"
    chip: str = "ascend910b2"
    screen: str | None = None
    policy: str = "lookup"
    budget: int = 40
    disable: bool = False
    shadow: int = 1
    check_every: int = 1000
    invariant: bool = False
    accept_unfinished: bool = False
    reuse: bool = True
    fast_path: bool = True
    lazy_share: float = 0.5
    matmul_headers: Path | None = None
    cxx: str | None = None
    sanitize: bool = False
    workers: int | None = None
    core_threads: int = 1
    proposer: str | None = None
    llm_base_url: str | None = None
    llm_api_key: str | None = field(default=None, repr=False)
    llm_model: str | None = None
    llm_model_offline: str | None = None
    llm_prices: tuple[float, float] | None = None
    llm_prices_offline: tuple[float, float] | None = None
    llm_max_tokens: int | None = None
    llm_max_money: float | None = None
    llm_max_reply: int = 16384
    llm_timeout: float = 180.0
    llm_stream: bool = False
    llm_replay: bool = False
    embedding_model: str | None = None
    embedding_url: str | None = None
    cann_ops: Path | None = None
    ops_nn: Path | None = None
    ops_transformer: Path | None = None
    ops_math: Path | None = None
    s9_operators: Path | None = None
    mkb: Path | None = None
    asc_devkit: Path | None = None
    catlass: Path | None = None
    vllm_ascend: Path | None = None
    mkb_solutions: Path | None = None
    reference: Path | None = None
    measurements: Path | None = None
    testfloat: Path | None = None


@dataclass(frozen=True)
class Variable:
    """One environment variable; ``parse`` raises ValueError with what would be accepted.

    ``fallback``: another variable that is read where this one is not set. ``secret``: its value is never shown, and
    no process that runs candidates gets it.
    """

    field: str
    parse: Callable[[str], Any]
    doc: str
    default_doc: str = ""
    tests_only: bool = False
    fallback: str | None = None
    secret: bool = False

    @property
    def name(self) -> str:
        return PREFIX + self.field.upper()

    @property
    def default_text(self) -> str:
        """The default in words."""
        default = {f.name: f.default for f in fields(Settings)}[self.field]
        return self.default_doc or (f"`{_to_text(default)}`" if default != () else "none")


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _path_list(text: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in text.split(os.pathsep) if part)


def _trust_list(text: str) -> tuple[str, ...]:
    items = tuple(part.strip() for part in text.split(",") if part.strip())
    for item in items:
        if item.startswith("sha256:") and not re.fullmatch(r"sha256:[0-9a-f]{64}", item):
            raise ValueError("sha256: and 64 hexadecimal digits, as `ascendopt-tune prebuild` prints them")
    return items


def _flag(text: str) -> bool:
    value = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in value:
        raise ValueError("1 or 0")
    return value[text.lower()]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a whole number >= 1")
    return int(text)


def _count_or_none(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a whole number >= 0")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ValueError("a number > 0")
    return value


def _prices(text: str) -> tuple[float, float]:
    accepted = "two numbers >= 0 as INPUT:OUTPUT, for example 0.5:1.5"
    try:
        prices = tuple(float(part) for part in text.split(os.pathsep))
    except ValueError:
        raise ValueError(accepted) from None
    if len(prices) != 2 or not all(math.isfinite(p) and p >= 0 for p in prices):
        raise ValueError(accepted)
    return prices


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+\S*", text):
        raise ValueError("a URL such as https://host/v1")
    return text.rstrip("/")


def _key(text: str) -> str:
    if not re.fullmatch(r"[!-~]+", text):  # it becomes a header of a request
        raise ValueError("a key of printable ASCII characters without spaces")
    return text


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise ValueError("a number above 0 and at most 1")
    return value


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return text

    return parse


VARIABLES: tuple[Variable, ...] = (
    Variable("cache_dir", _path, "The writable cache folder.", "the platform's user cache folder"),
    Variable("cache_layers", _path_list, f"Read-only cache folders, looked up in order, separated by `{os.pathsep}`."),
    Variable(
        "trust",
        _trust_list,
        "Bundles that may be used as they are: digests (`sha256:...`) and public keys (paths of Ed25519 keys in PEM), "
        "separated by commas.",
        "no bundle but what is imported",
    ),
    Variable("toolkit_dir", _path, "Where the virtual toolkit is built.", "`toolkit` in the writable cache"),
    Variable(
        "build_dir",
        _path,
        "Where compiled operators are kept, named by their contents; processes and caches may share it.",
        "`build` in the writable cache",
    ),
    Variable(
        "toolkit_built",
        _path,
        "A virtual toolkit that `ascendopt-tune toolkit --build` made on another machine; taken where it fits.",
        "the one that the installation ships, if any",
    ),
    Variable(
        "target", _one_of(*TARGETS), "The device; `auto`: a real NPU's toolkit if there is one, else the virtual NPU."
    ),
    Variable("chip", str, "The chip that is modelled, a name of `vnpu/chips/` or a chip file."),
    Variable(
        "screen",
        str,
        "What is about to run on a real NPU runs on the virtual one first (docs/gate.md), which models this chip; "
        "`off`: it doesn't.",
        "the chip that is tuned for",
    ),
    Variable(
        "policy",
        _one_of(*POLICIES),
        "Tuned calls run the original, use cached results, tune what is missing in the background, or tune it first.",
    ),
    Variable("budget", _count, "Evaluations one tuning run may spend, the baseline's included."),
    Variable("disable", _flag, "The kill switch: every tuned call runs the original."),
    Variable(
        "shadow", _count, "So many first calls of every shape run the original, too, and their results are compared."
    ),
    Variable(
        "check_every",
        _count_or_none,
        "In service one call in so many of every shape is compared with the original, off the critical path and, at "
        "first, more often (docs/runtime.md); 0: none.",
    ),
    Variable(
        "invariant",
        _flag,
        "Only pairs are accepted and served whose results are the baseline's bit for bit: none depends on what was "
        "tuned (docs/serving.md).",
    ),
    Variable(
        "accept_unfinished",
        _flag,
        "Warm-up, tune and prebuild answer from a cached result whose search was not finished, too; else it goes on.",
    ),
    Variable(
        "reuse",
        _flag,
        "A shape like a cached one gets that one's tiling program, run anew and checked in the background.",
    ),
    Variable(
        "fast_path",
        _flag,
        "Hits of intercepted operators are served in C++, by a library compiled on first use.",
    ),
    Variable(
        "lazy_share", _share, "The share of one processor core's time that background tuning may take, above 0 up to 1."
    ),
    Variable(
        "matmul_headers",
        _path,
        "A checkout of asc-devkit, or a CANN that has it in its folder `asc`: on the virtual NPU, kernels are compiled "
        "with its high-level Matmul (docs/cube.md).",
        "the virtual NPU's own Matmul",
    ),
    Variable("cxx", str, "The host compiler.", "`g++`, else `clang++`"),
    Variable(
        "sanitize",
        _flag,
        "The virtual NPU is built with AddressSanitizer and UndefinedBehaviorSanitizer; the process needs their "
        "libraries preloaded (`make sanitize`).",
        tests_only=True,
    ),
    Variable("workers", _count, "Worker processes that evaluate at the same time.", "one per processor core"),
    Variable(
        "core_threads",
        _count,
        "Threads on which the virtual NPU runs the cores of a launch, as long as their order can't matter: results and "
        "modelled times are the same. Candidates run on one, beside each other.",
    ),
    Variable(
        "proposer",
        _one_of(*PROPOSERS),
        "Who proposes candidates.",
        "`both` where a language model is configured (docs/llm.md), else `rules`",
    ),
    Variable("llm_base_url", _url, "An OpenAI-compatible endpoint.", "OpenAI's own"),
    Variable(
        "llm_api_key",
        _key,
        "Its key; never shown, stored, or given to a candidate's process.",
        "`OPENAI_API_KEY`",
        fallback="OPENAI_API_KEY",
        secret=True,
    ),
    Variable("llm_model", str, "The model that mutates tiling programs and refines kernels.", "no model is asked"),
    Variable(
        "llm_model_offline",
        str,
        "The model for template synthesis, rewind and distillation.",
        "`ASCENDOPT_LLM_MODEL`",
    ),
    Variable(
        "llm_prices",
        _prices,
        "US dollars a million input and output tokens cost, as `INPUT:OUTPUT`.",
        "unknown; money is not counted",
    ),
    Variable("llm_prices_offline", _prices, "The same for the offline model.", "`ASCENDOPT_LLM_PRICES`"),
    Variable("llm_max_tokens", _count, "A tuning run ends when its answers have taken so many tokens.", "no limit"),
    Variable("llm_max_money", _amount, "The same in US dollars; needs prices.", "no limit"),
    Variable("llm_max_reply", _count, "Tokens one reply may have."),
    Variable("llm_timeout", _amount, "Seconds one request may take."),
    Variable("llm_stream", _flag, "Replies are asked for as a stream."),
    Variable("llm_replay", _flag, "Only recorded answers are used; no request is made."),
    Variable("embedding_model", str, "The model that embeds the experience bank's texts.", "a local one, built in"),
    Variable("embedding_url", _url, "The base URL of that model's endpoint.", "`ASCENDOPT_LLM_BASE_URL`"),
    Variable(
        "cann_ops",
        _path,
        "A checkout of cann-ops: the operators of `bench search`, the baselines of `bench mkb`.",
        "its tests are skipped",
    ),
    Variable("ops_nn", _path, "A checkout of ops-nn: operators of `fidelity --operators`.", "its tests are skipped"),
    Variable(
        "ops_transformer",
        _path,
        "A checkout of ops-transformer: operators of `fidelity --operators`.",
        "its tests are skipped",
    ),
    Variable(
        "ops_math", _path, "A checkout of ops-math: operators of `fidelity --operators`.", "its tests are skipped"
    ),
    Variable(
        "s9_operators",
        _path,
        "A checkout of X-BoBoowen/ascend-s9-operators: operators of `fidelity --operators`.",
        "its tests are skipped",
    ),
    Variable("mkb", _path, "A checkout of MultiKernelBench: the tasks of `bench mkb`.", "its tests are skipped"),
    Variable("asc_devkit", _path, "A checkout of asc-devkit.", "its tests are skipped", tests_only=True),
    Variable("catlass", _path, "A checkout of catlass.", "its tests are skipped", tests_only=True),
    Variable(
        "vllm_ascend",
        _path,
        "Sources of vllm-ascend.",
        "its tests are skipped",
        tests_only=True,
    ),
    Variable(
        "mkb_solutions",
        _path,
        "A folder of public solutions of MultiKernelBench, one file per task (docs/multikernelbench.md).",
        "its tests are skipped",
        tests_only=True,
    ),
    Variable("reference", _path, "A folder of recorded hardware results.", "its tests are skipped", tests_only=True),
    Variable(
        "measurements",
        _path,
        "A table of published measurements (CSV), each row of which has to be repeated or left out for a reason.",
        "the table that ships with the package",
        tests_only=True,
    ),
    Variable(
        "testfloat",
        _path,
        "Berkeley TestFloat's program `testfloat_gen`, whose vectors casts and arithmetic have to reproduce.",
        "its tests are skipped",
        tests_only=True,
    ),
)
_BY_NAME = {v.name: v for v in VARIABLES}
_BY_FIELD = {v.field: v for v in VARIABLES}
DISABLE = _BY_FIELD["disable"].name
#: Variables that processes which run candidates must not have.
SECRETS = frozenset(name for v in VARIABLES if v.secret for name in (v.name, v.fallback) if name)


def settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings now. An empty variable counts as unset. Raises SettingsError for an unknown name or a bad value."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for name, text in environ.items():
        if not name.startswith(PREFIX):
            continue
        variable = _BY_NAME.get(name)
        if variable is None:
            near = did_you_mean(name, _BY_NAME)
            raise SettingsError(f"unknown environment variable {name}.{near}", f"Known ones: {', '.join(_BY_NAME)}.")
        if text:
            values[variable.field] = _parse(variable, text)
    for variable in VARIABLES:
        text = environ.get(variable.fallback, "") if variable.fallback else ""
        if text and variable.field not in values:
            try:
                values[variable.field] = variable.parse(text)
            except ValueError:  # not our variable: a value that doesn't fit is none of our business
                continue
    return Settings(**values)


def variable(field: str) -> Variable:
    """The environment variable of a field of :class:`Settings`."""
    return _BY_FIELD[field]


def check_policy(text: str) -> str:
    """``text`` if it is a policy this version honours; else SettingsError."""
    if text not in POLICIES:
        near = did_you_mean(text, POLICIES)
        raise SettingsError(f"unknown policy {text!r}.{near}", f"Give one of {', '.join(POLICIES)}.")
    return text


def disabled() -> bool:
    """The kill switch alone, cheap enough for every call; a value that can't be read as false disables."""
    text = os.environ.get(DISABLE)
    if not text:
        return False
    try:
        return _flag(text)
    except ValueError:
        return True


@contextmanager
def override(**values: object) -> Iterator[Settings]:
    """Sets fields of :class:`Settings` through the environment for the length of a ``with`` block; ``None`` unsets.

    Process-wide, and inherited by processes started meanwhile. Raises SettingsError before anything is changed.
    """
    unknown = sorted(set(values) - set(_BY_FIELD))
    if unknown:
        raise SettingsError(f"unknown setting {unknown[0]!r}.", f"Known ones: {', '.join(_BY_FIELD)}.")
    wanted = {_BY_FIELD[field].name: _to_text(value) for field, value in values.items()}
    merged = {k: v for k, v in {**os.environ, **wanted}.items() if v is not None}
    result = settings(merged)
    before = {name: os.environ.get(name) for name in wanted}
    try:
        _apply(wanted)
        yield result
    finally:
        _apply(before)


def table() -> str:
    """The documentation's table of all variables, in Markdown."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for v in VARIABLES:
        choices = {"target": TARGETS, "policy": POLICIES, "proposer": PROPOSERS}.get(v.field)
        doc = v.doc + (f" One of {', '.join(f'`{c}`' for c in choices)}." if choices else "")
        rows.append(f"| `{v.name}` | {v.default_text} | {'Tests only. ' if v.tests_only else ''}{doc} |")
    return "\n".join(rows) + "\n"


def _parse(variable: Variable, text: str) -> Any:
    try:
        return variable.parse(text)
    except ValueError as error:
        shown = "(its value is not shown)" if variable.secret else repr(text)
        raise SettingsError(f"{variable.name}={shown} is not accepted.", f"Give {error}.") from None


def _to_text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (tuple, list)):
        return (os.pathsep if any(isinstance(v, Path) for v in value) else ",").join(str(part) for part in value)
    return str(value)


def _apply(values: Mapping[str, str | None]) -> None:
    for name, text in values.items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text
