"""A part of a file is that of an earlier file of the run, to the bit, although it moved in between; the rest is not.

Training does not come back to a value. Where tensors of a checkpoint or of an average are those of a file of an earlier
step, while another file, no later than it, holds other values of them, they were not updated, or were filled from the
old file. A whole file that is an earlier one is a copy (the best, the last), and a part that no file shows to have
moved may be frozen: nothing is said of either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.file_sets import Saved, file_sets
from traindx_tools.rules import Rule, Threshold

_MATRICES, _SHARE = 3, 0.5

RULE = Rule(
    id="W162",
    name="earlier-part",
    title="A part of a checkpoint went back to an earlier one",
    severity=Severity.HIGH,
    sees="Which tensors are the same to the bit in any two files of one model, and which of them moved in a third one "
         "whose step lies between.",
    matters="The part does not fit the rest, which was trained on without it.",
    alike=("a copy of a whole file", "what was frozen throughout, or until a later step",
           "a target network, which is copied as a whole"),
    confirm=("compare the named tensors of the three files",
             "evaluate the file with the tensors of the one in between"),
    thresholds={
        "others": Threshold(_MATRICES, "tensors, at least, that all three files hold otherwise", "else it is a copy"),
        "share": Threshold(_SHARE, "of the tensors that moved, at most, that are the earlier file's", "the same"),
    },
)


def check_files(read: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Each file's at most once, against the file that most of it is from. Raises UnreadableInput."""
    for files in file_sets(read):
        known = [f for f in files if f.step is not None]
        for late in known:
            found = [f for early in known if (f := _taken(early, late, known))]
            if found:
                yield _finding(late, *max(found, key=lambda f: len(f[2])))


def _taken(early: Saved, late: Saved, files: Sequence[Saved]) -> tuple[Saved, Saved, list[str], int] | None:
    """The earlier file, one in between, the tensors that are the same in the outer two and not in it, and how many
    moved."""
    assert early.step is not None
    assert late.step is not None
    if not early.step < late.step:
        return None
    moving = [n for n in late.tensors if n not in early.constants & late.constants]
    same = [n for n in moving if early.digest(n) == late.digest(n)]
    if not same or len(moving) - len(same) < max(_MATRICES, _SHARE * len(moving)):
        return None
    for middle in files:
        assert middle.step is not None
        if middle in (early, late) or not early.step < middle.step <= late.step:
            continue
        back = [n for n in same if middle.digest(n) != early.digest(n)]
        others = sum(len({f.digest(n) for f in (early, middle, late)}) == 3 for n in moving)
        if any(late.tensors[n].matrix for n in back) and others >= _MATRICES:
            return early, middle, back, len(moving)
    return None


def _finding(late: Saved, early: Saved, middle: Saved, names: Sequence[str], of: int) -> Finding:
    told = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return RULE.finding(
        f"{told} in {late.path} {'is' if len(names) == 1 else 'are'} to the bit what {os.path.basename(early.path)} "
        f"(step {early.step}) holds, and moved up to {os.path.basename(middle.path)} (step {middle.step}); the other "
        f"{of - len(names)} tensors that move are not: this part was left behind or filled from the old file",
        Location(file=late.path, module=names[0]), late.path, bearing=Bearing.CAUSE,
        measured={"kind": "back", "name": names[0], "tensors": len(names), "of": of, "step": early.step or 0})
