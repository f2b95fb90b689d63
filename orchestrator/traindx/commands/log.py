"""`traindx log`: the metrics of any run in one table."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from traindx.naming import name_option, names_of
from traindx_tools.errors import UnreadableInput

if TYPE_CHECKING:
    from traindx_tools.artifact import Artifact

AT_A_TERMINAL = 24
"""Rows of a table that a person is shown: a screen."""


@click.command("log")
@click.argument("paths", nargs=-1, required=True)
@click.option("--format", "form", default="table", show_default=True, type=click.Choice(["table", "csv", "json"]))
@click.option("--anomalies", is_flag=True, help="What stands out in each series, whatever its name, in place of the "
              "values: spikes, steps, drifts, periods, halvings, copies.")
@click.option("--merged", is_flag=True, help="The logs of all ranks of a job as one text by step, identical lines "
              "once with their ranks, in place of the values.")
@click.option("--rows", type=click.IntRange(min=0), metavar="N",
              help=f"Rows of each table, 0: all of them (default: {AT_A_TERMINAL} at a terminal, all in a pipe).")
@name_option
def command(paths: tuple[str, ...], form: str, anomalies: bool, merged: bool, rows: int | None,
            own_names: tuple[str, ...], forms: tuple[str, ...]) -> None:
    """Print the metrics of the run in PATHS: step, epoch, time, canonical and original names, line numbers."""
    from traindx.places import common_root
    from traindx.project_file import read_project_file
    from traindx_tools.on_logs import read_run, table_of
    from traindx_tools.on_logs.anomalies.listing import listed
    from traindx_tools.sources import resolved

    paths = resolved(paths)
    if merged:
        click.echo("\n".join(_merged(paths)))
        return
    stdin = sys.stdin.buffer.read() if "-" in paths else None
    known = read_project_file(common_root(paths))
    run = read_run(paths, stdin=stdin, names={**known.names, **names_of(own_names)}, lines=(*known.lines, *forms))
    table = table_of(run)
    if not len(table):
        read = "; ".join(f"{a.path}: {a.note or _of_no_use(a)}" for a in run.artifacts[:5])
        raise UnreadableInput(f"no metrics were found ({read or 'nothing was read'}). Give the training log or the "
                              "metrics file of the run, or the folder that holds them")
    for line in _remarks(run.artifacts):
        click.echo(f"traindx: {line}", err=True)
    most = rows if rows is not None else AT_A_TERMINAL if sys.stdout.isatty() else 0
    click.echo(listed(run).render(form) if anomalies else table.render(form, most), nl=False)


def _of_no_use(artifact: Artifact) -> str:
    """What a file without metrics holds."""
    form = artifact.format.replace("_", " ")
    return f"{form}, {artifact.unused:,} lines of which hold numbers under names that do not recur; --line " \
           "'T{step}: {loss} @ {lr}' says what the numbers of such a line are" if artifact.unused else form


def _merged(paths: Sequence[str]) -> Iterator[str]:
    """The lines of all ranks by step. Raises UnreadableInput where no ranks are told apart."""
    from traindx_tools.on_logs.artifacts import discover
    from traindx_tools.on_ranks.logs import examine_ranks
    from traindx_tools.on_ranks.logs.listing import merged

    many = examine_ranks(discover(paths, most=100_000).sources, asked=True)
    if many is None:
        raise UnreadableInput("no ranks were told apart: --merged needs the logs of at least two ranks, as files a "
                              "rank "
                              "(rank_3.log, job_3.out) or with prefixes ([rank3]:, 3:)")
    return merged(many)


def _remarks(artifacts: Sequence[Artifact]) -> Iterator[str]:
    """What is said of files that were not read whole; of many refused for one reason, the first and their count."""
    alike = Counter(a.note for a in artifacts if a.note.startswith("refused"))
    for artifact in artifacts:
        more = alike.get(artifact.note, 1) - 1
        if artifact.note and more >= 0:
            yield f"{artifact.path}{f' and {more:,} more' if more else ''}: {artifact.note}"
        if artifact.note in alike:
            alike[artifact.note] = 0
