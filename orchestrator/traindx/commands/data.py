"""`traindx data`: what data files hold."""

from __future__ import annotations

from pathlib import Path

import click

from traindx_tools.errors import BadUsage

SECONDS = 60.0


@click.command(
    "data",
    epilog="""\b
Exit codes: 0 nothing wrong (remarks of severity info alone), 1 something was
found, 2 nothing that could be read.
""",
)
@click.argument("paths", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--seconds",
    default=SECONDS,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="Begin no new file after that time; what was not read is named.",
)
@click.option(
    "--all",
    "all_rows",
    is_flag=True,
    help="Look at every row of a large set in full, not at a sample of them and once over all.",
)
@click.option(
    "--sheet",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw samples beside their labels, those that are named first, into this PNG.",
)
def command(paths: tuple[str, ...], as_json: bool, seconds: float, all_rows: bool, sheet: Path | None) -> int:
    """Read the data files in PATHS (files, folders, globs) and say what is wrong in them, by file, field and row.

    Nothing that a file contains is executed, and nothing is written.
    """
    from traindx.data_report import json_of, lines_of
    from traindx.safe_text import line
    from traindx_tools.on_data import examine
    from traindx_tools.on_data.examination import require_data

    if not paths:
        raise BadUsage("give data files, a folder or a glob, e.g. `traindx data data/`")
    report = examine(paths, seconds=seconds, all_rows=all_rows)
    require_data(report, paths)
    if sheet is not None:
        from traindx_tools.plots.contact_sheet import contact_sheet

        folders = [Path(p) for p in paths if Path(p).is_dir()]
        contact_sheet(report, sheet, folders[0] if folders else None)
    if as_json:
        click.echo(json_of(report))
    else:
        for text in lines_of(report):
            click.echo(line(text))
    return int(bool(report.wrong))
