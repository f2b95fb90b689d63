"""A traced value is asked for its numbers.

numpy functions, `float()`, `int()`, `.item()` and `.tolist()` need numbers; inside jit, vmap or scan there are none:
TracerArrayConversionError or ConcretizationTypeError. `jnp` has the same functions for traced values; numbers of shapes
are static and may go through numpy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.tracing import depends, own_nodes_of, traced, values_traced
from traindx_tools.rules import Rule

RULE = Rule(
    id="C517",
    name="concrete-value-of-tracer",
    title="A traced value is asked for its numbers",
    severity=Severity.HIGH,
    sees="np.f(x), float(x), int(x), x.item() of a traced argument in a traced function.",
    matters="Tracing stops with an error at the first call.",
    alike=("numpy on shapes, which are numbers", "numpy constants"),
    confirm=("call the function once",),
)
_CASTS = frozenset({"float", "int", "bool", "complex"})
_PULLS = frozenset({"item", "tolist", "__array__", "to_py"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every traced function."""
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        for one in traced(code):
            names = values_traced(one)
            for node in own_nodes_of(one):
                if isinstance(node, ast.Call) and _pulls(code, node, names):
                    yield RULE.finding(
                        f"{written(node)} at {code.at(node)} needs the numbers of a traced value in {one.node.name} "
                        f"({one.how}): there are none while tracing",
                        code.place(node),
                        file.path,
                        bearing=Bearing.CAUSE,
                        measured={"kind": "numpy" if code.qualified(node.func) else "cast", "function": one.node.name},
                    )
                    break


def _pulls(code: Syntax, call: ast.Call, names: set[str]) -> bool:
    name = code.qualified(call.func)
    if name.startswith("numpy.") and not name.startswith(("numpy.random.", "numpy.dtype", "numpy.shape", "numpy.ndim")):
        return any(depends(a, names) for a in call.args)
    if isinstance(call.func, ast.Name) and call.func.id in _CASTS and len(call.args) == 1:
        return depends(call.args[0], names)
    return last_name(call.func) in _PULLS and isinstance(call.func, ast.Attribute) and depends(call.func.value, names)
