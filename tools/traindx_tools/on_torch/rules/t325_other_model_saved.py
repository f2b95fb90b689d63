"""What is saved is not what was trained, or not what was evaluated.

`kind`: "untrained" where the files hold the parameters of a model that never moved, while another one with the same
keys was trained and is saved nowhere; "not-evaluated" where the evaluations are of an average of the weights that is
saved nowhere, while the raw weights are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.state import SOURCE, Saved
from traindx_tools.rules import Rule

RULE = Rule(
    id="T325",
    name="other-model-saved",
    title="The model that is saved is not the one that was trained or evaluated",
    severity=Severity.HIGH,
    sees="whose memory the tensors of a written file are, and which models were trained and evaluated",
    matters="what is loaded later has other metrics than those that chose it",
    alike=("a teacher that is saved along with its student",
           "copies on another device: whose they are is not known, nothing is said"),
    confirm=("evaluate what the file holds and compare with the metric that was reported",),
)


def check(these: Sequence[Saved]) -> Iterator[Finding]:
    """One finding a pair."""
    for seen in these:
        what = ("was never trained; the one that was" if seen.kind == "untrained" else
                f"is not the one that is evaluated; the average that is ({seen.evaluations} calls)")
        yield RULE.finding(
            f"{seen.path} holds the parameters of a {seen.saved} that {what} is saved nowhere", seen.at.where(), SOURCE,
            bearing=Bearing.CAUSE if seen.kind == "untrained" else Bearing.SIGN,
            severity=Severity.CRITICAL if seen.kind == "untrained" else Severity.MEDIUM,
            measured={"kind": seen.kind, "path": seen.path, "module": seen.saved})
