"""The differentiated loss runs the model in evaluation mode, or an evaluation runs it in training mode.

flax layers are told their mode at each call: `train=False`, `deterministic=True` or `use_running_average=True` inside
the loss that is differentiated turns dropout off and makes BatchNorm use (and not update) its running statistics for
the whole training. The opposite in a function that only evaluates leaves dropout on, and takes the statistics of the
batch that is evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.tracing import differentiated
from traindx_tools.rules import Rule

RULE = Rule(
    id="C526",
    name="training-in-eval-mode",
    title="The model is trained in evaluation mode, or evaluated in training mode",
    severity=Severity.HIGH,
    sees="train=False, deterministic=True or use_running_average=True in a call inside a differentiated function, "
         "and the opposite in a function that only evaluates.",
    matters="No dropout in training, and batch statistics that never adapt; or dropout in the evaluation.",
    alike=("a frozen backbone that is evaluated on purpose", "dropout that samples predictions (Monte Carlo)"),
    confirm=("print two losses of one batch with two keys: they are equal although there is dropout",),
)
_EVALUATES = {
    "train": False,
    "training": False,
    "is_training": False,
    "deterministic": True,
    "use_running_average": True,
}
_EVALUATION = re.compile(r"_?(eval|validat|valid_|test_|predict|infer|accuracy)", re.IGNORECASE)
_TRAINS = re.compile(r"apply_updates|apply_gradients|value_and_grad|jax\.grad|filter_grad|\.init\(")
_SAMPLED = re.compile(r"monte|mc_|uncertain|samples?\b|ensemble|recalibrat|batch_stats.*update", re.IGNORECASE)
_CALLS = frozenset({"apply", "apply_fn", "model", "net", "network", "forward", "apply_model"})
_LAYERS = ("Dropout", "BatchNorm")


def check(project: Project) -> Iterator[Finding]:
    """Look at every differentiated function."""
    if not any(any(layer in f.text for layer in _LAYERS) for f in project.files):
        return
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        yield from _evaluations(code)
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


def _evaluations(code: Syntax) -> Iterator[Finding]:
    """Functions that only evaluate, and run the model in training mode."""
    trained = {id(f) for _, f in differentiated(code)}
    if "test" in code.file.path.rpartition("/")[2]:
        return
    for function in code.of(ast.FunctionDef):
        if not _EVALUATION.match(function.name) or id(function) in trained:
            continue
        text = written(function)
        if _TRAINS.search(text) or _SAMPLED.search(text):
            continue
        for call in (n for n in below(function) if isinstance(n, ast.Call)):
            for keyword in call.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                said = keyword.arg or ""
                if not isinstance(value, bool) or said not in _EVALUATES or value is _EVALUATES[said]:
                    continue
                if last_name(call.func) in _CALLS:
                    yield RULE.finding(
                        f"{said}={value} at {code.at(keyword.value)} in {function.name}, which only evaluates: "
                        "dropout is on, and BatchNorm takes the statistics of the evaluated batch",
                        code.place(keyword.value),
                        code.file.path,
                        strength=Strength.CIRCUMSTANTIAL,
                        measured={"kind": "evaluation", "keyword": said},
                    )
                    return
