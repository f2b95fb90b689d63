"""`traindx replay`: the batch that a program failed on, checked on the CPU."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click


@click.command("replay")
@click.argument("file", type=str, metavar="FILE_OR_FOLDER")
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on standard output.")
def command(file: str, as_json: bool) -> int:
    """Check the batch in FILE (traindx-run/TIME/rank00000.batch.npz), which `traindx run` kept when a program failed.

    A folder of a run stands for the batch in it; where several ranks kept one, name one of them.

    A device-side assert becomes a plain error: which index, where, in which table. Nothing is unpickled or run. The
    exit code is 1 where an index is out of range.
    """
    from traindx_tools.live.batch_file import batch_in, read_batch, replay

    arrays, checks = read_batch(batch_in(Path(file)))
    outcomes = replay(arrays, checks)
    if as_json:
        click.echo(json.dumps({"arrays": {k: [str(a.dtype), list(a.shape)] for k, a in arrays.items()},
                               "outcomes": [{**asdict(o), "text": str(o)} for o in outcomes]}))
    else:
        for name, array in arrays.items():
            click.echo(f"{name}: {array.dtype} {list(array.shape)}")
        for outcome in outcomes or ():
            click.echo(str(outcome))
        if not outcomes:
            click.echo("nothing in it is known to be an index or a label")
    return int(any(o.bad for o in outcomes))
