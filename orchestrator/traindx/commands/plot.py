"""`traindx plot`: the picture of a run."""

from __future__ import annotations

from pathlib import Path

import click

from traindx_tools.errors import UnreadableInput


@click.command("plot")
@click.argument("paths", nargs=-1, required=True)
@click.option("--out", default="traindx-plot.png", show_default=True, help="The PNG to write.")
def command(paths: tuple[str, ...], out: str) -> None:
    """Draw loss, gradient norm and learning rate of the run in PATHS, with the findings marked."""
    from traindx_tools.on_logs import read_run
    from traindx_tools.on_logs.judge import judge_run
    from traindx_tools.plots import plot_run

    run = read_run(paths)
    try:
        click.echo(plot_run(run, judge_run(run), Path(out)))
    except OSError as error:
        raise UnreadableInput(f"cannot write {out}: {error.strerror}. Name another file with --out") from error
