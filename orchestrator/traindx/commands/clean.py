"""`traindx clean`: remove what can be made again."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from traindx_tools.errors import BadUsage

DAY = 86400.0


@click.command("clean")
@click.argument("workspace", default=".")
@click.option("--older-than", type=click.FloatRange(min=0), default=0.0, metavar="DAYS",
              help="Only what was last written to more than so many days ago.")
@click.option("--sessions", is_flag=True, help="Sessions that ended as well: with them goes what was found and tried.")
@click.option("--yes", is_flag=True, help="Remove without asking.")
def command(workspace: str, older_than: float, sessions: bool, yes: bool) -> int:
    """Remove reports, pictures and kept runs below WORKSPACE/scratch/debug.

    Sessions that wait, strikes and notes stay. Without --yes it lists what would go, and asks at a terminal.
    """
    from traindx.cleaning import SESSIONS, leftovers, remove
    from traindx.safe_text import line

    if not Path(workspace).is_dir():
        raise BadUsage(f"there is no folder {workspace}: give the folder of the training code")
    found = leftovers(Path(workspace), sessions=sessions, older_than=older_than * DAY)
    every = leftovers(Path(workspace), sessions=True, young=-DAY)
    stay = [words for words, count in (
        ("written to in the last minute" if older_than == 0 else "newer",
         sum(f.kind != SESSIONS for f in every) - sum(f.kind != SESSIONS for f in found)),
        ("of sessions that ended (--sessions)", 0 if sessions else sum(f.kind == SESSIONS for f in every))) if count]
    kept = f"; what is {' or '.join(stay)} stays" if stay else ""
    if not found:
        click.echo(f"nothing to remove below {line(workspace)}/scratch/debug{kept}")
        return 0
    sizes: Counter[str] = Counter()
    for one in found:
        sizes[one.kind] += one.bytes
    for kind, size in sizes.most_common():
        count = sum(1 for f in found if f.kind == kind)
        click.echo(f"{_size(size):>9}  {count} folder{'s' * (count != 1)}: {kind}")
    if not yes and not (sys.stdin.isatty() and click.confirm("remove them?", default=False)):
        click.echo("nothing was removed; --yes removes them")
        return 0
    left = [(one, why) for one, why in remove(found) if why]
    for one, why in left:
        click.echo(f"traindx: {line(str(one.path))} is still there: {line(why)}", err=True)
    click.echo(f"removed {len(found) - len(left)} of {len(found)} folders, "
               f"{_size(sum(f.bytes for f in found) - sum(one.bytes for one, _ in left))}")
    return 2 if left else 0


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
