"""Training goes on from a checkpoint whose optimizer, schedule or scaler state is left in the file.

The weights of the file were used and steps followed; a state of the optimizer (with moments in it), the schedule or the
GradScaler lies beside them, the program has such an object, and nobody loaded it. `kind`: "resume" where the program
writes to the very path that it read, or restored another of these states: it goes on, and does so in part; "own-format"
where it writes files with the same keys; "weights-only" otherwise: fine-tuning takes weights alone on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.state import SOURCE, Rest
from traindx_tools.rules import Rule, Threshold

STEPS = 3

RULE = Rule(
    id="T323",
    name="rest-not-restored",
    title="A checkpoint is restored in part",
    severity=Severity.HIGH,
    sees="states of optimizer, schedule and scaler in a file whose weights were loaded, against what was loaded",
    matters="moments are cold, the rate starts again: the loss jumps at the resume",
    alike=("fine-tuning, which takes the weights alone", "a file that is read to be evaluated"),
    confirm=("print(len(optimizer.state), scheduler.last_epoch)  # right after loading",),
    thresholds={"steps": Threshold(STEPS, "optimizer steps after the reading", "fewer are an evaluation")},
)

_SEVERITY = {"resume": Severity.HIGH, "own-format": Severity.MEDIUM, "weights-only": Severity.LOW}


def check(files: Sequence[Rest]) -> Iterator[Finding]:
    """One finding a file and kind of state."""
    for f in files:
        if f.steps_after < STEPS:
            continue
        resumes = f.same_path or bool(f.restored)
        kind = "resume" if resumes else "own-format" if f.own_format else "weights-only"
        why = ("; the program writes to that path" if f.same_path else
               f"; {', '.join(f.restored)} was restored" if f.restored else
               "; the program writes files with the same keys" if f.own_format else "")
        for what in f.left:
            yield RULE.finding(
                f"{f.path} holds the state of the {what}, its weights were loaded, {f.steps_after} steps followed, and "
                f"nobody loaded that state{why}", f.at.where(), SOURCE,
                bearing=Bearing.CAUSE if kind == "resume" else Bearing.SIGN, severity=_SEVERITY[kind],
                measured={"kind": f"{what} {kind}", "what": what, "path": f.path, "steps": f.steps_after})
