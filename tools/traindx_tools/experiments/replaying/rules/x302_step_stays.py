"""The step in which something went wrong was run again on copies, and no change takes the symptom away.

See X301 for how. What is left is what cannot be changed within one step: the weights as earlier steps left them, the
model itself, or several things at once. It is a remark, and rules nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.replaying.finding import found
from traindx_tools.experiments.replaying.study import Study
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.rules import Rule

RULE = Rule(
    id="X302",
    name="step-replay-stays",
    title="A step's failure stays with every change",
    severity=Severity.INFO,
    sees="One kept step, run again on copies: as it is, and with one change at a time.",
    matters="The cause is then in the weights that earlier steps left, in the model, or in more than one thing.",
    alike=("a change that could not be tried; the table says why",),
    confirm=("`traindx replay RUNFOLDER --run CMD`: outputs of each module and gradients of the kept step",
             "look at earlier steps: the first loss or gradient norm out of the usual",
             "`traindx experiment PATH --run CMD --change NAME`, which changes every step of a run"),
)


def check(study: Study) -> Iterator[Finding]:
    """The finding of a step that no change heals; a jump that came back is not spoken of."""
    if not study.removing and not study.recovered:
        yield found(RULE, study, severity=Severity.INFO, bearing=Bearing.COMPANION)
