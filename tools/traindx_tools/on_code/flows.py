"""Where a value goes within its function: into which backward call, return or condition, by the forms it passes.

A flow ends where the value is cut (`detach`, `item`), goes through a call whose result does not contain it as it is
(a network), or is only a factor of another term.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written

_CUTS = frozenset({"detach", "item", "numpy", "tolist", "data", "shape", "size", "dim", "numel", "grad", "dtype",
                   "device", "is_cuda", "detach_", "cpu_item"})  # fmt: skip
_KEEPS = re.compile(
    r"loss|criterion|mse|norm|mean|sum|square|pow|sqrt|abs|relu|cat|stack|maximum|max$|min$|clamp|softplus|einsum|exp$"
    r"|reshape|flatten|squeeze|hypot|zip|enumerate|list|tuple|log$|where|mul$|add$|sub$|div$|dot|stack|huber",
    re.IGNORECASE,
)
_BACKWARD = frozenset({"backward", "manual_backward"})
_MOST = 120


def ends(code: Syntax, source: ast.expr, factor: Callable[[ast.expr], bool]) -> Iterator[tuple[str, ast.AST]]:
    """("backward" | "return", node) for each end that a value reaches; `factor` says what it may be multiplied by."""
    queue: list[ast.AST] = [source]
    seen: set[int] = set()
    for node in queue:
        if id(node) in seen or len(seen) > _MOST:
            continue
        seen.add(id(node))
        up = code.parent(node)
        if isinstance(up, ast.BinOp):
            other = up.right if up.left is node else up.left
            scales = isinstance(up.op, (ast.Mult, ast.MatMult)) or (isinstance(up.op, ast.Div) and up.right is node)
            if not scales or other is node or factor(other):
                queue.append(up)
        elif isinstance(up, ast.Attribute):
            above = code.parent(up)
            if up.attr in _BACKWARD:
                yield "backward", up
            elif up.attr not in _CUTS and isinstance(above, ast.Call):
                queue.append(above)
        elif isinstance(up, ast.Call):
            name = last_name(up.func)
            if name in _BACKWARD:
                yield "backward", up
            elif name in ("append", "extend") and isinstance(up.func, ast.Attribute):
                queue += _reads(code, up, up.func.value)
            elif _KEEPS.search(name):
                queue.append(up)
        elif isinstance(up, ast.keyword):
            call = code.parent(up)
            queue += [call] if isinstance(call, ast.Call) and _KEEPS.search(last_name(call.func)) else []
        elif isinstance(up, ast.Subscript):
            queue += [up] if up.value is node else []
        elif isinstance(up, ast.comprehension):
            queue += _bound_in(code, up)
        elif isinstance(up, (ast.UnaryOp, ast.Tuple, ast.List, ast.Starred, ast.ListComp, ast.GeneratorExp, ast.IfExp)):
            queue.append(up)
        elif isinstance(up, ast.Assign):
            for target in up.targets:
                queue += _reads(code, up, target)
        elif isinstance(up, (ast.AugAssign, ast.AnnAssign, ast.For)):
            queue += _reads(code, up, up.target)
        elif isinstance(up, ast.Return):
            yield "return", up


def _reads(code: Syntax, place: ast.AST, target: ast.AST) -> list[ast.AST]:
    """The later reads of what a target binds, up to its next plain assignment in the same block."""
    names = {n.id for n in below(target) if isinstance(n, ast.Name)}
    scope = code.scope(place)
    line = getattr(place, "lineno", 0)
    found: list[ast.AST] = []
    for name in code.of(ast.Name):
        if name.id in names and isinstance(name.ctx, ast.Load) and name.lineno > line and code.scope(name) is scope:
            rebound = code.assigned(name)
            around = code.statement(rebound) if rebound is not None else None
            if around is None or around is place or around.lineno <= line or isinstance(place, ast.AugAssign):
                found.append(name)
    return found


def _bound_in(code: Syntax, made: ast.comprehension) -> list[ast.AST]:
    holder = code.parent(made)
    names = {n.id for n in below(made.target) if isinstance(n, ast.Name)}
    element = getattr(holder, "elt", None)
    return [n for n in below(element) if isinstance(n, ast.Name) and n.id in names] if element is not None else []


_SCALES = re.compile(r"lambda|lam$|lmbd|weight|coef|alpha|beta|gamma|scale|factor|(^|_)w(_|$)|penalty|ratio|eta"
                     r"|^(nu|mu|kappa|lam|eps|c|k|d)$|viscos|diffus|conduct", re.IGNORECASE)  # fmt: skip


def scales(node: ast.expr) -> bool:
    """Whether a factor is a number or a setting, and not another term of a loss."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.BinOp):
        return scales(node.left) and scales(node.right)
    if isinstance(node, ast.UnaryOp):
        return scales(node.operand)
    name = last_name(node)
    return bool(_SCALES.search(name)) or name.isupper() or \
        re.match(r"self\.[\w.]+$|(h?params|args|cfg|config|opt)\b", written(node)) is not None  # fmt: skip


def places_of(code: Syntax, value: ast.expr) -> list[ast.expr]:
    """Where a value stands: where it is made, and every read of the one name that certainly holds it."""
    statement = code.statement(value)
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign) and statement.value is value:
        target = statement.targets[0]
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple):
        pairs = zip(getattr(statement.targets[0], "elts", ()), statement.value.elts, strict=False)
        target = next((t for t, v in pairs if v is value), None)
    if not isinstance(target, ast.Name):
        return [value]
    reads = [n for n in code.of(ast.Name) if n.id == target.id and isinstance(n.ctx, ast.Load)]
    return [value, *(n for n in reads if code.assigned(n) is value)]
