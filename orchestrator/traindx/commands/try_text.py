"""`traindx try`: the model of a training program as it is read from its text."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from traindx_tools.errors import BadUsage


@click.command("try")
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(paths: Sequence[str], as_json: bool) -> None:
    """Print what is known of the training programs in PATHS (files or folders) without running them: models,
    optimizers and what they hold, losses, the moments of a run in order, what is unknown and why.

    Each fact says how it is known: derived (it follows from the text) or guessed (it rests on a name or a default).
    """
    from traindx.safe_text import line as safe
    from traindx_tools.on_code.filling.read import programs_of
    from traindx_tools.program import told

    if not paths:
        raise BadUsage("give a Python file, a notebook or a folder of them")
    programs, notes = programs_of(paths)
    for note in notes:
        click.echo(f"note: {safe(note)}", err=True)
    if not programs:
        raise BadUsage(f"no Python code was read in {', '.join(paths)}; give a file that ends in .py or .ipynb")
    if as_json:
        click.echo(json.dumps([told.as_json(p) for p in programs], indent=1))
        return
    for program in programs:
        for text in told.told(program).splitlines():
            click.echo(text[: len(text) - len(text.lstrip())] + safe(text))
