"""`traindx hang`: the logs of all ranks of a job as one, and which rank is odd."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import click

from traindx.page import columns, wrapped
from traindx_tools.errors import UnreadableInput


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def _wrapped(lines: Iterable[str]) -> str:
    """The report at the width of the terminal, what does not fit indented below its line."""
    width = columns(sys.stdout)
    return "\n".join(part for line in lines for part in wrapped(line, width))


@click.command("hang")
@click.argument("paths", nargs=-1, required=True)
@click.option("--cluster", metavar="ADDRESS", help="A Ray cluster that reads the files (auto, ray://HOST:10001), in "
                                                   "place of "
              "processes on this machine; the report is the same.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes that read (default: one a "
                                                                         "processor).")
@click.option("--lines", "every", is_flag=True, help="The whole merged log by step, identical lines once with their "
                                                     "ranks.")
@click.option("--plot", "picture", type=str, metavar="PNG", help="Draw the ranks by step as a heat map.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on standard output, and nothing else there.")
def command(paths: tuple[str, ...], cluster: str | None, workers: int | None, every: bool, picture: str | None,
            as_json: bool) -> int:
    """Compare the logs of all ranks, hosts and restarts of a job in PATHS: who failed first, left the common sequence
    of collectives, has a batch fewer or waits for data. Steps and sequence numbers are compared, never clocks.

    Read-only. Exit code 1 where a rank is odd, 0 where none is.
    """
    from traindx.live_view import working_on
    from traindx_tools.finding import Severity
    from traindx_tools.on_logs.artifacts import discover
    from traindx_tools.on_ranks.logs import examine_ranks
    from traindx_tools.on_ranks.logs.listing import told
    from traindx_tools.sources import resolved

    with working_on("reading the logs of the ranks") as at:
        found = discover(resolved(paths), stdin=sys.stdin.buffer.read() if "-" in paths else None, most=100_000)
        many = examine_ranks(found.sources, asked=True, workers=workers, cluster=cluster,
                             left_out=found.left_out,
                             progress=lambda done, of: at(f"reading the logs of the ranks: {done:,} of {of:,} files"))
    if many is None:
        empty = [s.name for s in found.sources if s.size == 0]
        silent = (f" ({', '.join(empty[:3])}{' and others' if len(empty) > 3 else ''} empty: who writes nothing never "
                  "started, or its output goes elsewhere)") if empty else ""
        raise UnreadableInput(f"no ranks were told apart in {_files(len(found.sources))}{silent}: the logs of at least "
                              "two ranks are needed, as files a rank (rank_3.log, job_3.out) or with prefixes "
                              "([rank3]:, 3:). For one log: `traindx diagnose PATH`")
    if picture is not None:
        from pathlib import Path

        from traindx_tools.plots.ranks import plot_ranks

        click.echo(f"traindx: {plot_ranks(many, Path(picture))}", err=True)
    click.echo(json.dumps(many.to_json(), indent=1, allow_nan=False) if as_json else _wrapped(told(many, every=every)))
    return 1 if any(f.severity.rank >= Severity.MEDIUM.rank for f in many.findings) else 0
