"""What is kept is the array that the next step writes over.

An environment, a simulator or a buffer that moves its state in place (`self.state[0] = ...`, `self.state[:2] = ...`,
`out=self.state`) and returns that very array hands out one array again and again. Kept in a replay memory or a list,
all entries of an episode are one array with its last values: observation and next observation are equal, and values
learned from them mean nothing. A copy belongs where it is returned or where it is kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, syntax, written

(RULE,) = pages("state", ("C262",))
_KEEPS = frozenset({"append", "push", "add", "store", "remember", "put", "record", "insert", "appendleft", "save",
                    "observe", "add_transition", "add_experience"})  # fmt: skip
_COPIES = re.compile(r"copy|clone|array\(|tensor\(|astype|stack\(|float\(|tolist|\[\.\.\.\]|concatenate|\[[^\]]*\]\s*=")
_RETURNS = re.compile(r"return self\.\w+(\(\))?\s*(,|#|$)|return \(?[^\n]*, self\.\w+\s*[,)]?\s*(#|$)", re.MULTILINE)
_IN_PLACE = frozenset({"add_", "sub_", "mul_", "div_", "copy_", "clamp_", "lerp_", "fill_", "fill", "sort", "put"})


@dataclass(frozen=True)
class _Method:
    """A method that returns an attribute which some method of the class changes in place. `at`: its index, or None."""

    code: Syntax
    owner: str
    name: str
    given: ast.Attribute
    changed: ast.AST
    at: int | None


def check(project: Project) -> Iterator[Finding]:
    """Look at every class that hands out what it changes."""
    codes = [syntax(f) for f in project.files]
    methods = [m for code in codes if code.file.mentions(_RETURNS) for m in _methods(code)]
    if not methods:
        return
    for method in methods:
        if sum(_defines(c, method.name) for c in codes) > 1:
            continue  # which class is meant is not known
        for code in codes:
            kept = _kept(codes, code, method)
            if kept is not None:
                yield _finding(code, kept, method)
                break


def _methods(code: Syntax) -> Iterator[_Method]:
    lines = [r.lineno for r in code.of(ast.Return) if r.value is not None]
    for owner in code.of(ast.ClassDef):
        if not any(owner.lineno <= line <= (owner.end_lineno or line) for line in lines):
            continue
        changed = dict(_changed(code, owner))
        for method in owner.body if changed else ():
            if not isinstance(method, FunctionNode):
                continue
            for node in below(method):
                if not isinstance(node, ast.Return) or node.value is None:
                    continue
                parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                for index, part in enumerate(parts):
                    part = _handed(owner, part)
                    name = _own(part)
                    if name in changed and isinstance(part, ast.Attribute):
                        at = index if isinstance(node.value, ast.Tuple) else None
                        yield _Method(code, owner.name, method.name, part, changed[name], at)


def _handed(owner: ast.ClassDef, part: ast.expr) -> ast.expr:
    """`self.state` for `self._observation()`, a method that returns it as it is."""
    if not isinstance(part, ast.Call) or part.args or part.keywords or not _own(part.func):
        return part
    body = next((m for m in owner.body if isinstance(m, FunctionNode) and m.name == last_name(part.func)), None)
    given = [n.value for n in below(body) if isinstance(n, ast.Return)] if body is not None else []
    return given[0] if len(given) == 1 and given[0] is not None else part


def _changed(code: Syntax, owner: ast.ClassDef) -> Iterator[tuple[str, ast.AST]]:
    """Arrays among the attributes that a method, the constructor apart, changes in place."""
    for method in owner.body:
        if not isinstance(method, FunctionNode) or method.name in ("__init__", "reset"):
            continue
        for node in below(method):
            target: ast.expr | None = None
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
                target = node.target.value if not isinstance(node.target.slice, ast.Constant) or isinstance(
                    node.target.slice.value, int) else None
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                taken, held = node.targets[0].slice, node.targets[0].value
                entry = isinstance(taken, ast.Constant) and isinstance(taken.value, int) and _is_array(code, held)
                target = held if entry or isinstance(taken, (ast.Slice, ast.Tuple)) else None
            elif isinstance(node, ast.Call):
                out = next((k.value for k in node.keywords if k.arg == "out"), None)
                changes = isinstance(node.func, ast.Attribute) and node.func.attr in _IN_PLACE
                inner = node.func.value if changes and isinstance(node.func, ast.Attribute) else None
                target = out if out is not None else inner
            if target is not None and (name := _own(target)) and not _made_before(method, name, node):
                yield name, node


def _is_array(code: Syntax, attribute: ast.expr) -> bool:
    """Whether an attribute is made as an array or a list somewhere in its class."""
    made = [v for _, v in code.bindings(attribute)]
    return any(isinstance(v, ast.List) or (isinstance(v, ast.Call) and code.qualified(v.func).partition(".")[0] in
                                           ("numpy", "torch")) for v in made)  # fmt: skip


def _made_before(method: ast.AST, name: str, change: ast.AST) -> bool:
    """Whether the method makes the array anew before it changes it."""
    line = getattr(change, "lineno", 0)
    return any(isinstance(n, ast.Assign) and n.lineno < line and name in [_own(t) for t in n.targets]
               for n in below(method))  # fmt: skip


def _own(node: ast.expr) -> str:
    """`state` for `self.state`."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if own and isinstance(node, ast.Attribute) else ""


def _defines(code: Syntax, name: str) -> int:
    return sum(isinstance(m, FunctionNode) and m.name == name for c in code.of(ast.ClassDef) for m in c.body)


def _kept(codes: list[Syntax], code: Syntax, method: _Method) -> ast.Call | None:
    """A call in a loop that keeps a name which is bound to what the method returns."""
    for call in code.calls(method.name):
        statement = code.statement(call)
        if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and method.at is not None and method.at < len(target.elts):
            target = target.elts[method.at]
        if not isinstance(target, ast.Name) or not code.loops(call):
            continue
        for keeping in code.calls(*_KEEPS):
            same = code.function(keeping) is code.function(call) and code.loops(keeping)
            if same and _passes(keeping, target.id) and not _copied(codes, keeping):
                return keeping
    return None


def _passes(call: ast.Call, name: str) -> bool:
    """Whether a call is given a name as it is, alone or in a tuple."""
    given = [*call.args, *(k.value for k in call.keywords)]
    parts = [p for a in given for p in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]
    return any(isinstance(p, ast.Name) and p.id == name for p in parts)


def _copied(codes: list[Syntax], call: ast.Call) -> bool:
    """Whether the project's own method of that name copies what it is given; a list or deque does not."""
    own = [m for c in codes for o in c.of(ast.ClassDef) for m in o.body
           if isinstance(m, FunctionNode) and m.name == last_name(call.func)]  # fmt: skip
    if not own:
        return last_name(call.func) not in ("append", "appendleft")
    return any(_COPIES.search(written(m)) for m in own)


def _finding(code: Syntax, kept: ast.Call, method: _Method) -> Finding:
    given = written(method.given)
    return RULE.finding(
        f"{method.owner}.{method.name} returns {given} at {method.code.at(method.given)}, the array that "
        f"{written(method.changed)[:80]} at {method.code.at(method.changed)} changes in place; {written(kept)[:80]} at "
        f"{code.at(kept)} keeps it without a copy: every entry becomes the latest state",
        method.code.place(method.given),
        method.code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "alias", "attribute": method.given.attr},
    )
