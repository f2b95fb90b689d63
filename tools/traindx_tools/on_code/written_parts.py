"""The names of a model's parts as they are written: attributes of modules, `name="..."`, keys of parameter trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, written

_MODULES = re.compile(r"(^|\.)(Module|LightningModule|PreTrainedModel)$")
_INIT = re.compile(r"init|param|build|create|make", re.IGNORECASE)
_HEAD = re.compile(r"(^|_)(head|heads|classifier|class|classes|logits?|out|output|readout|final|predictor|prediction|"
                   r"decision|scores?|regressor|fc_out|lm_head|answer|target)($|_|\d)", re.IGNORECASE)  # fmt: skip
_LAYERS = re.compile(r"^(torch\.nn|flax\.(linen|nnx)|equinox\.nn|haiku)\.(?!functional|relu|gelu|silu|tanh|softmax)")


@dataclass(frozen=True)
class Parts:
    """The parts of one model: what they are called, and which of them make its output."""

    code: Syntax
    node: ast.AST
    names: tuple[str, ...]
    outputs: frozenset[str]


def written_parts(look: Lookup) -> Iterator[Parts]:
    """Every module with named parts, and every tree of parameters that is written as a table."""
    for code in look.codes:
        for owner in code.of(ast.ClassDef):
            if any(_MODULES.search(code.qualified(b) or written(b)) for b in owner.bases):
                found = _of_module(look, code, owner)
                if found.names:
                    yield found
        if "jax" in code.file.text:
            for table in code.of(ast.Dict):
                found = _of_table(code, table)
                if len(found.names) > 1:
                    yield found


def _of_module(look: Lookup, code: Syntax, owner: ast.ClassDef) -> Parts:
    names: list[str] = []
    returned = {id(n) for r in code.inside(owner, ast.Return) if r.value for n in below(r.value)}
    outputs: set[str] = set()
    for call in code.inside(owner, ast.Call):
        if not _is_layer(look, code, call):
            continue
        given = argument(call, 99, "name")
        statement = code.statement(call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            names.append(given.value)
            if id(call) in returned:
                outputs.add(given.value)
        elif isinstance(target, ast.Attribute) and written(target.value) == "self":
            names.append(target.attr)
    for attribute in code.inside(owner, ast.Attribute):
        up = code.parent(attribute)
        called = isinstance(up, ast.Call) and up.func is attribute and id(up) in returned
        if called and attribute.attr in names and written(attribute.value) == "self" and _is_last(code, up):
            outputs.add(attribute.attr)
    outputs |= {n for n in names if _HEAD.search(n)}
    return Parts(code, owner, tuple(dict.fromkeys(names)), frozenset(outputs))


def _is_last(code: Syntax, call: ast.AST | None) -> bool:
    """Whether no other layer of the module takes what this one gives."""
    for up in code.above(call) if call is not None else ():
        if isinstance(up, ast.Return):
            return True
        if isinstance(up, ast.Call) and written(up.func).startswith("self."):
            return False
    return False


def _is_layer(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    name = code.qualified(call.func)
    short = last_name(call.func)
    if _LAYERS.match(name):
        return short[:1].isupper()
    kinds = look.classes.get(short, ())
    return any(_MODULES.search(c.qualified(b) or written(b)) for c, k in kinds for b in k.bases)


def _of_table(code: Syntax, table: ast.Dict) -> Parts:
    """Keys of a table of initialised parts: in a function that initialises, or bound to `params`."""
    statement, function = code.statement(table), code.function(table)
    target = written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    meant = "params" in target or (isinstance(statement, ast.Return) and function is not None
                                   and _INIT.search(function.name) is not None)  # fmt: skip
    direct = statement is not None and table is getattr(statement, "value", None)
    if not meant or not direct:
        return Parts(code, table, (), frozenset())
    pairs = [(k.value, v) for k, v in zip(table.keys, table.values, strict=True)
             if isinstance(k, ast.Constant) and isinstance(k.value, str)]  # fmt: skip
    made = all(isinstance(v, (ast.Call, ast.Dict, ast.List, ast.ListComp)) and names_in(v) for _, v in pairs)
    names = tuple(k for k, _ in pairs) if made and len(pairs) == len(table.keys) else ()
    return Parts(code, table, names, frozenset(n for n in names if _HEAD.search(n)))
