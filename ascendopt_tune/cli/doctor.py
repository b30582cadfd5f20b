"""``ascendopt-tune doctor``: what was found on this machine, what is missing, and the next step."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
import subprocess
import warnings
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from .. import paths
from ..build import toolkit as toolkits
from ..errors import AscendOptError
from ..evaluate import sandbox
from ..llm.endpoint import Endpoint
from ..nouns.chip import chip_names, load_chip
from ..report.lines import folded
from ..report.text import counted, json_text
from ..settings import settings
from ..store.bundle import is_bundle
from ..store.cache import Cache
from ..store.index import read_row
from ..store.root import entry_folders
from ..torch_ops.serving import fast_build
from . import options


@dataclass(frozen=True)
class Checkup:
    """One line: ``state`` is ``ok``, ``missing`` (something optional) or ``error`` (nothing works without it)."""

    name: str
    state: str
    found: str
    next_step: str = ""


def _compiler() -> Checkup:
    try:
        path = toolkits.host_compiler()
    except AscendOptError as e:
        return Checkup("host compiler", "error", e.message, e.hint)
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return Checkup("host compiler", "ok", f"{path}: {version.splitlines()[0] if version else 'unknown version'}")


def _disassembler() -> Checkup:
    path = shutil.which("objdump")
    if path is None:
        return Checkup(
            "objdump", "error", "not on PATH", "Install binutils: kernels are looked at before they are loaded."
        )
    return Checkup("objdump", "ok", path)


def _sandbox() -> Checkup:
    """What confines candidates here (docs/gate.md)."""
    found = sandbox.protections()
    whole = any(p.startswith("landlock") for p in found) and "seccomp" in found
    text = ", ".join(found) or "none"
    return Checkup("sandbox", "ok" if whole else "missing", text, "docs/gate.md says what is off without the others.")


def _virtual_toolkit() -> Checkup:
    try:
        found = toolkits.virtual()
    except AscendOptError as e:
        return Checkup("virtual NPU", "error", e.message, e.hint)
    return Checkup("virtual NPU", "ok", f"{found.version} in {found.prefix}")


def _cann() -> Checkup:
    prefix = toolkits.real_cann()
    if prefix is None:
        return Checkup(
            "CANN toolkit", "missing", "none", "On a machine with an NPU: install CANN >= 9.0, source set_env.sh."
        )
    return Checkup("CANN toolkit", "ok", str(prefix))


def _devices() -> Checkup:
    nodes = sorted(p.name for p in Path("/dev").glob("davinci[0-9]*"))
    if not nodes:
        return Checkup("NPU devices", "missing", "none", "Times will be modelled by the virtual NPU, not measured.")
    return Checkup("NPU devices", "ok", ", ".join(nodes))


def _package(name: str, hint: str) -> Checkup:
    try:
        return Checkup(name, "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Checkup(name, "missing", "not installed", hint)


def _torch() -> Checkup:
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return Checkup("torch", "missing", "not installed", 'pip install -c constraints.txt "ascendopt_tune[torch]".')
    version_py = Path(spec.submodule_search_locations[0]) / "version.py"  # read as text: importing may abort
    text = version_py.read_text(encoding="utf-8") if version_py.exists() else ""
    cuda = re.search(r"^cuda.*=\s*'(.+)'", text, re.MULTILINE)
    version = importlib.metadata.version("torch")
    if cuda:
        return Checkup(
            "torch", "error", f"{version} is a CUDA build; torch_npu aborts with it", "Install the CPU build."
        )
    return Checkup("torch", "ok", version)


def _fast_path() -> list[Checkup]:
    """Whether hits can be served in C++; nothing, without torch and torch_npu."""
    found = [find_spec(name) for name in ("torch", "torch_npu")]
    places = [Path(s.submodule_search_locations[0]) for s in found if s is not None and s.submodule_search_locations]
    if len(places) < 2:
        return []
    if not settings().fast_path:
        return [
            Checkup("fast path", "missing", "switched off", "Unset ASCENDOPT_FAST_PATH to have hits served in C++.")
        ]
    try:
        fast_build.headers(*places)
    except AscendOptError as e:
        return [Checkup("fast path", "missing", e.message, e.hint)]
    return [Checkup("fast path", "ok", "can be compiled (once, on first use); then hits are served in C++")]


def _cache() -> Checkup:
    try:
        options.check_cache_folder()
    except AscendOptError as e:
        return Checkup("cache folder", "error", e.message, e.hint)
    return Checkup("cache folder", "ok", str(paths.cache_dir()))


def _layers() -> list[Checkup]:
    """Each layer that is asked for: a wrong path would serve nothing, and nobody would say so."""
    return [_layer(layer) for layer in settings().cache_layers]


def _layer(layer: Path) -> Checkup:
    if not layer.is_dir():
        next_step = "Correct ASCENDOPT_CACHE_LAYERS: without the folder the originals serve."
        return Checkup("cache layer", "error", f"there is no folder {layer}", next_step)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        count = sum(s.folder.is_relative_to(layer) for s in Cache(paths.cache_dir(), layers=(layer,)).items())
    if said:
        return Checkup("cache layer", "error", str(said[0].message))
    folders = [] if is_bundle(layer) else entry_folders(layer, None)
    if damaged := sum(read_row(folder) is None for folder in folders):
        found = f"{layer}: {damaged} of {counted(len(folders), 'result')} can't be used"
        return Checkup("cache layer", "error", found, "ascendopt-tune cache verify says what is wrong with each.")
    return Checkup("cache layer", "ok", f"{layer}: {counted(count, 'result')}")


def _chip() -> Checkup:
    chip = settings().chip
    try:
        return Checkup("chip", "ok", f"{load_chip(chip).name} (of {', '.join(chip_names())})")
    except AscendOptError as e:
        return Checkup("chip", "error", e.message, f"Set ASCENDOPT_CHIP: a file, or of {', '.join(chip_names())}.")


def _target() -> Checkup:
    target = settings().target
    if target == "npu" or (target == "auto" and toolkits.real_cann() is not None):
        return Checkup("target", "ok", f"{target}: the NPU; times are measured")
    return Checkup("target", "ok", f"{target}: the virtual NPU; times are modelled")


def _model() -> Checkup:
    endpoint = Endpoint.of(settings())
    if endpoint is None:
        return Checkup(
            "language model", "missing", "none configured", "The rules propose alone; docs/llm.md tells more."
        )
    return Checkup("language model", "ok", f"{endpoint.model} at {endpoint.shown_url} (try `ascendopt-tune llm-check`)")


def findings() -> list[Checkup]:
    """Everything doctor looks at, in the order it is shown."""
    return [
        Checkup("python", "ok", f"{platform.python_version()} on {platform.machine()}"),
        _compiler(),
        _disassembler(),
        _sandbox(),
        _virtual_toolkit(),
        _cann(),
        _devices(),
        _torch(),
        _package("torch_npu", 'For the torch integration: pip install -c constraints.txt "ascendopt_tune[torch]".'),
        *_fast_path(),
        _cache(),
        *_layers(),
        _chip(),
        _target(),
        _model(),
    ]


_INDENT = 23  # of what was found: behind state and name


def _print(found: list[Checkup]) -> None:
    """A line for each, with the next step below it where there is one to take."""
    colour = {"ok": "green", "missing": "yellow", "error": "red"}
    console = Console(highlight=False, soft_wrap=True)
    for f in found:
        line = Text(folded(f"{f.state:8}{f.name:15}{f.found}", console.file, _INDENT))
        line.stylize(colour[f.state], 0, len(f.state))
        console.print(line)
        if f.state != "ok":
            console.print(Text(folded(f"{'':{_INDENT}}{f.next_step}", console.file)))


def doctor(json: options.Json = False, debug: options.Debug = False) -> None:
    """Show which toolkit, device, compiler, torch and torch_npu were found, and the next step for what is missing.

    Exit code 1 when something is missing that nothing works without.
    """
    found = findings()
    ok = all(f.state != "error" for f in found)
    if json:
        print(json_text({"findings": [asdict(f) for f in found], "ok": ok}))
    else:
        _print(found)
    if not ok:
        raise typer.Exit(1)
