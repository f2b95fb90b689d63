"""A step without a gradient lies between the parameters and the loss.

argmax, round, sign, a comparison, a cast to int and stop_gradient have the gradient 0. jax.grad says nothing: the
gradients come out as zeros, and what lies before the step is never trained. So it is with a loss made of decisions (an
accuracy), with a code that is rounded or thresholded on its way to the decoder, and with a loss function that does not
use the argument it is differentiated by. A straight-through estimator (`z + stop_gradient(q - z)`), a soft choice, or a
loss on the scores is needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, names_in, parameters, written
from traindx_tools.on_code.tracing import GRADIENTS, differentiated
from traindx_tools.on_code.zero_gradient import CUT, Cut, Flow, flows, is_module, reads
from traindx_tools.rules import Rule

RULE = Rule(
    id="C532",
    name="gradient-is-zero",
    title="A step without a gradient lies between parameters and loss",
    severity=Severity.HIGH,
    sees="argmax, round, sign, comparisons, casts to int, stop_gradient on the only way from parameters to the loss.",
    matters="Gradients of exactly 0, without an error: the loss never moves, or a part is never trained.",
    alike=("a straight-through estimator", "masks and weights that multiply values with a gradient",
           "metrics beside the loss"),
    confirm=("print(jax.tree.map(lambda g: float(abs(g).max()), grads)): zeros",),
)  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every differentiated function, and at every module."""
    files = [f for f in project.files if "jax" in f.text or "equinox" in f.text]
    if not any("grad" in f.text for f in files):
        return
    look = lookup(project)
    seen: set[int] = set()
    for code in look.codes:
        if "jax" not in code.file.text and "equinox" not in code.file.text:
            continue
        plain = [(None, f) for f in code.of(ast.FunctionDef) if any(code.qualified(d) in GRADIENTS
                 for d in f.decorator_list)]  # fmt: skip
        for call, function in [*differentiated(code), *plain]:
            if id(function) not in seen:
                seen.add(id(function))
                yield from _loss(Flow(look), code, call, function)
        for function in code.of(ast.FunctionDef):
            owner = code.parent(function)
            if function.name == "__call__" and isinstance(owner, ast.ClassDef) and is_module(owner):
                flow = Flow(look)
                given = {"self": flows()}
                flow.result(code, function, given)
                yield from _hidden(flow)


def _loss(flow: Flow, code: Syntax, call: ast.Call | None, function: ast.FunctionDef) -> Iterator[Finding]:
    names = [n for n in parameters(function) if n != "self"]
    place = argument(call, 1, "argnums") if call is not None else None
    position = 0 if place is None else place.value if isinstance(place, ast.Constant) else None
    if not isinstance(position, int) or position >= len(names):
        return
    name = names[position]
    if not list(reads(function, name)):
        yield from _unused(code, function, name)
        return
    result = flow.result(code, function, {name: flows()})
    if result.level == CUT and result.cuts:
        cut = result.cuts[0]
        yield _finding(cut, f"{function.name} depends on {name} only through {written(cut.node)[:70]} at "
                       f"{cut.code.at(cut.node)}, whose gradient is 0: every gradient of {name} is exactly 0", "loss")
        return
    yield from _hidden(flow)


def _unused(code: Syntax, function: ast.FunctionDef, name: str) -> Iterator[Finding]:
    """A loss that reads the parameters from around it instead of its own argument."""
    if name.startswith("_") or len(function.body) < 1 or isinstance(function.body[-1], (ast.Pass, ast.Raise)):
        return
    if not any(isinstance(n, ast.Return) and n.value is not None and names_in(n.value) for n in below(function)):
        return
    yield RULE.finding(
        f"{function.name} at {code.at(function)} is differentiated with respect to {name} and never reads it: every "
        "gradient is exactly 0",
        code.place(function),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "unused", "argument": name},
    )


def _hidden(flow: Flow) -> Iterator[Finding]:
    """A code without a gradient that is decoded, where what it was made of has no other way to the loss."""
    for cut in flow.hidden:
        function = cut.code.function(cut.node)
        if cut.into is None or function is None or _other_way(cut.code, function, cut.node):
            continue
        yield _finding(cut, f"{written(cut.node)[:70]} at {cut.code.at(cut.node)} has no gradient, and what it gives "
                       f"goes into {written(cut.into)[:60]}: what lies before it is never trained", "hidden")
        return


def _other_way(code: Syntax, function: ast.AST, node: ast.AST) -> bool:
    """Whether what the step is made of is used elsewhere too: in another term, or in an estimator."""
    if isinstance(node, ast.Call) and written(node.func).endswith("stop_gradient"):
        return True  # written on purpose
    inner = {id(n) for n in below(node)}
    used = names_in(node) & {n.id for n in below(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if not used:
        return not any(isinstance(n, ast.Call) for n in below(node))
    return any(isinstance(n, ast.Name) and n.id in used and isinstance(n.ctx, ast.Load) and id(n) not in inner
               and getattr(n, "lineno", 0) >= getattr(node, "lineno", 0) for n in below(function))  # fmt: skip


def _finding(cut: Cut, said: str, kind: str) -> Finding:
    return RULE.finding(
        said,
        cut.code.place(cut.node),
        cut.code.file.path,
        bearing=Bearing.CAUSE if kind == "loss" else Bearing.SIGN,
        measured={"kind": kind, "step": written(cut.node)[:70]},
    )
