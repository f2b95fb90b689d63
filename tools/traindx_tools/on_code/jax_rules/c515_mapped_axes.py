"""vmap maps over the wrong axes.

`in_axes` has one entry for each argument. Left out, every argument is mapped over its first axis, the parameters of a
network as well; with too few entries the call fails; with None for a key every sample draws the same noise.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.shared_keys import Shared, shared_keys
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, parameters, syntax, written
from traindx_tools.on_code.tracing import calls_of, function_of
from traindx_tools.rules import Rule

RULE = Rule(
    id="C515",
    name="mapped-axes",
    title="vmap maps over the wrong axes",
    severity=Severity.HIGH,
    sees="in_axes beside the arguments of the call, and keys that are not mapped although samples draw from them.",
    matters="A size error, parameters that are sliced, or the same noise for every sample.",
    alike=("an ensemble, whose parameters have a leading axis on purpose",),
    confirm=("jax.eval_shape of the mapped function", "compare the noise of two samples"),
)
_PARAMETERS = re.compile(r"(\w+\.)?(params|parameters|variables|weights|theta)")
_ENSEMBLE = re.compile(
    r"ensemble|member|stack|population|replica|split\(|vmap\([^)]*init|heads|agents|seeds", re.IGNORECASE
)
_KEY = re.compile(r"(\w+_)?(key|rng|prng)", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every vmap."""
    for file in project.files:
        if "vmap" not in file.text or "jax" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("vmap"):
            if code.qualified(call.func) != "jax.vmap":
                continue
            axes = argument(call, 1, "in_axes")
            for used in calls_of(code, call):
                yield from _judged(code, call, used, axes)
            yield from _shared_key(code, call, axes)
        yield from (_one_for_all(shared) for shared in shared_keys(lookup(project), code))


def _one_for_all(shared: Shared) -> Finding:
    """One key for every example."""
    why = f"gives every example the same key {shared.key} ({shared.drawn} draws from it): all get one mask or one noise"
    bearing = Bearing.CAUSE if shared.known else Bearing.SIGN
    return _finding(shared.code, shared.call, why, "key", bearing)


def _judged(code: Syntax, call: ast.Call, used: ast.Call, axes: ast.expr | None) -> Iterator[Finding]:
    starred = any(isinstance(a, ast.Starred) for a in used.args)
    if isinstance(axes, (ast.Tuple, ast.List)) and not starred and not used.keywords:
        if len(axes.elts) != len(used.args):
            why = f"gets {len(used.args)} arguments and in_axes has {len(axes.elts)} entries ({written(axes)})"
            yield _finding(code, used, why, "length", Bearing.CAUSE)
    elif axes is None and len(used.args) > 1:
        first = written(used.args[0])
        if _PARAMETERS.fullmatch(first) and not code.file.mentions(_ENSEMBLE):
            why = f"maps over the first axis of {first} as well: in_axes=(None, 0, ...) keeps it whole"
            yield _finding(code, used, why, "parameters", Bearing.SIGN)


def _shared_key(code: Syntax, call: ast.Call, axes: ast.expr | None) -> Iterator[Finding]:
    """A key with in_axes None in a function that draws from it."""
    function = function_of(code, argument(call, 0, "fun"))
    if function is None or not isinstance(axes, (ast.Tuple, ast.List)):
        return
    calls = list(calls_of(code, call))
    for position, (name, axis) in enumerate(zip(parameters(function), axes.elts, strict=False)):
        fixed = isinstance(axis, ast.Constant) and axis.value is None
        if not fixed or not _KEY.fullmatch(name) or any(written(argument(u, position)) == "None" for u in calls):
            continue
        for draw in (n for n in below(function) if isinstance(n, ast.Call)):
            sampler = code.qualified(draw.func).startswith("jax.random.") and last_name(draw.func) != "fold_in"
            if sampler and draw.args and name in names_in(draw.args[0]):
                why = f"gives every sample the same key {name}, and {function.name} draws from it at line {draw.lineno}"
                yield _finding(code, call, f"{why}: all samples get equal noise", "key", Bearing.CAUSE)
                return


def _finding(code: Syntax, node: ast.AST, why: str, kind: str, bearing: Bearing) -> Finding:
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=bearing,
        measured={"kind": kind},
    )
