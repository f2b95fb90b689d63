"""A callback watches a metric that nobody logs.

Lightning's EarlyStopping, ModelCheckpoint and a plateau schedule look a metric up by the name that `self.log` gave it.
A name that is never logged, or only in a test, stops the run after its first validation, and with `strict=False` the
schedule, the stop and the choice of the best checkpoint do nothing at all. The same with transformers, where
`metric_for_best_model` has to be a key of what `compute_metrics` gives back (with or without "eval_") or the loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.logged_metrics import keys, logged, names_in_steps
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name

(RULE,) = pages("frameworks", ("C306",))
_LIGHTNING = ("lightning.", "pytorch_lightning.")
_BASES = frozenset({"LightningModule", "Module", "ABC", "Generic", "object"})
_STEPS = ("training_step", "validation_step")
_ALWAYS = frozenset({"epoch", "step", "loss"})
_TRAINER_KEYS = frozenset({"loss", "runtime", "samples_per_second", "steps_per_second", "epoch", "jit_compilation_time",
                           "model_preparation_time"})  # fmt: skip
_TRAINERS = frozenset({"transformers.Trainer", "transformers.Seq2SeqTrainer"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every callback and scheduler of Lightning, and at the trainers of transformers."""
    texts = [f.text for f in project.files]
    look = lookup(project)
    if any("monitor" in t for t in texts) and any("ightning" in t for t in texts):
        yield from _lightning(look)
    if any("metric_for_best_model" in t for t in texts):
        yield from _transformers(look)


def _lightning(look: Lookup) -> Iterator[Finding]:
    watched = [(c, n, m) for c in look.codes for n, m in _watched(look, c)]
    if not watched or not _own_modules(look):
        return
    found = list(logged(look))
    given_back = names_in_steps(look)
    for code, node, name in watched:
        fitting = [entry for entry in found if entry.fits(name)]
        if name in _ALWAYS or name in given_back or not found or any(not entry.late for entry in fitting):
            continue
        known = sorted({e.plain or e.pattern.replace("\\", "").replace(".*", "...") for e in found if not e.late})
        late = f"only in a test (line {getattr(fitting[0].call, 'lineno', 0)})" if fitting else "nowhere"
        yield RULE.finding(
            f"{name!r} at {code.at(node)} is watched and logged {late}: "
            + (f"logged are {', '.join(known[:6])}" if known else "nothing is logged while training"),
            code.place(node),
            code.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "late" if fitting else "monitor", "metric": name},
        )


def _watched(look: Lookup, code: Syntax) -> Iterator[tuple[ast.expr, str]]:
    """The names that callbacks and schedulers watch, where they are known."""
    for made in code.calls("EarlyStopping", "ModelCheckpoint"):
        if code.qualified(made.func).startswith(_LIGHTNING):
            yield from _text(look, code, argument(made, 0 if last_name(made.func) == "EarlyStopping" else 2, "monitor"))
    for table in code.of(ast.Dict):
        entries = {k.value: v for k, v in zip(table.keys, table.values, strict=True) if isinstance(k, ast.Constant)}
        function = code.function(table)
        if function is not None and function.name == "configure_optimizers" and (
                {"scheduler", "lr_scheduler"} & entries.keys()):  # fmt: skip
            yield from _text(look, code, entries.get("monitor"))


def _text(look: Lookup, code: Syntax, node: ast.expr | None) -> Iterator[tuple[ast.expr, str]]:
    made = look.origin(code, node)[1] if node is not None else None
    if node is not None and isinstance(made, ast.Constant) and isinstance(made.value, str):
        yield node, made.value


def _own_modules(look: Lookup) -> bool:
    """Whether every module that is trained is written here, down to Lightning's own class."""
    trained = [(c, k) for c in look.codes for k in c.of(ast.ClassDef)
               if any(isinstance(b, ast.FunctionDef) and b.name in _STEPS for b in k.body)]  # fmt: skip
    if not trained or not all(_known(look, c, k, 6) for c, k in trained):
        return False
    for code, call in look.calls.get("fit", []):
        model = argument(call, 0, "model")
        made = look.origin(code, model)[1] if model is not None else None
        kind = last_name(made.func) if isinstance(made, ast.Call) else ""
        if kind[:1].isupper() and kind not in look.classes:
            return False
    return True


def _known(look: Lookup, code: Syntax, kind: ast.ClassDef, left: int) -> bool:
    """Whether all bases are classes of the project or bare ones of Lightning and torch."""
    for base in kind.bases:
        name = last_name(base.value if isinstance(base, ast.Subscript) else base)
        own = look.classes.get(name, [])
        if name in _BASES and not own:
            continue
        if len(own) != 1 or left <= 0 or not _known(look, *own[0], left - 1):
            return False
    return bool(kind.bases)


def _transformers(look: Lookup) -> Iterator[Finding]:
    trainers = [(c, k) for c in look.codes for k in c.of(ast.Call)
                if argument(k, 1, "args") is not None and last_name(k.func).endswith("Trainer")]  # fmt: skip
    plain = all(c.qualified(k.func) in _TRAINERS and not any(w.arg is None for w in k.keywords) for c, k in trainers)
    if not trainers or not plain:
        return
    names: set[str] = set()
    for code, call in trainers:
        compute, data = argument(call, 99, "compute_metrics"), argument(call, 99, "eval_dataset")
        by_name = look.origin(code, data)[1] if data is not None else None
        if isinstance(by_name, ast.Dict) or (isinstance(by_name, ast.Call) and "Dict" in last_name(by_name.func)):
            return
        if compute is not None and not (isinstance(compute, ast.Constant) and compute.value is None):
            names |= keys(look, code, ast.copy_location(ast.Call(compute, [], []), compute))
    for code in look.codes:
        for call in code.of(ast.Call):
            given = argument(call, 99, "metric_for_best_model")
            for node, name in _text(look, code, given):
                bare = name.removeprefix("eval_")
                if bare in _TRAINER_KEYS or any(re.fullmatch(p, n) for p in names for n in (bare, f"eval_{bare}")):
                    continue
                known = sorted(n.replace("\\", "") for n in names)
                yield RULE.finding(
                    f"metric_for_best_model={name!r} at {code.at(node)} is no key of what compute_metrics gives back "
                    f"({', '.join(known[:6]) or 'it is not given'}), nor the loss",
                    code.place(node),
                    code.file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "best model", "metric": name},
                )
