"""The result of a pure function is thrown away.

Nothing in JAX changes in place. `eqx.nn.inference_mode(model)`, `eqx.tree_at(...)`, `state.replace(...)`,
`jax.tree.map(...)`, `jnp.clip(x, 0, 1)`, `lax.stop_gradient(x)` and `jax.random.split(key)` return something new; on a
line of their own they do nothing. The model is evaluated with dropout, the state keeps its old fields, the gradient is
not cut.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.changes import source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C535",
    name="pure-result-dropped",
    title="The result of a pure JAX function is thrown away",
    severity=Severity.HIGH,
    sees="Functions of jax, equinox, flax and optax without side effects, as statements of their own.",
    matters="The line does nothing: no inference mode, no new field, no clipping, no cut of the gradient.",
    alike=("a call for its time, its shapes or its error, in a test or benchmark", "a mapped function that prints"),
    confirm=("compare the value before and after the line",),
)
_FUNCTIONS = frozenset({
    "equinox.nn.inference_mode", "equinox.tree_inference", "equinox.tree_at", "equinox.filter", "equinox.partition",
    "equinox.combine", "equinox.apply_updates", "jax.lax.stop_gradient", "jax.random.split", "jax.random.fold_in",
    "jax.nn.softmax", "jax.nn.log_softmax", "jax.nn.relu", "jax.nn.one_hot", "flax.core.freeze", "flax.core.unfreeze",
    "optax.clip_by_global_norm", "optax.clip", "optax.add_decayed_weights", "optax.masked", "optax.global_norm",
    "optax.incremental_update", "optax.smooth_labels", "jax.lax.pmean", "jax.lax.psum", "jax.checkpoint", "jax.remat",
    *(f"jax.numpy.{n}" for n in ("clip", "where", "nan_to_num", "maximum", "minimum", "log", "exp", "sqrt", "roll",
      "pad", "expand_dims", "reshape", "concatenate", "stack", "squeeze", "transpose", "astype", "asarray", "abs",
      "round", "flip", "delete", "insert", "append")),
})  # fmt: skip
_MAPS = frozenset({"jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map"})
_STATE = re.compile(r"state|params|carry|config|optimi[sz]er|model", re.IGNORECASE)
_MEASURED = re.compile(r"bench|time|profil|warm|compile|speed|test_|raises|smoke|check", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every statement that is only a call."""
    for file in project.files:
        if "jax" not in file.text and "equinox" not in file.text and "optax" not in file.text:
            continue
        code = syntax(file)
        for statement in code.of(ast.Expr):
            call = statement.value
            if isinstance(call, ast.Call) and _is_pure(code, call) and not _on_purpose(code, statement):
                yield RULE.finding(
                    f"{written(call)[:80]} at {code.at(call)} returns a new value and changes nothing; the result is "
                    "thrown away",
                    code.place(call),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": last_name(call.func)},
                    patch=_bound(code, statement, call),
                )


def _is_pure(code: Syntax, call: ast.Call) -> bool:
    name = code.qualified(call.func)
    if name in _FUNCTIONS:
        return True
    if name in _MAPS:
        return bool(call.args) and _computes(code, call.args[0])
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("replace", "_replace") and not call.args:
        keywords = {k.arg for k in call.keywords}
        others = None in keywords or keywords & {"inplace", "regex", "value", "to_replace"}
        return bool(keywords) and not others and _STATE.search(written(call.func.value)) is not None
    return False


def _computes(code: Syntax, node: ast.expr) -> bool:
    """Whether a mapped function only computes: a lambda of arithmetic and jnp, or a function of jnp."""
    if code.qualified(node).startswith("jax.numpy."):
        return True
    if not isinstance(node, ast.Lambda):
        return False
    inner = [n for n in below(node.body) if isinstance(n, ast.Call)]
    return all(code.qualified(n.func).startswith(("jax.numpy.", "jax.nn.", "jax.lax."))
               or last_name(n.func) in ("astype", "reshape", "sum", "mean", "copy") for n in inner)


def _on_purpose(code: Syntax, statement: ast.stmt) -> bool:
    """Whether it is called for its time, its shapes or its error."""
    for up in code.above(statement):
        if isinstance(up, (ast.Try, ast.With)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.ClassDef)) and _MEASURED.search(up.name):
            return True
    return bool(_MEASURED.search(code.file.path.rpartition("/")[2]))


def _bound(code: Syntax, statement: ast.Expr, call: ast.Call) -> tuple[Patch, ...]:
    """`model = eqx.nn.inference_mode(model)`, `state = state.replace(...)`."""
    name = last_name(call.func)
    target = call.func.value if name in ("replace", "_replace") and isinstance(call.func, ast.Attribute) else (
        call.args[0] if name in ("inference_mode", "tree_inference", "clip", "stop_gradient") and call.args else None)
    if not isinstance(target, ast.Name) or target.id in code.aliases:
        return ()
    text = f"{target.id} = {source_of(code.file, call)}"
    patch = patching.replace_text(code.file, statement, text, "bind the new value")
    return () if patch is None else (patch,)
