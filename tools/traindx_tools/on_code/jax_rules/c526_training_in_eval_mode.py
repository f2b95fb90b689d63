"""The differentiated loss runs the model in evaluation mode.

flax layers are told their mode at each call: `train=False`, `deterministic=True` or `use_running_average=True` inside
the loss that is differentiated turns dropout off and makes BatchNorm use (and not update) its running statistics for
the whole training.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.tracing import differentiated
from traindx_tools.rules import Rule

RULE = Rule(
    id="C526",
    name="training-in-eval-mode",
    title="The differentiated loss runs the model in evaluation mode",
    severity=Severity.HIGH,
    sees="train=False, deterministic=True or use_running_average=True in a call inside a differentiated function.",
    matters="No dropout in training, and batch statistics that never adapt.",
    alike=("a frozen backbone that is evaluated on purpose",),
    confirm=("print two losses of one batch with two keys: they are equal although there is dropout",),
)
_EVALUATES = {
    "train": False,
    "training": False,
    "is_training": False,
    "deterministic": True,
    "use_running_average": True,
}
_LAYERS = ("Dropout", "BatchNorm")


def check(project: Project) -> Iterator[Finding]:
    """Look at every differentiated function."""
    if not any(any(layer in f.text for layer in _LAYERS) for f in project.files):
        return
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        for _, function in differentiated(code):
            trains = any(isinstance(n, ast.keyword) and n.arg in _EVALUATES and isinstance(n.value, ast.Constant)
                         and n.value.value is not _EVALUATES[n.arg] for n in ast.walk(function))  # fmt: skip
            for keyword in (n for n in ast.walk(function) if isinstance(n, ast.keyword)):
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in _EVALUATES and value is _EVALUATES[keyword.arg] and not trains:
                    yield RULE.finding(
                        f"{keyword.arg}={value} at {code.at(keyword.value)} in {function.name}, which is "
                        "differentiated: the model is trained in evaluation mode",
                        code.place(keyword.value),
                        file.path,
                        strength=Strength.CIRCUMSTANTIAL,
                        measured={"kind": "mode", "keyword": keyword.arg},
                    )
                    break
