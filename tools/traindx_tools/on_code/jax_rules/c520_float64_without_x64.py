"""float64 is asked for and not enabled.

JAX computes in float32 unless `jax_enable_x64` is set before the first array: `dtype=jnp.float64` and
`.astype(jnp.float64)` silently (with a warning) give float32. Tolerances of 1e-10 and finite differences with a step of
1e-8 then measure rounding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax

(RULE,) = pages("jax", ("C520",))


def check(project: Project) -> Iterator[Finding]:
    """Look at every use of the type."""
    if any("x64" in f.text.lower() for f in project.files):
        return
    for file in project.files:
        if "float64" not in file.text or "jax" not in file.text:
            continue
        code = syntax(file)
        for node in code.of(ast.Attribute):
            if node.attr == "float64" and code.qualified(node) == "jax.numpy.float64" and _asks(code, node):
                yield RULE.finding(
                    f"{ast.unparse(node)} at {code.at(node)} asks for float64, which is not enabled (jax_enable_x64): "
                    "the array is float32",
                    code.place(node),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "float64"},
                )
                break


def _asks(code: Syntax, node: ast.AST) -> bool:
    """Whether it is a dtype that is given to something."""
    up = code.parent(node)
    if isinstance(up, ast.keyword):
        return up.arg == "dtype"
    return isinstance(up, ast.Call) and (last_name(up.func) == "astype" or up.func is node)
