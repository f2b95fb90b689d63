"""`traindx plot`: the picture of a run."""

from __future__ import annotations

import click

from traindx.naming import name_option, names_of


@click.command("plot")
@click.argument("paths", nargs=-1, required=True)
@click.option("--out", default="traindx-plot.png", show_default=True, help="The PNG to write.")
@name_option
def command(paths: tuple[str, ...], out: str, own_names: tuple[str, ...], forms: tuple[str, ...]) -> None:
    """Draw loss, gradient norm and learning rate of the run in PATHS, with the findings marked."""
    from pathlib import Path

    from traindx_tools.plots import visualize_loss_curve

    before = Path(out).exists()
    click.echo(visualize_loss_curve(paths, out, names=names_of(own_names), lines=forms))
    if before:
        click.echo(f"traindx: {out} was there and is replaced (--out FILE keeps both)", err=True)
