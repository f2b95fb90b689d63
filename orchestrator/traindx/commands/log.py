"""`traindx log`: the metrics of any run in one table."""

from __future__ import annotations

import sys

import click


@click.command("log")
@click.argument("paths", nargs=-1, required=True)
@click.option("--format", "form", default="table", show_default=True, type=click.Choice(["table", "csv", "json"]))
def command(paths: tuple[str, ...], form: str) -> None:
    """Print the metrics of the run in PATHS: step, epoch, time, canonical and original names, line numbers."""
    from traindx_tools.on_logs import read_run, table_of

    stdin = sys.stdin.buffer.read() if "-" in paths else None
    run = read_run(paths, stdin=stdin)
    for artifact in run.artifacts:
        if artifact.note:
            click.echo(f"traindx: {artifact.path}: {artifact.note}", err=True)
    click.echo(table_of(run).render(form), nl=False)
