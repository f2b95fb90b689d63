"""`--entry FILE` and `--all`: which files belong to the run, where a person says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from traindx_tools.scope import Asked

Command = TypeVar("Command", bound=Callable[..., Any])


def scope_options(command: Command) -> Command:
    """Adds both options to a command, as `entry` and `everything`."""
    whole = click.option("--all", "everything", is_flag=True,
                         help="Judge all code that was given, also what the run does not use.")
    entry = click.option("--entry", multiple=True, metavar="FILE",
                         help="The Python file that starts the training: it and what it imports are judged. May be "
                              "repeated. By default it is found, and the output says how.")
    return entry(whole(command))


def which_option(command: Command) -> Command:
    """`--which N`: the run that is judged, where a log holds several."""
    return click.option("--which", type=click.IntRange(min=1), metavar="N",
                        help="The run to judge where a log holds several, from 1 (default: the last).")(command)


def asked_of(entry: Sequence[str], everything: bool, *commands: str | Sequence[str] | None,
             which: int | None = None) -> Asked:
    """What was said of the run's files. `commands`: those that start the run, as a text or as arguments."""
    import shlex

    from traindx_tools.scope import Asked

    typed = (c if isinstance(c, str) else shlex.join(c) for c in commands if c)
    return Asked(tuple(entry), everything, tuple(typed), which=which)
