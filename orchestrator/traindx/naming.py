"""`--name OWN=KNOWN`, `--line EXAMPLE`: what names and lines of a log mean, where a person knows and no reader does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import click

from traindx_tools.errors import BadUsage

Command = TypeVar("Command", bound=Callable[..., object])


def name_option(command: Command) -> Command:
    """Adds `--name` and `--line` to a command; what `--name` is given goes through `names_of`."""
    command = click.option("--line", "forms", multiple=True, metavar="EXAMPLE",
                           help="What the numbers of a line are: the line with names in their places, as in --line "
                                "'{step} | {loss} | {lr}'; {} passes over anything. May be repeated.")(command)
    option = click.option("--name", "own_names", multiple=True, metavar="OWN=KNOWN",
                          help="What a name in the log stands for, as in --name 'Verlust=loss'. May be repeated.")
    return option(command)


def names_of(given: tuple[str, ...]) -> Mapping[str, str]:
    """{"Verlust": "loss"} of ("Verlust=loss",). Raises BadUsage where one is not of that form."""
    found: dict[str, str] = {}
    for one in given:
        own, equals, known = one.rpartition("=")
        if not equals or not own.strip() or not known.strip():
            raise BadUsage(f"--name {one!r} is not of the form OWN=KNOWN, as in --name 'Verlust=loss'")
        found[own.strip()] = known.strip()
    return found
