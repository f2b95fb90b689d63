"""The commitment term of a vector quantizer outweighs everything else.

The commitment term pulls the encoder's output onto the codes that it uses; its usual weight is 0.25 (up to about 2).
With a weight of tens the encoder's output shrinks onto a few codes and the codebook collapses. The term is known by
what it is: a distance whose second side is detached, beside the same distance with the first side detached, or to the
quantized value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import numbers
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Instance, Value, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C130",
    name="commitment-weight",
    title="The commitment weight is extreme",
    severity=Severity.HIGH,
    sees="The factor of a distance between an encoder's output and its detached code.",
    matters="The encoder collapses onto the codes it uses at the start; most of the codebook is never used.",
    alike=("codes initialised far from the encoder's output", "dead codes that are not revived"),
    confirm=("log the commitment term beside the reconstruction term", "a weight of 0.25 and compare the perplexity"),
    thresholds={
        "weight": Threshold(5.0, "above", "0.25 in van den Oord et al. 2017; 0.1 to 2.0 tried there without difference")
    },
)
_WORDS = (".detach()", "sg(", "stop_gradient")
_DISTANCES = frozenset({"mse_loss", "smooth_l1_loss", "l1_loss", "square", "pow"})


def check(project: Project) -> Iterator[Finding]:
    """Look at weighted sums of distances."""
    made: dict[int, list[Instance]] = {}
    for instance in project.instances:
        made.setdefault(id(instance.klass.info), []).append(instance)
    for klass in project.classes:
        info = klass.info
        if not info.is_module or not any(word in info.file.text for word in _WORDS):
            continue
        instances = made.get(id(info), [])
        for method in info.methods.values():
            for node in below(method.info.node):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                    for factor, term in ((node.left, node.right), (node.right, node.left)):
                        if _commitment(term) and _has_partner(method.info.node, term):
                            yield from _judged(
                                Event("call", "mul", "mul", node, info.file, method.info), factor, instances
                            )


def _distance(node: ast.AST) -> tuple[str, str] | None:
    if isinstance(node, ast.Call) and len(node.args) >= 2:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _DISTANCES:
            return ast.unparse(node.args[0]), ast.unparse(node.args[1])
    inner = next((n for n in below(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub)), None)
    return (ast.unparse(inner.left), ast.unparse(inner.right)) if inner is not None else None


def _commitment(node: ast.AST) -> bool:
    sides = _distance(node)
    return (
        sides is not None
        and sum(s.endswith(".detach()") or s.startswith("sg(") or "stop_gradient" in s for s in sides) == 1
    )


def _has_partner(function: ast.AST, term: ast.AST) -> bool:
    """Whether the same distance stands in the function with the other side detached."""
    mine = _distance(term)
    assert mine is not None
    bare = {s.replace(".detach()", "") for s in mine}
    detached = {s.replace(".detach()", "") for s in mine if ".detach()" in s}
    for node in below(function):
        other = _distance(node) if isinstance(node, (ast.Call, ast.BinOp)) else None
        if other is None or {s.replace(".detach()", "") for s in other} != bare:
            continue
        if {s.replace(".detach()", "") for s in other if ".detach()" in s} == bare - detached:
            return True
    return False


def _judged(event: Event, factor: ast.expr, instances: list[Instance]) -> Iterator[Finding]:
    for value in _values(factor, instances):
        weight = number(value)
        if weight is None or weight <= 5.0:
            continue
        chosen = isinstance(value, Const) and not value.fixed
        yield RULE.finding(
            f"The commitment term at {event.file.path}:{event.line} has the weight {ast.unparse(factor)} = {weight:g}"
            + (" (from a configuration)" if chosen else "")
            + ", 0.25 is usual: it pulls the encoder onto the few codes in use",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "commitment", "weight": weight, "name": ast.unparse(factor)},
            patch=numbers.usual_commitment(event.file, factor, weight),
        )
        return


def _values(factor: ast.expr, instances: list[Instance]) -> Iterator[Value]:
    if isinstance(factor, ast.Constant):
        yield Const(factor.value)
    elif isinstance(factor, ast.Attribute) and isinstance(factor.value, ast.Name) and factor.value.id == "self":
        for instance in instances:
            if factor.attr in instance.attrs:
                yield instance.attrs[factor.attr]
