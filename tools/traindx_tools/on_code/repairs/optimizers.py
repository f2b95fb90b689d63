"""What an optimizer holds: parameters added, layers thawed, the optimizer built later (C108, C153, C162, C163)."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs.names import bound_between, reads
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Event


def loaded_trainable(loads: Sequence[tuple[SourceFile, ast.AST]]) -> tuple[Patch, ...]:
    """is_trainable=True for the one adapter that the model is made of."""
    wanted = [(f, n) for f, n in loads if isinstance(n, ast.Call) and argument(n, 99, "is_trainable") is None]
    if len(wanted) != 1 or not isinstance(wanted[0][1], ast.Call):
        return ()
    file, node = wanted[0]
    return Change(file, "load the adapter so that it trains").pass_argument(node, "is_trainable", "True").patches()


def built_later(file: SourceFile, optimizer: ast.AST, change_node: ast.AST) -> tuple[Patch, ...]:
    """The optimizer built behind a statement that makes new parameters, where nothing between uses it."""
    code = syntax(file)
    statement, grown = code.statement(optimizer), code.statement(change_node)
    if not isinstance(statement, ast.Assign) or grown is None or statement.lineno >= grown.lineno:
        return ()
    if code.parent(statement) is not code.parent(grown) or bound_between(code, statement, grown, reads(statement)):
        return ()
    made = {written(t) for t in statement.targets}
    between = [n for s in Change(file, "").block(statement) if statement.lineno < s.lineno <= grown.lineno
               for n in below(s) if isinstance(n, (ast.Name, ast.Attribute))]  # fmt: skip
    if any(written(n) in made for n in between):
        return ()
    change = Change(file, "build the optimizer over what is trained")
    return change.move_after(statement, grown).patches()


def over_another(file: SourceFile, optimizer: ast.AST, trained: ast.AST) -> tuple[Patch, ...]:
    """The optimizer built behind the model that is trained, over that one's parameters."""
    code = syntax(file)
    statement, model = code.statement(optimizer), code.statement(trained)
    if not isinstance(statement, ast.Assign) or not isinstance(model, ast.Assign):
        return ()
    new = written(model.targets[0])
    owners = [c.func.value for c in below(statement) if isinstance(c, ast.Call)
              and last_name(c.func) == "parameters" and isinstance(c.func, ast.Attribute)]  # fmt: skip
    held = {written(o) for o in owners}
    if new in held:
        return built_later(file, optimizer, trained)
    if len(owners) != 1 or code.scope(optimizer) is not code.scope(trained) or not isinstance(owners[0], ast.Name):
        return ()
    if statement.lineno > model.lineno:
        return Change(file, f"build the optimizer over {new}").replace(owners[0], new).patches()
    if not built_later(file, optimizer, trained) or statement.lineno != statement.end_lineno:
        return ()
    text = re.sub(rf"\b{re.escape(owners[0].id)}\.parameters\(", f"{new}.parameters(", source_of(file, statement))
    change = Change(file, f"build the optimizer over {new}")
    return change.delete(statement).after(model, text).patches()


def rebuilt_in_method(file: SourceFile, optimizer: ast.AST, method: ast.AST) -> tuple[Patch, ...]:
    """self.opt built anew at the end of the method that replaces the modules it is built over."""
    code = syntax(file)
    statement = code.statement(optimizer)
    if not isinstance(statement, ast.Assign) or not isinstance(method, ast.FunctionDef):
        return ()
    if code.owner(optimizer) is None or code.owner(optimizer) is not code.owner(method.body[0]):
        return ()
    if not written(statement.targets[0]).startswith("self."):
        return ()
    lines = _with_names(code, statement)
    stores = [s for s in method.body if isinstance(s, ast.Assign) and any("self." in written(t) for t in s.targets)]
    if lines is None or not stores:
        return ()
    return Change(file, "build the optimizer over the new modules").after(stores[-1], "\n".join(lines)).patches()


def _with_names(code: Syntax, statement: ast.Assign) -> list[str] | None:
    """The statement and the local names that it is made of, as text; None where they lead further than one step."""
    lines: list[str] = []
    for name in sorted(n.id for n in below(statement.value) if isinstance(n, ast.Name)):
        bound = code.bindings(ast.copy_location(_name_of(code, statement, name), statement))
        if name in code.aliases or name == "self" or name in ("list", "filter", "dict", "chain"):
            continue
        local = [(s, v) for s, v in bound if code.scope(s) is code.scope(statement)]
        if not local:
            function = code.function(statement)
            if function is None or name not in {a.arg for a in function.args.args}:
                continue
            held = next((written(s.targets[0]) for s in function.body if isinstance(s, ast.Assign)
                         and written(s.value) == name and written(s.targets[0]).startswith("self.")), None)  # fmt: skip
            if held is None:
                return None
            lines.insert(0, f"{name} = {held}")
            continue
        if len(local) != 1 or local[0][0].end_lineno != local[0][0].lineno:
            return None
        lines.append(source_of(code.file, local[0][0]))
    return [*lines, source_of(code.file, statement)] if statement.end_lineno == statement.lineno else None


def _name_of(code: Syntax, statement: ast.stmt, name: str) -> ast.Name:
    return next(n for n in below(statement) if isinstance(n, ast.Name) and n.id == name)


def thawed(file: SourceFile, line: int, head: ast.AST, head_file: SourceFile) -> tuple[Patch, ...]:
    """The output layer made trainable again, right behind what froze the whole model."""
    code = syntax(file)
    freeze = next((c for c in code.of(ast.Call) if c.lineno == line and last_name(c.func) == "requires_grad_"), None)
    frozen: ast.AST | None = freeze
    if frozen is None:
        frozen = next((s for s in code.of(ast.Assign) if s.lineno == line
                       and last_name(s.targets[0]) == "requires_grad"), None)  # fmt: skip
    if frozen is None:
        return ()
    loop = next((x for x in code.loops(frozen) if isinstance(x, ast.For)), None)
    owner = _frozen_model(freeze, loop)
    target = syntax(head_file).statement(head)
    name = target.targets[0] if isinstance(target, ast.Assign) and len(target.targets) == 1 else None
    if owner is None or not isinstance(name, ast.Attribute):
        return ()
    layer = f"{owner}.{name.attr}" if written(name.value) in ("self", owner) else None
    after = loop if loop is not None else code.statement(frozen)
    if layer is None or not isinstance(after, ast.stmt):
        return ()
    return Change(file, "leave the new output layer trainable").after(after, f"{layer}.requires_grad_(True)").patches()


def _frozen_model(freeze: ast.Call | None, loop: ast.For | None) -> str | None:
    """`model` of `for p in model.parameters()` or of `model.requires_grad_(False)`."""
    if loop is not None:
        call = loop.iter
        named = isinstance(call, ast.Call) and last_name(call.func) in ("parameters", "named_parameters")
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and named:
            return written(call.func.value)
        return None
    return written(freeze.func.value) if freeze is not None and isinstance(freeze.func, ast.Attribute) else None


def holding_too(file: SourceFile, optimizer: ast.AST, modules: Sequence[str]) -> tuple[Patch, ...]:
    """The parameters of more modules in an optimizer that was built over another's."""
    given = argument(optimizer, 0, "params") if isinstance(optimizer, ast.Call) else None
    own = isinstance(given, ast.Call) and last_name(given.func) == "parameters" and not given.args
    change = Change(file, f"train {' and '.join(modules)} too")
    if given is None or not all(modules):
        return ()
    if own:
        return change.wrap(given, "[*", "".join(f", *{m}.parameters()" for m in modules) + "]").patches()
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add) and "list(" in written(given):
        return change.insert(
            given.end_lineno or 0, given.end_col_offset or 0, "".join(f" + list({m}.parameters())" for m in modules)
        ).patches()
    return ()


@dataclass(frozen=True)
class Part:
    """A part of a model by the path from it: `neck`, `blocks.0`; a single parameter has no parameters()."""

    path: str
    single: bool = False

    def of(self, model: str) -> str:
        """The parameters of it: `net.neck.parameters()`, `net.blocks[0].parameters()`, `[net.scale]`."""
        text = model + re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", f".{self.path}")
        return f"[{text}]" if self.single else f"{text}.parameters()"
def over_all(file: SourceFile, optimizer: ast.AST) -> tuple[Patch, ...]:
    """The optimizer over all parameters: those without a gradient, which are frozen for now, it passes over."""
    given = argument(optimizer, 0, "params") if isinstance(optimizer, ast.Call) else None
    code = syntax(file)
    made = code.assigned(given) if isinstance(given, ast.Name) else given
    inner: ast.expr | None = None
    if isinstance(made, ast.Call) and last_name(made.func) == "filter" and len(made.args) == 2:
        inner = made.args[1]
    elif isinstance(made, (ast.ListComp, ast.GeneratorExp)) and len(made.generators) == 1:
        one = made.generators[0]
        inner = one.iter if written(made.elt) == written(one.target) else None
        if [written(i) for i in one.ifs] != [f"{written(one.target)}.requires_grad"]:
            return ()
    if not isinstance(inner, ast.Call) or last_name(inner.func) != "parameters" or made is None:
        return ()
    return Change(file, "build the optimizer over all parameters").replace(made, source_of(file, inner)).patches()


def handed_over(file: SourceFile, built: ast.Assign, called_in: SourceFile, call: ast.AST, store: Event
                ) -> tuple[Patch, ...]:  # fmt: skip
    """`self.opt.add_param_group({"params": self.net.head.parameters()})` behind `self.net.extend(...)`.

    `built`: where the optimizer is made, `call`: the call of the model's own method that stores the new module.
    """
    code = syntax(called_in)
    owner = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    optimizer, statement = built.targets[0], code.statement(call)
    stored_in = store.node.value if isinstance(store.node, ast.Attribute) else None
    if owner is None or statement is None or file is not called_in or written(stored_in) != "self":
        return ()
    together = code.owner(call) is not None and code.owner(call) is code.owner(built)
    held = re.fullmatch(r"(.+)\.parameters\(\)", written(argument(built.value, 0, "params"))) if isinstance(
        built.value, ast.Call) else None  # fmt: skip
    reached = together and written(optimizer).startswith("self.") and written(owner).startswith("self.")
    if not reached or held is None or held[1] != written(owner) or not isinstance(statement, (ast.Expr, ast.Assign)):
        return ()
    new = f"{written(owner)}.{store.name.partition('.')[2]}"
    text = f'{written(optimizer)}.add_param_group({{"params": {new}.parameters()}})'
    return Change(called_in, "hand the new parameters to the optimizer").after(statement, text).patches()
