"""Several layers of one model are initialised by one random key.

The same key gives the same numbers: two layers of equinox of one shape begin with equal weights, others with weights
that depend on each other. `jax.random.split(key, n)` gives each layer its own.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C551",
    name="layers-of-one-key",
    title="Several layers are initialised by one key",
    severity=Severity.MEDIUM,
    sees="One key for two layers of equinox in one constructor.",
    matters="Layers begin equal, or depend on each other.",
    alike=("a key that was split between the two", "one of two layers, by a condition",
           "a target network, which begins as a copy on purpose"),
    confirm=("compare the first weights of two layers of one shape",),
)  # fmt: skip
_COPIES = re.compile(r"target|teacher|copy|copies|shadow|ema", re.IGNORECASE)
_WITHOUT = frozenset({"Dropout", "LayerNorm", "BatchNorm", "GroupNorm", "RMSNorm", "Identity", "Lambda", "PReLU",
                      "AvgPool1d", "AvgPool2d", "MaxPool1d", "MaxPool2d", "StateIndex", "inference_mode"})  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that makes layers of equinox."""
    for file in project.files:
        if "equinox" in file.text and "key" in file.text and "test" not in file.path.rpartition("/")[2]:
            yield from _layers(syntax(file))


def _layers(code: Syntax) -> Iterator[Finding]:
    for function in code.of(ast.FunctionDef):
        uses: dict[str, list[tuple[ast.Call, ast.Name]]] = {}
        for call in code.inside(function, ast.Call):
            named = next((k.value for k in call.keywords if k.arg == "key"), None)
            known = code.qualified(call.func).startswith("equinox.nn.") and last_name(call.func) not in _WITHOUT
            if known and isinstance(named, ast.Name) and code.function(call) is function:
                uses.setdefault(named.id, []).append((call, named))
        for name, found in uses.items():
            found.sort(key=lambda f: (f[0].lineno, f[0].col_offset))
            for (first, _), (second, at) in itertools.pairwise(found):
                if _COPIES.search(_target(code, first) + _target(code, second)):
                    continue
                if not code.apart(first, second) and not _bound_between(code, function, name, first, second):
                    yield _finding(code, second, f"{written(second)[:70]} is initialised by {name}, as "
                                   f"{written(first)[:50]} at line {first.lineno} is", _folded(code, at))  # fmt: skip
                    break


def _target(code: Syntax, call: ast.Call) -> str:
    """What the layer is bound to."""
    statement = code.statement(call)
    return written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _bound_between(code: Syntax, function: ast.AST, name: str, first: ast.AST, second: ast.AST) -> bool:
    """Whether the key is another one at the second place, or each of the two stands in a scope of its own."""
    low, high = getattr(first, "lineno", 0), getattr(second, "lineno", 0)
    own = [a for a in (*code.above(first), *code.above(second)) if isinstance(
        a, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.For, ast.While))]  # fmt: skip
    return bool(own) or any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
                            and low <= n.lineno <= high for n in below(function))  # fmt: skip


def _folded(code: Syntax, key: ast.Name) -> tuple[Patch, ...]:
    if code.aliases.get("jax") != "jax":
        return ()
    return Change(code.file, "a key of its own").replace(key, f"jax.random.fold_in({key.id}, 1)").patches()


def _finding(code: Syntax, node: ast.AST, why: str, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(f"{why} (at {code.at(node)})", code.place(node), code.file.path, bearing=Bearing.CAUSE,
                        measured={"kind": "layers"}, patch=patch)  # fmt: skip
