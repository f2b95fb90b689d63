"""A key is made from a constant in every step.

`jax.random.PRNGKey(0)` in the training loop, or inside the jitted step, is the same key each time: dropout always drops
the same units, noise and shuffling repeat. The key has to be carried and split, or folded with the step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.jitted import inside as run_inside
from traindx_tools.on_code.jitted import jitted, runs_outside
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, syntax, written
from traindx_tools.on_code.tracing import traced
from traindx_tools.rules import Rule

RULE = Rule(
    id="C522",
    name="constant-key-in-step",
    title="A key is made from a constant in every step",
    severity=Severity.HIGH,
    sees="PRNGKey(constant) inside a loop that trains, or inside a jitted function.",
    matters="Every step draws the same numbers: one dropout mask, one batch, one noise.",
    alike=("a key for initialisation, made once", "an evaluation that is repeatable on purpose"),
    confirm=("print one draw in two steps",),
)
_CONSTANT = re.compile(r"basis|freq|fourier|proj|hash|perm|fixed|random_?features|table|codebook|test|example|sketch",
                       re.IGNORECASE)  # fmt: skip
_TRAINS = (
    "apply_updates",
    "apply_gradients",
    "value_and_grad",
    "optimizer.update",
    "opt.update",
    "tx.update",
    "train_step(",
    "update(",
    "update_step(",
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every key that is made from a constant."""
    told: set[int] = set()
    for file in project.files:
        if "jax" not in file.text or not ("PRNGKey" in file.text or "random.key(" in file.text):
            continue
        code = syntax(file)
        inside = {id(n) for one in traced(code) if "jit" in one.how or "pmap" in one.how for n in below(one.node)}
        for call in code.calls("PRNGKey", "key"):
            seed = argument(call, 0, "seed")
            constant = isinstance(seed, ast.Constant) and code.qualified(call.func) in (
                "jax.random.PRNGKey",
                "jax.random.key",
            )
            if not constant or _prepares(code, call):
                continue
            loop = next((x for x in code.loops(call) if any(t in written(x) for t in _TRAINS)), None)
            if loop is not None and not _repeated_run(code, call):
                yield _finding(
                    code, call, f"in every iteration of the loop at line {getattr(loop, 'lineno', 1)}", "loop", loop
                )
            elif id(call) in inside:
                told.add(id(call))
                yield _finding(code, call, "in every call of the jitted function", "jitted")
    if any("PRNGKey" in f.text or "random.key(" in f.text for f in project.files):
        yield from _called(lookup(project), told)


def _called(look: Lookup, told: set[int]) -> Iterator[Finding]:
    """Constant keys in functions that a compiled one calls, such as a dropout of one's own."""
    for one in jitted(look):
        for here in run_inside(look, one):
            for call in (n for n in below(here.node) if isinstance(n, ast.Call) and id(n) not in told):
                seed = argument(call, 0, "seed")
                made = here.code.qualified(call.func) in ("jax.random.PRNGKey", "jax.random.key")
                if not made or not isinstance(seed, ast.Constant) or runs_outside(here.code, call):
                    continue
                if _prepares(here.code, call) or _meant(here.code, call):
                    continue
                told.add(id(call))
                yield _finding(here.code, call, f"in every call of {one.name}, which is compiled and calls "
                               f"{getattr(here.node, 'name', 'it')}", "called")  # fmt: skip


def _meant(code: Syntax, call: ast.Call) -> bool:
    """Whether the draw is a constant on purpose (a basis, a projection), or the key only a default."""
    for up in code.above(call):
        if isinstance(up, (ast.If, ast.IfExp, ast.BoolOp)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.Assign)):
            text = up.name if isinstance(up, ast.FunctionDef) else written(up.targets[0])
            if _CONSTANT.search(text):
                return True
    return False


def _prepares(code: Syntax, call: ast.Call) -> bool:
    """Whether the key initialises something, or is folded with something that changes."""
    for up in code.above(call):
        if isinstance(up, ast.Call):
            text = written(up.func)
            if text.endswith((".init", "fold_in", "create_train_state", "init_fn")) or "init" in text or "eval" in text:
                return True
        if isinstance(up, ast.stmt):
            name = written(up.targets[0]) if isinstance(up, ast.Assign) else ""
            return "init" in name or "eval" in name
    return False


def _repeated_run(code: Syntax, call: ast.Call) -> bool:
    """Whether the loop repeats whole runs: it also makes the optimizer's state anew."""
    return any(".init(" in written(x) for x in code.loops(call))


def _finding(code: Syntax, call: ast.Call, where: str, kind: str, loop: ast.AST | None = None) -> Finding:
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} makes the same key {where}: all draws repeat",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH if kind == "loop" else Severity.MEDIUM,
        measured={"kind": kind},
        patch=forms.folded_in(code.file, call, loop) if loop is not None else (),
    )
