"""`traindx try`: the model of a training program as it is read from its text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from traindx_tools.errors import BadUsage

if TYPE_CHECKING:
    from traindx_tools.scope.cells import Notebooks


_RUN = re.compile(r"run from (.+?):\d+\b")
_NOTEBOOK = re.compile(r"(\S+\.ipynb):\d+\b")


@click.command("try")
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(paths: Sequence[str], as_json: bool) -> None:
    """Print what is known of the training programs in PATHS (files or folders) without running them: models,
    optimizers and what they hold, losses, the moments of a run in order, what is unknown and why.

    Each fact says how it is known: derived (it follows from the text) or guessed (it rests on a name or a default).
    """
    from traindx.safe_text import line as safe
    from traindx_tools.code_audit.read import programs_of
    from traindx_tools.program_texts import of_code
    from traindx_tools.scope.cells import Notebooks

    if not paths:
        raise BadUsage("give a Python file, a notebook or a folder of them")
    programs, notes = programs_of(paths)
    for note in notes:
        click.echo(f"note: {safe(note)}", err=True)
    if not programs:
        raise BadUsage(f"no Python code was read in {', '.join(paths)}; give a file that ends in .py or .ipynb")
    texts = [of_code.told(program) for program in programs]
    books = Notebooks.read([*map(str, paths), *(path for text in texts for path in _NOTEBOOK.findall(text))])
    if as_json:
        click.echo(json.dumps([_in_cells(of_code.as_json(p), books) for p in programs], indent=1))
        return
    for whole in texts:
        at = ""
        for text in whole.splitlines():
            run = _RUN.match(text)
            at = run[1] if run is not None else at
            click.echo(text[: len(text) - len(text.lstrip())] + safe(books.facts(text, at)))


def _in_cells(told: Any, books: Notebooks, at: str = "") -> Any:
    """The JSON with lines of notebooks as cells; `at`: the file of the run that it tells of."""
    if isinstance(told, dict):
        at = str(told["at"]).rpartition(":")[0] if "at" in told else at
        return {k: _in_cells(v, books, at) for k, v in told.items()}
    if isinstance(told, list):
        return [_in_cells(v, books, at) for v in told]
    return books.facts(told, at) if isinstance(told, str) else told
