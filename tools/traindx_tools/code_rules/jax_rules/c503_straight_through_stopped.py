"""The whole straight-through expression is cut from the graph.

`z + stop_gradient(q - z)` has the value of q and the gradient of z: that is the straight-through estimator.
`stop_gradient(z + (q - z))` has the value of q and no gradient at all: nothing reaches the encoder, which stays at its
initialisation while the decoder learns. The same holds for `(z + (q - z)).detach()` in torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.edits.source_edit import SourceEdit
from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event

(RULE,) = pages("jax", ("C503",))


def check(project: Project) -> Iterator[Finding]:
    """Look at every place where a graph is cut."""
    for event in project.calls("stop_gradient", "detach"):
        node = event.node
        if not isinstance(node, ast.Call):
            continue
        inner = (
            node.args[0]
            if event.method == "stop_gradient" and node.args
            else (node.func.value if isinstance(node.func, ast.Attribute) and event.method == "detach" else None)
        )
        parts = _straight_through(inner)
        if parts is not None:
            yield _finding(event, node, *parts)


def _straight_through(node: ast.expr | None) -> tuple[str, str] | None:
    """(z, q - z) of `z + (q - z)` or `(q - z) + z`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return None
    for kept, change in ((node.left, node.right), (node.right, node.left)):
        if (
            isinstance(change, ast.BinOp)
            and isinstance(change.op, ast.Sub)
            and ast.unparse(change.right) == ast.unparse(kept)
        ):
            return ast.unparse(kept), ast.unparse(change)
    return None


def _finding(event: Event, node: ast.Call, kept: str, change: str) -> Finding:
    cut = f"{ast.unparse(node.func)}({change})" if event.method == "stop_gradient" else f"({change}).detach()"
    edit = SourceEdit(event.file, "cut only the difference from the graph")
    edit.replace(node, f"{kept} + {cut}")
    return RULE.finding(
        f"{event.file.segment(node)} at {event.file.path}:{event.line} cuts the whole straight-through "
        "expression from the "
        f"graph: only {change} should be, so no gradient reaches {kept}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "straight-through", "kept": kept},
        patch=edit.patches(),
    )
