"""The step in which something went wrong was run again on copies, and a change takes the symptom away.

`traindx run --snapshot` keeps each step (of JAX: the arguments of each call). Where a loss, gradient or parameter is
not finite, or a loss or gradient norm jumps, the step is run again in the process: as it is, which must give the very
numbers again, and with one change at a time: precision, dropout, statistics, clipping, rate, decay, the optimizer's
state, gradients of earlier steps, rows of the batch, keys. Where the parameters before the last update do not show the
symptom, that update brought it, and the changes are made to it; else they are made to the forward and backward pass.
Nothing of the program is changed by it.

One step shows less than a run: it names what takes part in this step's failure and rules nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.replaying.finding import found
from traindx_tools.experiments.replaying.judging import MARGIN
from traindx_tools.experiments.replaying.study import Study
from traindx_tools.experiments.replaying.symptom import EARLY_JUMP, GRADIENT_JUMP, JUMP, LATE, OVERSHOOT, RISE, SANE
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X301",
    name="step-replay-removes",
    title="A step's failure goes with one change",
    severity=Severity.HIGH,
    sees="One kept step, run again on copies: as it is, and with one change at a time.",
    matters="It decides between causes where running the program again is too dear: step 80,000 fails here and now.",
    alike=("a change that hides the symptom: a tenth of the rate, double precision",
           "a jump that comes back within a few steps: a hard batch, said as a remark",
           "a step that ends what began earlier: then nothing is decided"),
    confirm=("`traindx experiment PATH --run CMD --change NAME` from a checkpoint before the step",
             "`traindx replay RUNFOLDER --run CMD`: the kept step in a fresh process, with outputs and gradients",
             "the table in the run's folder, replays/"),
    thresholds={
        "jump": Threshold(JUMP, "times the largest loss of the last 50 steps", "beyond the spread of batches"),
        "early": Threshold(EARLY_JUMP, "times, in the first 20 steps", "an untrained model's loss swings"),
        "norm": Threshold(GRADIENT_JUMP, "times the largest norm of the last 50 steps", "norms spike ten times"),
        "rise": Threshold(RISE, "times the largest loss of the first 10 steps", "worse than untrained"),
        "overshoot": Threshold(OVERSHOOT, "times the same batch's loss before the update", "beyond rounding"),
        "sane": Threshold(SANE, "times the largest before", "up to there a jump counts as gone"),
        "late": Threshold(LATE, "times the median before", "the origin lies further back"),
        "margin": Threshold(MARGIN, "of the excess", "a change that moves it by less has no effect"),
    },
)


def check(study: Study) -> Iterator[Finding]:
    """The finding of a step that a change heals."""
    if not study.removing:
        return
    symptom = study.symptom
    severity = Severity.INFO if study.recovered else Severity.LOW if symptom.late else (
        Severity.MEDIUM if symptom.finite else Severity.HIGH)
    bearing = Bearing.SIGN if study.specific and not symptom.late else Bearing.COMPANION
    yield found(RULE, study, severity=severity, bearing=bearing)
