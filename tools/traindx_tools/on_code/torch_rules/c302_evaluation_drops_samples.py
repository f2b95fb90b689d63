"""Evaluation leaves out the last batch.

`drop_last=True` is for training, where an odd batch disturbs BatchNorm or costs a compilation. In a validation or test
loader it takes up to a batch of samples out of the metric: with 900 samples and batches of 512, 388 of them are never
looked at, and always the same ones. Where the hits are divided by the length of the data set the metric is too low as
well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.loaders import loader_part, made_for
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.splits import HELD
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C302",
    name="evaluation-drops-samples",
    title="Evaluation leaves out the last batch",
    severity=Severity.MEDIUM,
    sees="A DataLoader for validation or test (by its name, or the name its maker's result gets) with drop_last=True.",
    matters="The metric is over fewer samples; divided by the length of the data set it is too low.",
    alike=("a model that is compiled for one batch size", "a data set that the batch size divides"),
    confirm=("print(len(loader) * loader.batch_size, len(loader.dataset))",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every loader of held-out data."""
    if not any("drop_last" in f.text for f in project.files):
        return
    look = lookup(project)
    for code in look.codes:
        for call in code.calls("DataLoader"):
            if argument(call, 1, "batch_size") is not None and look.number(code, argument(call, 1, "batch_size")) == 1:
                continue
            for name, place, made in _held(look, code, call):
                short = _divided(look, name, argument(made, 0, "dataset"))
                yield RULE.finding(
                    f"{name} at {place.at(made)} leaves out the last batch (drop_last=True): up to a batch of samples "
                    f"is never evaluated" + (f", while {short} counts all of them" if short else ""),
                    place.place(made),
                    place.file.path,
                    bearing=Bearing.CAUSE if short else Bearing.SIGN,
                    measured={"kind": "divided by all" if short else "fewer", "name": name},
                    patch=_kept(look, code, call, made),
                )
                break


def _held(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[tuple[str, Syntax, ast.Call]]:
    """The names of held-out loaders that this call makes with drop_last, and where they are made."""
    said = _said(look, code, call)
    if said is None:
        return
    name, part = made_for(code, call)
    if part == HELD and _is_true(look, code, said):
        yield name, code, call
        return
    body = code.function(call)
    if part is not None or not isinstance(body, ast.FunctionDef) or isinstance(code.parent(call), ast.Dict):
        return
    spec = [n for n in parameters(body) if n not in ("self", "cls")]
    for other, maker in look.callers(body, code):
        outer, bound = made_for(other, maker)
        if bound != HELD or not _returned(code, body, call):
            continue
        value: ast.expr | None = said
        where = code
        if isinstance(said, ast.Name) and said.id in spec:
            given = argument(maker, spec.index(said.id), said.id)
            value, where = (given, other) if given is not None else (parameters(body)[said.id], code)
        if value is not None and isinstance(value, ast.Constant) and _is_true(look, where, value):
            yield outer, other, maker


def _returned(code: Syntax, body: ast.FunctionDef, call: ast.Call) -> bool:
    """Whether the loader is all that a function gives back."""
    if isinstance(code.parent(call), ast.Return):
        return True
    statement = code.statement(call)
    names = {last_name(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
    gives = [n.value for n in below(body) if isinstance(n, ast.Return) and n.value is not None]
    return len(gives) == 1 and isinstance(gives[0], ast.Name) and gives[0].id in names


def _said(look: Lookup, code: Syntax, call: ast.Call) -> ast.expr | None:
    """What stands for drop_last, also in a dict of options that is opened."""
    plain = argument(call, 8, "drop_last")
    if plain is not None:
        return plain
    for keyword in call.keywords:
        if keyword.arg is not None:
            continue
        _, table = look.origin(code, keyword.value)
        if isinstance(table, ast.Call) and last_name(table.func) == "dict":
            found = argument(table, 99, "drop_last")
        elif isinstance(table, ast.Dict):
            found = next((v for k, v in zip(table.keys, table.values, strict=True)
                          if isinstance(k, ast.Constant) and k.value == "drop_last"), None)  # fmt: skip
        else:
            found = None
        stores = code.item_stores.get(written(keyword.value), ())
        updated = any(isinstance(c.func, ast.Attribute) and written(c.func.value) == written(keyword.value)
                      for c in code.calls("update", "pop"))  # fmt: skip
        if found is not None and not updated and not any("drop_last" in written(s.targets[0]) for s in stores):
            return found
    return None


def _is_true(look: Lookup, code: Syntax, said: ast.expr) -> bool:
    if isinstance(said, (ast.Name, ast.Attribute)):
        code, said = look.origin(code, said)
    return isinstance(said, ast.Constant) and said.value is True


def _divided(look: Lookup, name: str, data: ast.expr | None) -> str:
    """The length of the whole data set, where something is divided by it."""
    wanted = {f"len({name}.dataset)", f"len(self.{name}.dataset)"}
    if isinstance(data, (ast.Name, ast.Attribute)) and loader_part(last_name(data)) == HELD:
        wanted.add(f"len({written(data)})")
    for code in look.codes:
        if "len(" not in code.file.text:
            continue
        for node in code.of(ast.BinOp):
            text = written(node.right) if isinstance(node.op, ast.Div) else ""
            if text in wanted:
                return text
    return ""


def _kept(look: Lookup, code: Syntax, call: ast.Call, made: ast.Call) -> tuple[Patch, ...]:
    """drop_last=False where it is written in the call itself."""
    own = argument(call, 99, "drop_last")
    if made is not call or not isinstance(own, ast.Constant):
        return ()
    return forms.keyword_given(code.file, call, "drop_last", "False", "evaluate every sample")
