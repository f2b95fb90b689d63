"""A network of linear layers has no activation.

Linear layers one behind the other with nothing but dropout and reshaping between them are one linear layer, however
many there are. Such a network fits what a linear model fits and no more: the loss stops where that one's does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C268",
    name="no-activation-in-module",
    title="A network of linear layers has no activation",
    severity=Severity.MEDIUM,
    sees="A module of torch, or an nn.Sequential that is trained, of linear layers applied to each other's output, "
         "with no function between them that is not linear.",
    matters="The network is a linear model, whatever its depth: the loss stops where that one's does.",
    alike=("a factorised layer of low rank", "a linear autoencoder", "heads side by side on one input"),
    confirm=("f(a) + f(b) == f(a + b) + f(0) for two inputs, in evaluation mode",),
)  # fmt: skip
_ON_PURPOSE = re.compile(r"lora|low_?rank|\brank|factor|bottleneck|linear_?(net|model|ae|auto|probe)|pca|deep_?linear|"
                         r"adapter|project|embed|encod|latent|orthogonal|weight_norm|hook", re.IGNORECASE)  # fmt: skip
_LAYERS = frozenset({"Linear", "Dropout", "Flatten", "Identity"})
_SHAPES = frozenset({"view", "reshape", "flatten", "size", "float", "squeeze", "unsqueeze", "dropout", "len"})
_ENDS = frozenset({"softmax", "log_softmax", "sigmoid"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every module of linear layers, and at every trained nn.Sequential."""
    for file in project.files:
        if file.text.count("Linear(") < 2:
            continue
        code = syntax(file)
        for owner in code.of(ast.ClassDef):
            yield from _module(code, owner)
        yield from _sequences(code)


def _module(code: Syntax, owner: ast.ClassDef) -> Iterator[Finding]:
    methods = {f.name: f for f in owner.body if isinstance(f, ast.FunctionDef)}
    forward = methods.get("forward")
    if forward is None or set(methods) != {"__init__", "forward"}:
        return
    if len(owner.bases) != 1 or code.qualified(owner.bases[0]) != "torch.nn.Module":
        return
    if _ON_PURPOSE.search(written(owner)):
        return
    if any(isinstance(n, (ast.BinOp, ast.AugAssign, ast.For, ast.If, ast.IfExp)) for n in below(forward)):
        return
    held = {written(a.targets[0]): a.value for a in code.inside(methods["__init__"], ast.Assign)}
    applied: list[tuple[ast.Call, ast.Call]] = []
    for call in code.inside(forward, ast.Call):
        inner = held.get(written(call.func))
        if isinstance(inner, ast.Call) and _is_layer(code, inner):
            if last_name(inner.func) == "Linear":
                applied.append((call, inner))
        elif last_name(call.func) in _ENDS:
            if not isinstance(code.parent(call), ast.Return):
                return
        elif last_name(call.func) not in _SHAPES:
            return  # what is not known may be a nonlinear function
    for call, layer in applied:
        given = call.args[0] if len(call.args) == 1 else None
        for _ in range(4):
            given = code.origin(given) if given is not None else None
            before = next((made for one, made in applied if one is given and one is not call), None)
            if before is not None and not _narrow(code, before, layer):
                yield _finding(code, call, owner.name, len(applied))
                return
            shaped = isinstance(given, ast.Call) and given not in [c for c, _ in applied] and given.args
            given = given.args[0] if shaped and isinstance(given, ast.Call) else None


def _sequences(code: Syntax) -> Iterator[Finding]:
    """nn.Sequential of linear layers alone, whose parameters an optimizer gets."""
    for call in code.calls("Sequential"):
        up = code.parent(call)
        target = up.targets[0] if isinstance(up, ast.Assign) else None
        layers = [a for a in call.args if isinstance(a, ast.Call) and _is_layer(code, a)]
        if not isinstance(target, ast.Name) or len(layers) != len(call.args) or _ON_PURPOSE.search(target.id):
            continue
        linear = [a for a in layers if last_name(a.func) == "Linear"]
        trained = [c for c in code.calls("parameters") if isinstance(c.func, ast.Attribute)
                   and code.origin(c.func.value) is call and isinstance(code.parent(c), ast.Call)]  # fmt: skip
        chained = list(pairwise(linear))
        if not trained or not chained or _taken_apart(code, target.id):
            continue
        if not any(_narrow(code, a, b) for a, b in chained):
            yield _finding(code, call, target.id, len(linear))


def _taken_apart(code: Syntax, name: str) -> bool:
    """Whether the layers are gone through or picked one by one: what lies between them is written elsewhere."""
    loops = [f.iter for f in code.of(ast.For)] + [c.iter for c in code.of(ast.comprehension)]
    inner = [over.args[0] if isinstance(over, ast.Call) and over.args else over for over in loops]
    picked = [s.value for s in code.of(ast.Subscript)]
    return any(isinstance(n, ast.Name) and n.id == name for n in (*inner, *picked))


def _is_layer(code: Syntax, call: ast.Call) -> bool:
    plain = not any(k.arg == "bias" for k in call.keywords) and len(call.args) <= 2
    return last_name(call.func) in _LAYERS and plain and code.qualified(call.func).startswith("torch.nn.")


def _narrow(code: Syntax, first: ast.Call, second: ast.Call) -> bool:
    """Whether the width between two layers is below both others, as in a factorised layer; also where not known."""
    wide = code.number(argument(first, 0, "in_features"))
    middle = code.number(argument(first, 1, "out_features"))
    out = code.number(argument(second, 1, "out_features"))
    return wide is None or middle is None or out is None or middle < min(wide, out)


def _finding(code: Syntax, node: ast.AST, name: str, layers: int) -> Finding:
    return RULE.finding(
        f"{name} at {code.at(node)} applies {layers} linear layers to each other's output and no activation between "
        "them: together they are one linear layer",
        code.place(node),
        code.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "linear", "layers": layers},
    )
