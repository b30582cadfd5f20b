"""The command line ``ascendopt-tune``: one file per command, errors as one paragraph and exit code 2."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import AscendOptError
from ..report.lines import columns
from . import completion, examples, failure, first
from .narrow import fitting

_EPILOG = (
    "Begin with: ascendopt-tune (without arguments). "
    "Exit codes: 0 success; 1 the operator ran and failed the checks (or doctor found something that must be mended); "
    "2 an input or installation to correct, said in one paragraph; 130 interrupted; 141 nobody reads what it prints "
    "any more. Settings: ASCENDOPT_* environment variables, listed in docs/settings.md."
)

#: By group, as ``--help`` shows them: each command's file here, what it is there (a function or a group of commands),
#: and its epilog's name (none: of examples.py).
_GROUPS = {
    "First steps": {
        "doctor": ("doctor", "doctor", ""),
        "ops": ("ops", "ops", ""),
        "completion": ("completion", "completion", ""),
    },
    "Run and tune": {
        "run": ("run", "run", "EXAMPLES"),
        "tune": ("tune", "tune", "EXAMPLES"),
        "profile": ("profile", "profile", "EXAMPLES"),
        "explain": ("explain", "explain", "EXAMPLES"),
        "report": ("report", "report", "EXAMPLES"),
    },
    "Make operators": {
        "dsl": ("dsl", "app", ""),
        "generate": ("generate", "generate", "EXAMPLES"),
        "import": ("mkb", "import_", "IMPORT_EXAMPLES"),
        "export": ("mkb", "export", "EXPORT_EXAMPLES"),
    },
    "Keep and ship results": {
        "prebuild": ("prebuild", "prebuild_command", "EXAMPLES"),
        "cache": ("cache", "app", ""),
    },
    "Experience, language models, benchmarks": {
        "bank": ("bank", "app", ""),
        "llm-check": ("llm_check", "llm_check", "EXAMPLES"),
        "bench": ("bench", "app", ""),
    },
    "The virtual NPU and its clock": {
        "toolkit": ("toolkit", "toolkit", ""),
        "calibrate": ("calibrate", "calibrate_command", ""),
        "silicon-check": ("silicon_check", "silicon_check", ""),
        "fidelity": ("fidelity", "fidelity", ""),
    },
}
_COMMANDS = {name: (*where, group) for group, commands in _GROUPS.items() for name, where in commands.items()}


class _Commands(MutableMapping[str, Any]):
    """The commands by name; what a command needs is imported when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            file, attribute, epilog, group = _COMMANDS[name]
            module = importlib.import_module(f".{file}", __name__)
            found = getattr(module, attribute)
            text = getattr(module, epilog) if epilog else examples.of(name)
            if isinstance(found, typer.Typer):
                found.info.epilog = text
            else:
                function, found = found, typer.Typer(add_completion=False, rich_markup_mode="rich")
                found.command(name, epilog=text)(function)
            self[name] = fitting(typer.main.get_command(found))
            self[name].name = name
            self[name].rich_help_panel = group
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


@contextmanager
def _told() -> Iterator[None]:
    """What the parser of command lines refuses names the value, and is a document where one is asked for."""
    try:
        yield
    except Exception as error:
        failure.name_value(error)
        tell = getattr(error, "format_message", None)  # of what the parser raises
        if tell is not None and "--json" in sys.argv:
            failure.print_document(type(error).__name__, str(tell()), "Add --help for the options.")
        raise


class _Group(TyperGroup):
    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        fitting(self)
        self.commands = _Commands()

    def make_context(self, *args: Any, **how: Any) -> Any:
        """The group's own options are read before there is a context."""
        with _told():
            return super().make_context(*args, **how)

    def invoke(self, context: Any) -> Any:
        """With ``--json`` a line that can't be read and Ctrl-C where a command has no answer yet, are documents too."""
        try:
            with _told():
                return super().invoke(context)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            if "--json" in sys.argv:
                failure.print_document("Interrupted", "interrupted.", "Run the command again.")
            raise


app = typer.Typer(
    name="ascendopt-tune",
    cls=_Group,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["--help", "-h"]},  # of the commands, too
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _tell_version(asked: bool) -> None:
    if asked:
        print(f"ascendopt-tune {importlib.metadata.version('ascendopt_tune')}")
        raise typer.Exit


@app.callback()
def ascendopt_tune(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Tune custom AscendC operators (host tiling program and device kernel) on an Ascend NPU or the virtual one."""
    if context.invoked_subcommand is None:
        print(first.first_steps(columns(sys.stdout)), end="")


def _keep_freed_memory() -> None:
    """Lets the C library keep the memory of large tensors for the next ones.

    Expected outputs of large cases are made of many tensors of the same size; getting fresh pages for each from the
    system takes longer than the arithmetic.
    """
    trim_threshold, mmap_max = -1, -4  # parameters of glibc's mallopt
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 2**31 - 1)


def main() -> None:
    """Entry point: exit code 2 for an error the user can mend, told in one paragraph."""
    # References need torch on the CPU only; loading torch_npu as well would cost seconds and a device.
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    _keep_freed_memory()
    failure.prepare_output()
    if completion.VARIABLE in os.environ:
        completion.answer_shells()
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            failure.print_nothing_more()
            sys.exit(failure.NOBODY_READS)
        raise
    except BrokenPipeError:
        failure.print_nothing_more()
        sys.exit(failure.NOBODY_READS)
    except (AscendOptError, OSError, MemoryError) as error:
        sys.exit(failure.tell(error, json="--json" in sys.argv, debug="--debug" in sys.argv))
