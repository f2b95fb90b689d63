"""An array, or a layer, lies in a static field.

`eqx.field(static=True)` and `flax.struct.field(pytree_node=False)` make a field part of a tree's structure. What lies
there is no leaf: it gets no gradient and no update, a compiled function takes it for a constant, and as arrays cannot
be hashed or compared as a whole, the next call may fail or compile anew. Only settings (sizes, functions, names)
belong there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C538",
    name="static-array",
    title="An array or a layer lies in a static field",
    severity=Severity.HIGH,
    sees="eqx.field(static=True), eqx.static_field() and struct.field(pytree_node=False) at fields that hold arrays or "
         "layers.",
    matters="It is never trained or updated, is baked into what is compiled, and may end in an error of hashing.",
    alike=("a numpy table that is a constant", "a setting, a function or a shape in a static field"),
    confirm=("print(jax.tree_util.tree_leaves(model)): it is not among them",),
)
_ARRAYS = re.compile(r"(jax\.|jnp\.|jax\.numpy\.|jaxtyping\.)?(Array|ndarray|DeviceArray)|"
                     r"(Float|Num|Shaped|Inexact)\[.*Array.*\]|(chex|jtyping)\.Array|(eqx|equinox)\.nn\.[A-Z]\w+|nn\.(Linear|Conv\w*|MLP|LayerNorm|Embedding)")
_STATE = re.compile(r"(ema_|target_)?(params|batch_stats|opt_state|weights|variables)")
_MAKES = ("jax.numpy.", "jax.random.", "equinox.nn.")
_NO_ARRAY = frozenset({"shape", "dtype", "finfo", "iinfo", "PRNGKey", "float32", "bfloat16", "float16"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every static field of a class."""
    if not any("static" in f.text or "pytree_node" in f.text for f in project.files):
        return
    look = lookup(project)
    for code in look.codes:
        text = code.file.text
        if not ("equinox" in text or "flax" in text) or not ("static" in text or "pytree_node" in text):
            continue
        for field in code.of(ast.AnnAssign):
            owner = code.parent(field)
            if isinstance(owner, ast.ClassDef) and isinstance(field.target, ast.Name) and _is_static(code, field):
                held = _held(look, code, owner, field)
                if held is not None:
                    yield _finding(code, owner, field, *held)


def _is_static(code: Syntax, field: ast.AnnAssign) -> bool:
    call = field.value
    if not isinstance(call, ast.Call):
        return False
    name = code.qualified(call.func)
    if name.endswith("static_field") and name.startswith("equinox"):
        return True
    said = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    if name in ("equinox.field", "equinox._module.field"):
        return said.get("static") is True
    return name.startswith("flax.struct") and said.get("pytree_node") is False


def _held(look: Lookup, code: Syntax, owner: ast.ClassDef, field: ast.AnnAssign) -> tuple[str, bool] | None:
    """What the field holds, and whether that is proved."""
    name = written(field.target)
    stored = [(s.value, s) for s in code.of(ast.Assign) if code.owner(s) is owner
              and any(written(t) == f"self.{name}" for t in s.targets)]  # fmt: skip
    for value, _ in stored:
        made = code.qualified(value.func) if isinstance(value, ast.Call) else ""
        if made.startswith(_MAKES) and last_name(value.func if isinstance(value, ast.Call) else None) not in _NO_ARRAY:
            return f"{written(value)[:60]} (line {value.lineno})", True
        if made.startswith("numpy."):
            return None
        modules = look.classes.get(last_name(value.func), []) if isinstance(value, ast.Call) else []
        if any(c.qualified(b) == "equinox.Module" for c, k in modules for b in k.bases):
            return f"{written(value)[:60]} (line {value.lineno})", True
    said = written(field.annotation).strip("'\"")
    if "np.ndarray" in said.replace("jnp.", ""):
        return None
    if _ARRAYS.fullmatch(said):
        return f"an array or layer by its annotation, {said[:40]}", not stored or bool(code.qualified(field.annotation))
    return (f"{name}", False) if _STATE.fullmatch(name) and "struct" in written(field.value) else None


def _finding(code: Syntax, owner: ast.ClassDef, field: ast.AnnAssign, what: str, known: bool) -> Finding:
    return RULE.finding(
        f"{owner.name}.{written(field.target)} at {code.at(field)} is a static field and holds {what}: it is no leaf, "
        "so neither gradients nor updates reach it, and a compiled function takes it for a constant",
        code.place(field),
        code.file.path,
        bearing=Bearing.CAUSE if known else Bearing.SIGN,
        measured={"kind": "static", "field": written(field.target)},
        patch=_leaf(code, field) if known else (),
    )


def _leaf(code: Syntax, field: ast.AnnAssign) -> tuple[Patch, ...]:
    """The field without its mark, where the mark is all that is said of it."""
    call = field.value
    if not isinstance(call, ast.Call) or call.args or len(call.keywords) > 1:
        return ()
    text = f"{written(field.target)}: {code.file.segment(field.annotation)}"
    made = patching.replace_text(code.file, field, text, "make it a leaf")
    return (made,) if made is not None else ()
