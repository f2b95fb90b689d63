"""The target of a temporal difference is differentiated.

Inside a function that `jax.grad` differentiates, r + gamma * q(params, next) depends on the same parameters as the
prediction. Without `jax.lax.stop_gradient` the loss also moves the target towards the prediction. A target that uses
other parameters (`target_params`) is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.bootstrapping import attached_targets
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.tracing import differentiated
from traindx_tools.rules import Rule

RULE = Rule(
    id="C516",
    name="target-not-stopped",
    title="A bootstrapped target is differentiated",
    severity=Severity.HIGH,
    sees="r + gamma * value(params, next) in a differentiated function, without stop_gradient, with the same params.",
    matters="The loss also moves the target towards the prediction: values drift.",
    alike=("a target network with parameters of its own",),
    confirm=("compare the gradient with and without stop_gradient around the target",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every target in a differentiated function."""
    for file in project.files:
        if "jax" not in file.text or ("gamma" not in file.text and "discount" not in file.text):
            continue
        code = syntax(file)
        inside = {id(f) for _, f in differentiated(code)}
        for found in attached_targets(code, "jax"):
            if id(code.function(found.statement)) in inside:
                yield RULE.finding(
                    f"{found.name} at {code.at(found.statement)} is r + gamma * {found.called} with the same "
                    "parameters and is not stopped: the loss also moves the target",
                    code.place(found.statement),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "attached", "target": found.name},
                    patch=graph.cut_value(file, found.statement, "jax"),
                )
