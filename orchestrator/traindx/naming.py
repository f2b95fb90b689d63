"""`--name OWN=KNOWN`: what the names in a log stand for, where a person knows and no reader does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import click

from traindx_tools.errors import BadUsage

Command = TypeVar("Command", bound=Callable[..., object])


def name_option(command: Command) -> Command:
    """Adds `--name` to a command; what it is given goes through `names_of`."""
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
