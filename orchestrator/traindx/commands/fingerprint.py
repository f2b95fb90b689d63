"""`traindx fingerprint`: what a run was given, in numbers; and what is otherwise in another one."""

from __future__ import annotations

import json
from pathlib import Path

import click

from traindx_tools.errors import BadUsage, UnreadableInput

SHOWN = 40


@click.command(
    "fingerprint",
    epilog="""\b
Exit codes: 0 nothing differs (or nothing was compared), 1 something differs, 2
nothing that could be read.
""",
)
@click.argument("paths", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), help="Write the fingerprint to this file.")
@click.option("--against", type=click.Path(path_type=Path), help="Compare with the fingerprint in this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--seconds", default=600.0, show_default=True, type=click.FloatRange(min=0.1),
              help="Begin no new data file after that time; what was not read is named.")
def command(paths: tuple[str, ...], out: Path | None, against: Path | None, as_json: bool, seconds: float) -> int:
    """Take the fingerprint of PATHS: files, statistics of data by shard, tensors of checkpoints, settings, versions.

    Keep that of a good run (--out FILE); when a run fails, --against FILE says what is otherwise. A fingerprint holds
    statistics and checksums, no row of the data.
    """
    from traindx.durable import write_state
    from traindx.safe_text import line
    from traindx_tools.fingerprint import compare, load, take

    if not paths:
        raise BadUsage("give the folder of a run, or its data, checkpoints and configuration files")
    if out is not None and out.exists():
        _ours(out)
    good = load(against) if against is not None else None
    here = take(paths, seconds=seconds)
    if out is not None:
        write_state(out, json.dumps(here.to_json(), indent=1).encode())
    differences = compare(good, here) if good is not None else ()
    if as_json:
        told = {"differences": [d.to_json() for d in differences]} if good is not None else here.to_json()
        click.echo(json.dumps({**told, "notes": list(here.notes)}, indent=1))
        return int(bool(differences))
    lines = [f"{d.place}: {d.said}" for d in differences[:SHOWN]]
    if len(differences) > SHOWN:
        lines.append(f"and {len(differences) - SHOWN} more (--json names them all)")
    lines.append(f"{len(differences)} differences from {against}" if good is not None else
                 f"{len(here.files)} files, {len(here.data)} with data, {len(here.weights)} with weights, "
                 f"{len(here.settings)} with settings" + (f", written to {out}" if out is not None else ""))
    for text in (*lines, *(f"note: {n}" for n in here.notes)):
        click.echo(line(text))
    return int(bool(differences))


def _ours(path: Path) -> None:
    """Raises BadUsage for a file that is no fingerprint: nothing of the user's is written over."""
    from traindx_tools.fingerprint import load

    try:
        load(path)
    except UnreadableInput:
        raise BadUsage(f"{path} is there already and no fingerprint: give --out another name") from None
