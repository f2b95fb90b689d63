"""A run pauses again and again, far longer than its records are apart, and at no evaluation, checkpoint or epoch.

Pauses are found in the time stamps (`pauses.py`). What comes at even distances in records or time, at epochs, or beside
an evaluation or a checkpoint that has a line of its own is how training is done, and a remark with the time that it
takes. Pauses without such a pattern wait for something: a file system, a connection, a slow host, other jobs. What goes
ahead of them in the log is asked by L801. One or two long gaps are judged by L403.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.pauses import FEWEST, ROOM, SECONDS, TIMES, Pauses, pauses_of
from traindx_tools.on_logs.curves.shapes import number, place
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

LOST, LONG = 0.1, 60.0

RULE = Rule(
    id="L405",
    name="pauses",
    title="Training pauses again and again",
    severity=Severity.MEDIUM,
    sees="the time between records of the training loss, by the time stamps of the log",
    matters="The hardware stands still for that time, and what is waited for may fail altogether.",
    alike=("Evaluations and checkpoints: even, or beside lines of their own; told as a remark.",
           "Pre-emptions: a resume follows, and they are left out.",
           "Buffered output: records come in bursts, with no usual distance."),
    confirm=("See which lines go ahead of the pauses: grep -B3 at the lines that are named.",
             "py-spy dump --pid PID while it pauses: what is waited for?"),
    thresholds={
        "seconds": Threshold(SECONDS, "seconds", "shorter ones are collections of garbage and file systems"),
        "times": Threshold(TIMES, "times the distance that nine tenths of the records keep", "beyond slow batches"),
        "room": Threshold(ROOM, "times the longest other distance", "else distances vary by nature"),
        "fewest": Threshold(FEWEST, "pauses", "fewer are judged one by one (L403)"),
        "lost": Threshold(LOST, "of the whole time", "below, a minor finding"),
        "long": Threshold(LONG, "seconds", "below, a minor finding"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """One finding on the pauses of the main loss."""
    loss = main_loss(run)
    if loss is not None and loss.group == "train" and (found := pauses_of(run, loss)) is not None:
        yield _finding(found)


def _finding(p: Pauses) -> Finding:
    s, seconds = p.series, float(np.median(p.seconds))
    first = ", ".join(place(s, int(i)) for i in p.at[:3])
    more = " ..." if len(p.at) > 3 else ""
    told = (f"{len(p.at)} times training pauses for about {number(seconds)} s ({first}{more}), {100 * p.lost:.0f} % "
            f"of its time; records are usually {number(p.usual)} s apart")
    if p.regular:
        told += ". They are regular, as evaluations and checkpoints are"
    severe = p.lost >= LOST and seconds >= LONG
    severity = Severity.INFO if p.regular else Severity.MEDIUM if severe else Severity.LOW
    return RULE.finding(told, s.at(int(p.at[0]), int(p.at[-1])), s.source, bearing=Bearing.COMPANION, severity=severity,
                        measured={"kind": "regular" if p.regular else "irregular", "pauses": len(p.at),
                                  "seconds": seconds, "usual": p.usual, "lost": p.lost, "own": p.own,
                                  "position": float(s.position[p.at[0]])})
