"""The target of a temporal difference is trained along with the prediction.

`target = r + gamma * q(next).max()` uses the very network that is trained. Left in the graph, half of the gradient
moves the target towards the prediction: values drift and Q-learning becomes unstable. The target belongs under
`no_grad`, behind `detach()` or `stop_gradient`; a separate target network is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.bootstrapping import attached_targets
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.syntax import syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C169",
    name="bootstrapped-target-with-gradient",
    title="A bootstrapped target carries a gradient",
    severity=Severity.HIGH,
    sees="r + gamma * (the trained network's value of the next state) in a loss, without detach or no_grad.",
    matters="The loss also moves the target towards the prediction: values drift, training is unstable.",
    alike=("a target network that is updated too often", "a learning rate that is too high"),
    confirm=("print(target.requires_grad): it should be False",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every target with a discount."""
    for file in project.files:
        if "torch" not in file.text or not ("gamma" in file.text.lower() or "discount" in file.text.lower()):
            continue
        code = syntax(file)
        for found in attached_targets(code, "torch"):
            yield RULE.finding(
                f"{found.name} at {code.at(found.statement)} is r + gamma * {found.called} of the trained network and "
                "stays in the graph: the loss also moves the target (no detach, no no_grad)",
                code.place(found.statement),
                file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "attached", "target": found.name},
                patch=graph.cut_value(file, found.statement),
            )
