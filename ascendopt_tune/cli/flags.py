"""Groups of options as parameters of a command.

A command says ``run: RunOptions`` or ``given: CaseFlags`` once; on the command line that is one flag for each field.
Fields with a typer annotation of their own are taken as they are, those of :class:`RunOptions` from its declaration.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any

import typer

from ..nouns.run_options import RunOptions, declarations, default_text, flag_of


class Only:
    """Which fields of a group a command has: ``run: Annotated[RunOptions, Only("chip", budget=20)]``. Those with a
    value have another default here than elsewhere."""

    def __init__(self, *names: str, **defaults: object) -> None:
        self.names, self.defaults = (*names, *defaults), defaults


class Without(Only):
    """All fields but these."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.without = names


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with its groups spread out into flags, as typer reads it."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type] = {}
    own: dict[str, str] = {}  # flag's parameter -> the group's
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        group, only = _group(parameter.annotation)
        if group is None:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group
        for flag in _flags(group, only):
            own[flag.name] = parameter.name
            parameters.append(flag)

    @functools.wraps(command)
    def call(**given: Any) -> Any:
        values: dict[str, dict[str, Any]] = {name: {} for name in groups}
        for flag, group in own.items():
            value = given.pop(flag)
            if value is not None:
                values[group][flag] = _value(groups[group], flag, value)
        return command(**given, **{name: group(**values[name]) for name, group in groups.items()})

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    del call.__wrapped__
    return call


def _group(annotation: Any) -> tuple[type | None, Only | None]:
    only = None
    if typing.get_origin(annotation) is Annotated:
        annotation, *more = typing.get_args(annotation)
        only = next((m for m in more if isinstance(m, Only)), None)
    return (annotation, only) if is_dataclass(annotation) and isinstance(annotation, type) else (None, None)


def _flags(group: type, only: Only | None) -> list[inspect.Parameter]:
    names = [f.name for f in fields(group)]
    if isinstance(only, Without):
        names = [name for name in names if name not in only.without]
    elif only is not None:
        names = list(only.names)
    hints = typing.get_type_hints(group, include_extras=True)
    by_name = {f.name: f for f in fields(group)}
    defaults = only.defaults if only is not None else {}
    make = _declared if group is RunOptions else _annotated
    return [make(by_name[name], hints[name], defaults) for name in names]


def _annotated(field: Field[Any], hint: Any, defaults: Mapping[str, object]) -> inspect.Parameter:
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    return _parameter(field.name, defaults.get(field.name, default), hint)


def _declared(field: Field[Any], hint: Any, defaults: Mapping[str, object]) -> inspect.Parameter:
    """A flag of :class:`RunOptions`: None where it isn't given, so that the declaration's default holds."""
    name, declared = field.name, declarations()[field.name]
    default = defaults.get(name)
    said = "" if field.default is False else f" Default: {default or default_text(name).replace('`', '')}."
    option = typer.Option(
        flag_of(name),
        help=declared.text + said,
        metavar=declared.metavar,
        min=declared.minimum,
        max=declared.maximum,
        rich_help_panel=declared.panel,
        show_default=False,
    )
    return _parameter(name, default, Annotated[(str if declared.parse is not None else hint) | None, option])


def _parameter(name: str, default: object, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _value(group: type, name: str, value: Any) -> Any:
    parse = declarations()[name].parse if group is RunOptions else None
    return parse(value) if parse is not None else value
