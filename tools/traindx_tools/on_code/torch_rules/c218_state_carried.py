"""A recurrent state goes from one step to the next with its graph.

`out, state = model(x, state)` in a loop that calls backward for every chunk hands the graph of all earlier chunks on:
the second backward goes through the first one's graph, which is freed, and raises; with `retain_graph=True` memory and
step time grow instead. Truncated backpropagation through time cuts the state between two chunks (`state.detach()`).
A state that is set back in the loop, or cut anywhere in the file, is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Loops, Syntax, last_name, syntax, written

(RULE,) = pages("torch", ("C218",))
_STATE = re.compile(
    r"(h|c|hc|hx|cx|hn|cn|h_\w+|c_\w+|\w*(state|hidden|memory|memories|mems|carry|cell)\w*)", re.IGNORECASE
)
_CUT = re.compile(r"repackage|detach|\.data\b|no_grad|clone_state|truncate", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every loop that calls backward."""
    for file in project.files:
        if "torch" not in file.text or ".backward(" not in file.text:
            continue
        code = syntax(file)
        seen: set[int] = set()
        for call in code.calls("backward"):
            loop = next(iter(code.loops(call)), None)
            if isinstance(loop, Loops) and id(loop) not in seen:
                seen.add(id(loop))  # the first backward of a loop speaks for the others
                yield from _in_loop(code, call, loop)


def _in_loop(code: Syntax, backward: ast.Call, loop: ast.AST) -> Iterator[Finding]:
    for node in (n for n in below(loop) if isinstance(n, ast.Assign)):
        name = _carried(node)
        if name is None or next(iter(code.loops(node)), None) is not loop or _handled(code, loop, node, name):
            continue
        yield RULE.finding(
            f"{name} goes into {code.file.segment(node.value)} at {code.at(node)} and comes out of it with its graph; "
            f"backward() at line {backward.lineno} of the next iteration goes through this one's graph again",
            code.place(node),
            code.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "state", "name": name, "backward_line": backward.lineno},
        )
        return


def _carried(node: ast.Assign) -> str | None:
    """The state of `out, state = model(x, state)` and of `state = cell(x, state)`."""
    call, target = node.value, node.targets[0]
    if not isinstance(call, ast.Call) or last_name(call.func) in ("update", "cat", "stack", "where", "init"):
        return None
    given = {a.id for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Name)}
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [p.id for p in parts if isinstance(p, ast.Name) and p.id in given and _STATE.fullmatch(p.id)]
    several = len(call.args) + len(call.keywords) >= 2
    return names[0] if len(names) == 1 and several else None


def _handled(code: Syntax, loop: ast.AST, node: ast.Assign, name: str) -> bool:
    """Whether the state is set back or cut in the loop, in the callee, or was never one that outlives the loop."""
    simple = [s for s in below(loop) if isinstance(s, (ast.Assign, ast.Expr, ast.AugAssign))]
    if any(_CUT.search(written(s)) and name in written(s) for s in simple):
        return True
    stores = [n for n in below(loop) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    forwards = [
        f
        for f in code.of(ast.FunctionDef)
        if f.name in ("forward", "__call__", last_name(getattr(node.value, "func", None)))
    ]
    cut_inside = any(_CUT.search(written(f)) for f in forwards)
    suspended = any(isinstance(a, ast.With) and "grad" in written(a.items[0].context_expr) for a in code.above(node))
    bound_before = any(
        s.lineno < getattr(loop, "lineno", 0) for s, _ in code.bindings(ast.copy_location(stores[0], node))
    )
    jax_like = "jax" in code.aliases or "optax" in code.file.text
    return len(stores) != 1 or cut_inside or suspended or not bound_before or jax_like
