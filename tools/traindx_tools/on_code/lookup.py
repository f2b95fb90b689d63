"""What a name stands for across the files of a project: its value, a number, a text, the function that it calls.

`Syntax` answers within one file. Imports, fields of configuration objects (`hp.lr`), arguments that the only caller of
a function passes, and functions of other files are followed here. Where two definitions could be meant there is no
answer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.on_code.answers import Keeps, kept
from traindx_tools.on_code.nodes import computed, listed
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, syntax, written

Body = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Where = tuple[Syntax, ast.expr]
_DEEP = 12


@dataclass(frozen=True, eq=False)
class Lookup(Keeps):
    """The sources of a project, asked together."""

    codes: tuple[Syntax, ...]

    @cached_property
    def functions(self) -> dict[str, list[tuple[Syntax, ast.FunctionDef]]]:
        """Every function and method by its name."""
        return listed((body.name, (code, body)) for code in self.codes for body in code.of(ast.FunctionDef))

    @cached_property
    def classes(self) -> dict[str, list[tuple[Syntax, ast.ClassDef]]]:
        """Every class by its name."""
        return listed((kind.name, (code, kind)) for code in self.codes for kind in code.of(ast.ClassDef))

    def callers(self, body: Body, code: Syntax) -> list[tuple[Syntax, ast.Call]]:
        """Every call of a function, of the class for `__init__`; nothing where the name is not the function's alone."""
        if isinstance(body, ast.Lambda):
            return []
        name = body.name
        if name == "__init__":
            owner = code.owner(body)
            name = owner.name if owner is not None else name
            if len(self.classes.get(name, ())) > 1:  # another class of that name may be made elsewhere
                return [(code, call) for call in code.calls(name)]
        elif len(self.functions.get(name, ())) != 1:
            return []
        return self.calls.get(name, [])

    @cached_property
    def calls(self) -> dict[str, list[tuple[Syntax, ast.Call]]]:
        """Every call by the last part of its name."""
        return listed((last_name(call.func), (code, call)) for code in self.codes for call in code.of(ast.Call))

    @cached_property
    def made_with(self) -> dict[str, list[tuple[Syntax, ast.Assign]]]:
        """Assignments of a call's result, by the last part of what is called and of what it is given: f = jit(step)."""
        return listed((name, (code, made)) for code in self.codes for made in code.of(ast.Assign)
                      if isinstance(made.value, ast.Call)
                      for name in {last_name(made.value.func), *(last_name(a) for a in made.value.args)})

    @cached_property
    def stores(self) -> dict[str, list[tuple[Syntax, ast.Attribute]]]:
        """Attributes of anything but self that are set, by their name."""
        return listed((node.attr, (code, node)) for code in self.codes for node in code.of(ast.Attribute)
                      if isinstance(node.ctx, ast.Store) and written(node.value) != "self")

    @cached_property
    def _options(self) -> dict[str, list[Where]]:
        """Fields and options by their name."""
        return listed((name, (code, default)) for code in self.codes for name, default in code.options.items())

    @cached_property
    def _modules(self) -> dict[str, list[Syntax]]:
        """Files by the name that they are imported by."""
        return listed((code.file.path.rpartition("/")[2].removesuffix(".py"), code) for code in self.codes)

    def one_step(self, code: Syntax, node: ast.expr) -> Where | None:
        """Where a name or attribute comes from, one step back; None at its origin or where several could be meant."""
        made = code.assigned(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if made is not None:
            return code, made
        if isinstance(node, ast.Name) and not code.bindings(node):
            return self._passed(code, node) or self._imported(code, node)
        if isinstance(node, ast.Attribute) and not code.bindings(node):
            fields = self._options.get(node.attr, [])
            return fields[0] if len(fields) == 1 else self._of_module(code, node)
        return None

    def origin(self, code: Syntax, node: ast.expr) -> Where:
        """A name followed to where its value is made."""
        for _ in range(_DEEP):
            step = self.one_step(code, node)
            if step is None or step[1] is node:
                break
            code, node = step
        return code, node

    def _passed(self, code: Syntax, name: ast.Name) -> Where | None:
        """The argument that the only caller passes, or the default that nobody overrides."""
        body = next((a for a in code.above(name) if isinstance(a, (*FunctionNode, ast.Lambda))
                     and name.id in parameters(a)), None)  # fmt: skip
        if body is None or not isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        spec = [n for n in parameters(body) if n not in ("self", "cls")]
        calls = self.callers(body, code)
        position = spec.index(name.id) if name.id in spec else -1
        given = [(c, argument(call, position, name.id)) for c, call in calls]
        passed = [(c, value) for c, value in given if value is not None]
        if len(passed) == 1 and len(calls) == 1:
            return passed[0]
        default = parameters(body)[name.id]
        return (code, default) if default is not None and not passed else None

    def _imported(self, code: Syntax, name: ast.Name) -> Where | None:
        origin = code.aliases.get(name.id)
        if origin is None or "." not in origin:
            return None
        module, _, attribute = origin.rpartition(".")
        return self._top_level(module, attribute)

    def _of_module(self, code: Syntax, node: ast.Attribute) -> Where | None:
        module = code.aliases.get(last_name(node.value)) if isinstance(node.value, ast.Name) else None
        return self._top_level(module, node.attr) if module else None

    def _top_level(self, module: str, name: str) -> Where | None:
        for code in self._modules.get(module.rpartition(".")[2], ()):
            for statement in code.file.tree.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else (
                    [statement.target] if isinstance(statement, ast.AnnAssign) else [])  # fmt: skip
                value = getattr(statement, "value", None)
                if value is not None and any(isinstance(t, ast.Name) and t.id == name for t in targets):
                    return code, value
        return None

    def function(self, code: Syntax, func: ast.expr, left: int = _DEEP) -> tuple[Syntax, Body] | None:
        """The function of the project that an expression calls or stands for."""
        if isinstance(func, ast.Lambda):
            return code, func
        if isinstance(func, ast.Name) and code.bindings(func):
            made = code.assigned(func)
            return self.function(code, made, left - 1) if made is not None and left > 0 else None
        if not isinstance(func, (ast.Name, ast.Attribute)):
            return None
        name = last_name(func)
        found = self.functions.get(name, [])
        if found and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
            own = code.owner(func)
            found = (self._homes.get((id(own), name), []) if own is not None else []) or found
        elif found and isinstance(func, ast.Name):
            places = {id(code.scope(func)), id(code.file.tree)}
            near = [one for place in places for one in self._scopes.get((place, name), [])]
            found = near if len(near) == 1 else self._homes.get((id(None), name), [])
        return found[0] if len(found) == 1 else None

    def made_by(self, code: Syntax, made: ast.Call) -> tuple[Syntax, ast.FunctionDef] | None:
        """The function that another one defines and returns: `make_step(model)`."""
        maker = self.function(code, made.func)
        outcomes = list(returned(maker[1])) if maker is not None else []
        if maker is None or len(outcomes) != 1 or not isinstance(outcomes[0], ast.Name):
            return None
        inner = [n for n in below(maker[1]) if isinstance(n, ast.FunctionDef) and n.name == outcomes[0].id]
        return (maker[0], inner[0]) if len(inner) == 1 and inner[0] is not maker[1] else None

    @cached_property
    def _homes(self) -> dict[tuple[int, str], list[tuple[Syntax, ast.FunctionDef]]]:
        """Functions by the class around them and their name."""
        return self._by(Syntax.owner)

    @cached_property
    def _scopes(self) -> dict[tuple[int, str], list[tuple[Syntax, ast.FunctionDef]]]:
        """Functions by the function or file around them and their name."""
        return self._by(Syntax.scope)

    def _by(self, around: Callable[[Syntax, ast.AST], ast.AST | None]
            ) -> dict[tuple[int, str], list[tuple[Syntax, ast.FunctionDef]]]:  # fmt: skip
        return listed(((id(around(code, body)), name), (code, body)) for name, same in self.functions.items()
                      for code, body in same)

    def number(self, code: Syntax, node: ast.expr | None, left: int = _DEEP) -> float | None:
        """A number, through files and fields."""
        if node is None or left <= 0:
            return None
        plain = code.number(node)
        if plain is not None:
            return plain
        if isinstance(node, ast.BinOp):
            a, b = self.number(code, node.left, left - 1), self.number(code, node.right, left - 1)
            return None if a is None or b is None else computed(node.op, a, b)
        step = self.one_step(code, node)
        return None if step is None else self.number(*step, left - 1)


def returned(body: Body) -> Iterator[ast.expr]:
    """What a function returns, without the functions inside it."""
    if isinstance(body, ast.Lambda):
        yield body.body
        return
    queue: list[ast.AST] = list(body.body)
    for node in queue:
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        if not isinstance(node, (*FunctionNode, ast.ClassDef, ast.Lambda)):
            queue += [c for c in ast.iter_child_nodes(node) if isinstance(c, (ast.stmt, ast.ExceptHandler))]


@kept
def lookup(project: Project) -> Lookup:
    """The sources of a project, asked together; made once."""
    return Lookup(tuple(syntax(f) for f in project.files))
