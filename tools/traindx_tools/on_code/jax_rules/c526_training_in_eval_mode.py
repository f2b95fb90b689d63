"""The differentiated loss runs the model in evaluation mode, or an evaluation runs it in training mode.

flax layers are told their mode at each call: `train=False`, `deterministic=True` or `use_running_average=True` inside
the loss that is differentiated turns dropout off and makes BatchNorm use (and not update) its running statistics for
the whole training. The opposite in a function that only evaluates leaves dropout on, and takes the statistics of the
batch that is evaluated. `model.eval()` of nnx holds until `model.train()`, also for the training that follows; an
equinox model is in training mode until `eqx.nn.inference_mode` makes another one of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.module_modes import Left, modal, never_in_inference, never_undone
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, parameters, syntax, written
from traindx_tools.on_code.tracing import differentiated
from traindx_tools.rules import Rule

RULE = Rule(
    id="C526",
    name="training-in-eval-mode",
    title="The model is trained in evaluation mode, or evaluated in training mode",
    severity=Severity.HIGH,
    sees="train=False, deterministic=True or use_running_average=True in a call inside a differentiated function, "
         "and the opposite in a function that only evaluates; eval() of nnx without a train() in the loop that trains; "
         "equinox models that are evaluated and never put into inference mode.",
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
    if any("nnx" in f.text or "equinox" in f.text for f in project.files):
        look = lookup(project)
        yield from (_undone(one) for one in never_undone(look)) if modal(look, "nnx") else ()
        yield from (_training(one) for one in never_in_inference(look)) if modal(look, "equinox") else ()
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        yield from _evaluations(code)
        for _, function in differentiated(code):
            trains = any(isinstance(n, ast.keyword) and n.arg in _EVALUATES and isinstance(n.value, ast.Constant)
                         and n.value.value is not _EVALUATES[n.arg] for n in below(function))  # fmt: skip
            for keyword in (n for n in below(function) if isinstance(n, ast.keyword)):
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in _EVALUATES and value is _EVALUATES[keyword.arg] and not trains and (
                        _of_trained(code, function, keyword)):
                    yield RULE.finding(
                        f"{keyword.arg}={value} at {code.at(keyword.value)} in {function.name}, which is "
                        "differentiated: the model is trained in evaluation mode",
                        code.place(keyword.value),
                        file.path,
                        bearing=Bearing.SIGN,
                        measured={"kind": "mode", "keyword": keyword.arg},
                    )
                    break


def _of_trained(code: Syntax, function: ast.FunctionDef, keyword: ast.keyword) -> bool:
    """Whether the call takes what is differentiated, where it says which parameters it takes: `{"params": params}`."""
    call = code.parent(keyword)
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    applied = isinstance(call, ast.Call) and last_name(call.func).startswith("apply")
    if not isinstance(given, ast.Dict) and not (applied and isinstance(given, (ast.Name, ast.Attribute))):
        return True
    own = {n.id for n in below(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return bool(names_in(given) & (own | set(parameters(function))))


def _undone(one: Left) -> Finding:
    """An nnx model that stays in evaluation mode."""
    code, name = one.code, written(one.node.func)
    where = f" at {one.loop[0].at(one.loop[1])}" if one.loop is not None else ""
    return RULE.finding(
        f"{name}() at {code.at(one.node)} is not undone: no train() is called in the loop that trains{where}, so from "
        "then on dropout is off and BatchNorm keeps its running statistics",
        code.place(one.node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "not undone"},
        patch=_put_back(one),
    )


def _put_back(one: Left) -> tuple[Patch, ...]:
    """`model.train()` at the head of the loop, where the loop knows the model by that name."""
    code, loop = one.code, one.loop
    model = one.node.func.value if isinstance(one.node.func, ast.Attribute) else None
    if loop is None or one.kind == "called" or not isinstance(loop[1], (ast.For, ast.While)) or model is None:
        return ()
    made = patching.insert_before(code.file, loop[1].body[0], f"{written(model)}.train()", "train in training mode")
    return (made,) if made is not None else ()


def _training(one: Left) -> Finding:
    """An equinox model that is evaluated in training mode."""
    code, called = one.code, written(one.node)[:80]
    if one.kind == "key":
        why = "gives a model with dropout no key, and nothing puts it into inference mode: dropout raises an error"
    else:
        function = code.function(one.node)
        why = (f"in {getattr(function, 'name', '')} evaluates a model in training mode (nothing in the project calls "
               "eqx.nn.inference_mode): dropout is on, and BatchNorm takes the statistics of the evaluated batch")
    return RULE.finding(
        f"{called} at {code.at(one.node)} {why}",
        code.place(one.node),
        code.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": f"equinox {one.kind}"},
    )


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
                    drawn = any(k.arg == "rngs" for k in call.keywords)  # what draws in an evaluation, means to
                    yield RULE.finding(
                        f"{said}={value} at {code.at(keyword.value)} in {function.name}, which only evaluates: "
                        "dropout is on, and BatchNorm takes the statistics of the evaluated batch",
                        code.place(keyword.value),
                        code.file.path,
                        bearing=Bearing.SIGN,
                        severity=Severity.MEDIUM if drawn else None,
                        measured={"kind": "evaluation", "keyword": said},
                    )
                    return
