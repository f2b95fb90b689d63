"""optax.masked is used to freeze, and applies the raw gradient instead.

`optax.masked(optax.adam(lr), mask)` transforms the updates where the mask is True and hands all others through as they
came: their update is the gradient itself. apply_updates adds it, with a plus sign and a step size of 1, so what was to
stay frozen climbs the loss. Freezing takes `set_to_zero` for the rest (multi_transform, partition, or a second masked
in the chain). A masked weight decay or clip inside a chain, and masks that complement each other, are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, syntax, written

(RULE,) = pages("jax", ("C530",))
_OPTIMIZERS = frozenset({"adam", "adamw", "sgd", "rmsprop", "adagrad", "lion", "lamb", "adafactor", "nadam", "radam",
                         "noisy_sgd", "yogi", "adabelief", "nadamw", "adamax", "novograd", "amsgrad", "lars",
                         "adadelta"})  # fmt: skip
_ELSEWHERE = re.compile(r"set_to_zero|stop_gradient|zeros_like|freeze_grad|eqx\.partition|\.partition\(")
"""What may set the other gradients or updates to zero, or leave them out."""
_LEAVES = re.compile(r"is_(inexact_)?array|is_floating|issubdtype")


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer under a mask."""
    files = [f for f in project.files if "masked" in f.text and "optax" in f.text]
    if not files or any(f.mentions(_ELSEWHERE) for f in project.files if "jax" in f.text or "optax" in f.text):
        return
    for file in files:
        code = syntax(file)
        masked = [c for c in code.calls("masked") if code.qualified(c.func) == "optax.masked"]
        optimizers = [(c, name) for c in masked if (name := _optimizer(code, argument(c, 0, "inner"))) is not None]
        if len(optimizers) != 1:  # masks that complement each other
            continue
        call, name = optimizers[0]
        mask = argument(call, 1, "mask")
        if mask is None or _LEAVES.search(written(mask) + written(code.origin(mask))):
            continue
        yield RULE.finding(
            f"optax.masked({name}, {written(mask)[:50]}) at {code.at(call)} hands the gradients of the other "
            "parameters through unchanged: apply_updates adds the raw gradient to what was to be frozen",
            code.place(call),
            file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "masked", "optimizer": name},
        )


def _optimizer(code: Syntax, node: ast.expr | None, left: int = 8) -> str | None:
    """The optimizer in a transformation: `adam` of optax.adam(...) and of a chain that ends in it."""
    made = code.origin(node) if node is not None and left > 0 else None
    if not isinstance(made, ast.Call):
        return None
    name = code.qualified(made.func)
    if name.rpartition(".")[2] in _OPTIMIZERS and name.startswith("optax"):
        return written(made.func)
    if name in ("optax.chain", "optax.inject_hyperparams"):
        return next((found for a in made.args if (found := _optimizer(code, a, left - 1)) is not None), None)
    if isinstance(made.func, ast.Call):  # inject_hyperparams(optax.adam)(...)
        inner = made.func.args[0] if made.func.args else None
        named = code.qualified(inner) if inner is not None else ""
        return written(inner) if named.startswith("optax") and named.rpartition(".")[2] in _OPTIMIZERS else None
    return None
