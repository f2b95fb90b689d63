"""A jitted method and its object.

`@jax.jit` on a method traces `self`: a plain object is no JAX type, and the first call fails. With self static the
function is compiled for this object, and whatever it reads from `self` is fixed: parameters or a rate that another
method changes later are never seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, syntax, written
from traindx_tools.on_code.tracing import Traced, traced
from traindx_tools.rules import Rule

RULE = Rule(
    id="C514",
    name="jitted-method",
    title="A jitted method reads a self that is traced, or that changes",
    severity=Severity.HIGH,
    sees="jit on a method: whether self is static, and which attributes it reads that other methods write.",
    matters="A TypeError at the first call, or stale attributes for ever.",
    alike=("a class that is a pytree (equinox, flax.struct), whose self may be traced",),
    confirm=("change the attribute and call again: the result stays",),
)
_PYTREE = re.compile(r"Module|PyTree|struct|dataclass|register_pytree|register_dataclass|NamedTuple|Protocol|nnx")


def check(project: Project) -> Iterator[Finding]:
    """Look at every jitted method."""
    for file in project.files:
        if "jax" not in file.text or "self" not in file.text:
            continue
        code = syntax(file)
        for one in traced(code):
            owner = code.parent(one.node)
            first = one.node.args.args[0].arg if one.node.args.args else ""
            if not isinstance(owner, ast.ClassDef) or first != "self" or "jit" not in one.how or "filter" in one.how:
                continue
            if any(_PYTREE.search(written(b)) for b in (*owner.bases, *owner.decorator_list)) or "nnx" in one.how:
                continue
            if f"register_pytree_node({owner.name}" in file.text or "register_pytree_node_class" in file.text:
                continue
            if "self" not in one.static:
                yield _finding(code, one, one.node, f"traces self: {owner.name} is no JAX type, and its first call "
                               "fails", "traced", Bearing.CAUSE)  # fmt: skip
            else:
                yield from _stale(code, one, owner)


def _stale(code: Syntax, one: Traced, owner: ast.ClassDef) -> Iterator[Finding]:
    read = {n.attr: n for n in below(one.node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)
            and written(n.value) == "self"}  # fmt: skip
    for method in (m for m in owner.body if isinstance(m, ast.FunctionDef)):
        if method.name in ("__init__", "setup", "__post_init__") or method is one.node:
            continue
        for node in below(method):
            stored = (
                isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and written(node.value) == "self"
            )
            if stored and isinstance(node, ast.Attribute) and node.attr in read:
                yield _finding(code, one, read[node.attr], f"has self static and reads self.{node.attr}, which "
                               f"{method.name} changes at line {node.lineno}: it keeps the first value", "static",
                               Bearing.CAUSE)  # fmt: skip
                return


def _finding(code: Syntax, one: Traced, node: ast.AST, why: str, kind: str, bearing: Bearing) -> Finding:
    return RULE.finding(
        f"{one.node.name} ({one.how}) at {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=bearing,
        measured={"kind": kind, "function": one.node.name},
    )
