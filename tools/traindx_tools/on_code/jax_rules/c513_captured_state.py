"""A jitted function reads a variable that changes later.

What a jitted function takes from outside is fixed when it is traced. A learning rate, a parameter tree or a counter
that the loop binds anew is a constant inside: the schedule has no effect, the parameters stay the first ones. So is an
attribute of an object outside that the loop sets; with `jit(self._update)` every attribute and property of self, in the
methods that it calls as well; a global; an entry of a dictionary. It has to be an argument.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.stale import Stale, stale_reads
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, syntax, written
from traindx_tools.on_code.tracing import Traced, traced
from traindx_tools.rules import Rule

RULE = Rule(
    id="C513",
    name="captured-state",
    title="A jitted function reads a variable that changes later",
    severity=Severity.HIGH,
    sees="A name or attribute that a jitted function takes from outside and that a loop outside sets anew.",
    matters="The function goes on with the first value: a schedule or an update without effect.",
    alike=("a constant that is never bound again",),
    confirm=("print the value inside with jax.debug.print over some steps",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at what every jitted function takes from outside."""
    told_of: set[int] = set()
    stored = {n.attr for f in project.files for n in syntax(f).of(ast.Attribute) if isinstance(n.ctx, ast.Store)}
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        for one in traced(code):
            if "jit" not in one.how and "pmap" not in one.how:
                continue
            told = False
            for name in _free(one.node):
                changed = _changed(code, one, name)
                if changed is not None:
                    yield _finding(code, one, name, changed)
                    told = True
                    break
            found = list(_attributes(project, code, one, stored)) if not told else []
            yield from found
            if told or found:
                told_of.add(id(one.node))
    if any("jax" in f.text or "equinox" in f.text for f in project.files):
        for read in stale_reads(lookup(project)):
            if id(read.one.node) not in told_of:
                told_of.add(id(read.one.node))
                yield _stale_finding(read)


def _stale_finding(read: Stale) -> Finding:
    """A value that the compiled function, or what it calls, reads from Python."""
    within = f" (by {read.via.strip()}, which it uses)" if read.via else ""
    return RULE.finding(
        f"{read.one.name} ({read.one.how}) reads {read.name} at {read.code.at(read.read)}{within}, a Python value that "
        f"is fixed while tracing, and {read.where.at(read.changed)} changes it afterwards: the compiled function keeps "
        "the value of its first call",
        read.code.place(read.read),
        read.code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "captured", "name": read.name},
    )


def _free(function: ast.FunctionDef) -> list[ast.Name]:
    bound = {n.id for n in below(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for inner in below(function):
        if isinstance(inner, (*FunctionNode, ast.Lambda)):
            bound |= set(parameters(inner))
            bound |= {inner.name} if isinstance(inner, FunctionNode) else set()
    loads = [n for n in below(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return [n for n in loads if n.id not in bound and not hasattr(builtins, n.id)]


def _stored(code: Syntax) -> frozenset[str]:
    """Names that are bound somewhere in a file."""
    known: frozenset[str] | None = code.__dict__.get("_stored")
    if known is None:
        stored = frozenset(n.id for n in code.of(ast.Name) if isinstance(n.ctx, ast.Store))
        known = code.__dict__["_stored"] = stored
    return known


def _changed(code: Syntax, one: Traced, name: ast.Name) -> ast.AST | None:
    """Where a loop of the function's own scope binds the name anew, while it also calls the function."""
    if name.id not in _stored(code):
        return None
    scope = code.scope(one.node)
    called = {one.node.name} | set(_names_of(code, one.node.name))
    for node in below(scope):
        stored = isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Store)
        if not stored or code.scope(node) is not scope:
            continue
        statement = code.statement(node)
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            continue  # a loop's own variable, over which tests are parametrised
        for loop in code.loops(node):
            inside = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in called
                         for n in below(loop))  # fmt: skip
            if inside and not any(n is one.node for n in below(loop)):
                return node
    return None


def _names_of(code: Syntax, function: str) -> Iterator[str]:
    """Names that are bound to the transformed function: `step = jax.jit(f)`."""
    for node in code.of(ast.Assign):
        made = node.value if isinstance(node.value, ast.Call) else None
        if made is not None and any(isinstance(a, ast.Name) and a.id == function for a in made.args):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))


def _attributes(project: Project, code: Syntax, one: Traced, stored: set[str]) -> Iterator[Finding]:
    """Attributes of objects outside that the training loop sets anew: `S.beta`, while `S.anneal(epoch)` sets it."""
    free = {n.id for n in _free(one.node)}
    for node in below(one.node):
        if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)) or node.attr not in stored:
            continue
        called = code.parent(node)
        if isinstance(called, ast.Call) and called.func is node:
            continue
        if not isinstance(node.value, ast.Name) or node.value.id not in free:
            continue
        place = next(_set_in_a_loop(project, node.value.id, node.attr, one.node), None)
        if place is None:
            continue
        other, changed = place
        yield RULE.finding(
            f"{one.node.name} ({one.how}) reads {written(node)} at {code.at(node)} from outside, and "
            f"{written(changed)} at {other.at(changed)} sets it anew in a loop: the compiled function keeps the value "
            "of its first call",
            code.place(node),
            code.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "captured", "name": written(node)},
        )
        return


def _set_in_a_loop(project: Project, name: str, attribute: str,
                   reader: ast.AST) -> Iterator[tuple[Syntax, ast.AST]]:
    """Where a loop sets an attribute of a module's object: itself, or by a method or function that it calls."""
    for code in map(syntax, project.files):
        if not _of_module(code, name):
            continue
        for stored in _stores(code, name, attribute):
            function = code.function(stored)
            if function is reader:
                continue
            if code.loops(stored):
                yield code, code.statement(stored) or stored
            elif function is not None and name not in parameters(function):
                yield from _called_in_a_loop(project, lambda c, f=function: last_name(c.func) == f.name)  # type: ignore[misc]
        for method in _methods(project, code, name, attribute):
            yield from _called_in_a_loop(project, lambda c, m=method: (  # type: ignore[misc]
                isinstance(c.func, ast.Attribute) and c.func.attr == m and written(c.func.value) == name))


def _of_module(code: Syntax, name: str) -> bool:
    """Whether a file binds the name at its top: by an assignment, an import or a class (of settings)."""
    for s in code.file.tree.body:
        if isinstance(s, (ast.Import, ast.ImportFrom)):
            bound = {a.asname or a.name for a in s.names}
        else:
            bound = {s.name} if isinstance(s, ast.ClassDef) else {
                t.id for t in s.targets if isinstance(t, ast.Name)} if isinstance(s, ast.Assign) else set()  # fmt: skip
        if name in bound:
            return True
    return False


def _stores(code: Syntax, name: str, attribute: str) -> Iterator[ast.Attribute]:
    for node in code.of(ast.Attribute):
        stored = isinstance(node.ctx, ast.Store) and node.attr == attribute
        if stored and isinstance(node.value, ast.Name) and node.value.id == name:
            yield node


def _methods(project: Project, code: Syntax, name: str, attribute: str) -> Iterator[str]:
    """Methods of the object's class, other than its constructor, that set the attribute of self."""
    classes = {last_name(s.value.func) for s in code.file.tree.body if isinstance(s, ast.Assign)
               and isinstance(s.value, ast.Call) and any(isinstance(t, ast.Name) and t.id == name for t in s.targets)}
    for other in map(syntax, project.files) if classes else ():
        for stored in _stores(other, "self", attribute):
            owner, method = other.owner(stored), other.function(stored)
            if owner is not None and method is not None and owner.name in classes and method.name not in _MAKES:
                yield method.name


_MAKES = frozenset({"__init__", "__post_init__", "setup"})


def _called_in_a_loop(project: Project, wanted: Callable[[ast.Call], bool]) -> Iterator[tuple[Syntax, ast.AST]]:
    for code in map(syntax, project.files):
        yield from ((code, call) for call in code.of(ast.Call) if wanted(call) and code.loops(call))


def _finding(code: Syntax, one: Traced, name: ast.Name, changed: ast.AST) -> Finding:
    return RULE.finding(
        f"{one.node.name} ({one.how}) reads {name.id} at {code.at(name)} from outside, and the loop binds it anew at "
        f"line {getattr(changed, 'lineno', 1)}: the compiled function keeps the first value",
        code.place(name),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "captured", "name": name.id},
    )
