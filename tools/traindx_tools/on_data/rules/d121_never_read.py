"""Files of a split lie there and the run did not open them, while it opened others.

A pattern that matches one digit alone (`shard_?.npy` beyond ten shards), a range that ends too early, a list that was
written before the last files came. It is a fact and no fault by itself: files may be kept for later on purpose. Files
that a worker process or a library in C opens are not seen, so nothing is said where fewer than three were seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import listed, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

OPENED = 3

RULE = Rule(
    id="D121",
    name="never-read",
    title="Data files are never read",
    severity=Severity.INFO,
    sees="the files that the running program opened, against those of the same form that lie beside them",
    matters="the model is trained on less than there is, or evaluated on a part",
    alike=("files that are kept for later", "files that worker processes open by themselves: not seen"),
    confirm=("print(len(files))  # of what the program lists, against what the folder holds",),
    thresholds={"opened": Threshold(OPENED, "files that were opened", "fewer may be named one by one")},
)


def check(view: View) -> Iterator[Finding]:
    """Nothing: files alone do not say what a program opens."""
    return iter(())


def check_files(split: str, files: int, left: Sequence[Shard]) -> Iterator[Finding]:
    """`left`: of so many files of a split those that the run did not open."""
    if not left or files - len(left) < OPENED:
        return
    rows = sum(s.total for s in left)
    yield RULE.finding(
        f"{len(left)} of {files} {split + ' ' if split else ''}files are never opened by the run, {rows} rows: "
        f"{listed([short(s) for s in left])}", place(left[0]), left[0].name, bearing=Bearing.COMPANION,
        measured={"kind": "files", "files": len(left), "of": files, "rows": rows, "split": split})
