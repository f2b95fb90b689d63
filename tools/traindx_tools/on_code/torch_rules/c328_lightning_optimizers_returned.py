"""configure_optimizers returns something that Lightning does not read as it is meant.

Lightning reads one optimizer, a list or tuple of optimizers, `[optimizers], [schedulers]`, or a dictionary with the
keys "optimizer" and "lr_scheduler". Nothing returned means training without an optimizer: every step is computed and
none applied. `return optimizer, scheduler` is none of these and raises an error. A scheduler under another key is
ignored. ReduceLROnPlateau needs to be told what to look at. Under manual optimization nobody steps a scheduler but the
module itself, and the trainer refuses to clip or to accumulate.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.lookup import Lookup, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C328",
    name="lightning-optimizers-returned",
    title="configure_optimizers returns what Lightning reads otherwise",
    severity=Severity.HIGH,
    sees="What configure_optimizers returns: nothing, an optimizer beside a scheduler, an unknown key, a plateau "
         "schedule without a monitor, optimizers unpacked in another order; schedulers and trainer options under "
         "manual optimization.",
    matters="No weight changes, the learning rate never moves, or an error at the first batch.",
    alike=("configure_optimizers that returns None for a model without training",),
    confirm=("print(trainer.optimizers, trainer.lr_scheduler_configs) in on_train_start",),
)
_KEYS = frozenset({"optimizer", "lr_scheduler", "monitor", "frequency"})
_SCHEDULER = re.compile(r"LR$|LROnPlateau$|Scheduler$|WarmRestarts$|^get_\w+_schedule")
_OPTIMIZER = re.compile(r"^(SGD|Adam\w*|RMSprop|Adagrad|Adadelta|NAdam|RAdam|LBFGS|Lion|Lamb)$")
_ROLES = (re.compile(r"(^|_)(g|gen|generator)(_|$)", re.IGNORECASE),
          re.compile(r"(^|_)(d|dis|disc|discriminator|critic|c)(_|$)", re.IGNORECASE))  # fmt: skip
_Fault = tuple[ast.AST, str, str, tuple[Patch, ...]]


def check(project: Project) -> Iterator[Finding]:
    """Look at every configure_optimizers of a LightningModule."""
    if not any("configure_optimizers" in f.text and "ightningModule" in f.text for f in project.files):
        return
    look = lookup(project)
    if any(isinstance(c.func, ast.Attribute) and written(c.func.value) not in ("self", "super()")
           for code in look.codes for c in code.calls("configure_optimizers")):  # fmt: skip
        return  # a trainer of the program's own reads it, by its own keys
    manual = any("automatic_optimization" in c.file.text for c in look.codes)
    for code, body in look.functions.get("configure_optimizers", []):
        owner = code.parent(body)
        if not isinstance(owner, ast.ClassDef) or not any("ightningModule" in c.file.text for c in look.codes):
            continue
        found = [*_nothing(code, body), *_forms(code, body), *_order(code, owner, body)]
        if manual and _manual(owner):
            found += _by_hand(code, owner, body)
        yield from (_finding(code, *one) for one in found)
    if manual:
        yield from _trainer(look)


def _nothing(code: Syntax, body: ast.FunctionDef) -> Iterator[_Fault]:
    """An optimizer is made, and nothing is returned."""
    own = list(below(body))
    if any(isinstance(n, (ast.Return, ast.Raise, ast.Yield)) and getattr(n, "value", True) is not None for n in own):
        return
    made = [n for n in own if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
            and _OPTIMIZER.match(last_name(n.value.func)) and isinstance(n.targets[0], ast.Name)]  # fmt: skip
    if made and body.body[-1] is made[-1]:
        target = made[-1].targets[0]
        yield (made[-1], "nothing",
               "configure_optimizers makes an optimizer and returns nothing: Lightning trains without one, and no "
               "weight changes",
               Change(code.file, "return it").after(made[-1], f"return {written(target)}").patches())  # fmt: skip


def _forms(code: Syntax, body: ast.FunctionDef) -> Iterator[_Fault]:
    for value in returned(body):
        given = code.origin(value)
        if isinstance(given, ast.Tuple) and len(given.elts) == 2:
            kinds = [code.origin(e) for e in given.elts]
            if _is(kinds[0], _OPTIMIZER) and _is(kinds[1], _SCHEDULER):
                first, second = (source_of(code.file, e) for e in given.elts)
                patch = Change(code.file, "as two lists").replace(given, f"[{first}], [{second}]").patches()
                told = (f"{written(given)[:60]} puts a scheduler where a second optimizer is expected, and Lightning "
                        "refuses it: [optimizers], [schedulers] is read")  # fmt: skip
                yield given, "pair", told, patch if given is value else ()
                continue
            if isinstance(kinds[1], (ast.List, ast.Tuple)):
                for part in kinds[1].elts:
                    yield from _plateau(code, part, None)
        elif isinstance(given, ast.Dict) and None not in given.keys:
            yield from _table(code, value, given)


def _is(node: ast.expr, pattern: re.Pattern[str]) -> bool:
    return isinstance(node, ast.Call) and pattern.search(last_name(node.func)) is not None


def _table(code: Syntax, value: ast.expr, given: ast.Dict) -> Iterator[_Fault]:
    if isinstance(value, ast.Name) and code.item_stores.get(value.id):
        return
    entries = {k.value: (k, v) for k, v in zip(given.keys, given.values, strict=True) if isinstance(k, ast.Constant)}
    if len(entries) != len(given.keys) or "optimizer" not in entries:
        return
    for key, (node, held) in entries.items():
        held = code.origin(held)
        inner = _inside(code, held, "scheduler")
        if key not in _KEYS and (_is(held, _SCHEDULER) or inner is not None):
            free = "lr_scheduler" not in entries
            yield (node, "key", f"the key {key!r} beside \"optimizer\" is not read (\"lr_scheduler\" is): the schedule "
                   "never runs",
                   Change(code.file, "the key that is read").replace(node, '"lr_scheduler"').patches()
                   if free else ())  # fmt: skip
    if "lr_scheduler" in entries:
        yield from _plateau(code, entries["lr_scheduler"][1], entries.get("monitor"))


def _inside(code: Syntax, node: ast.expr, key: str) -> ast.expr | None:
    """An entry of a dictionary that is written out."""
    if not isinstance(node, ast.Dict):
        return None
    return next((v for k, v in zip(node.keys, node.values, strict=True)
                 if isinstance(k, ast.Constant) and k.value == key), None)  # fmt: skip


def _plateau(code: Syntax, part: ast.expr, monitor: object) -> Iterator[_Fault]:
    """A ReduceLROnPlateau with nothing to look at."""
    held = code.origin(part)
    inner = _inside(code, held, "scheduler")
    made = code.origin(inner) if inner is not None else held
    if not _is(made, re.compile("^ReduceLROnPlateau$")) or monitor is not None:
        return
    if isinstance(held, ast.Dict) and (None in held.keys or _inside(code, held, "monitor") is not None):
        return
    if isinstance(part, ast.Name) and code.item_stores.get(part.id):
        return
    yield (made, "plateau", "ReduceLROnPlateau is returned without a \"monitor\": Lightning does not know what to give "
           "it, and raises an error", ())  # fmt: skip


def _order(code: Syntax, owner: ast.ClassDef, body: ast.FunctionDef) -> Iterator[_Fault]:
    """The two optimizers of a generator and its critic, unpacked in the other order."""
    roles = [r for v in returned(body) for r in [_roles_returned(code, v)] if r is not None]
    if len(roles) != 1:
        return
    for assign in (n for n in below(owner) if isinstance(n, ast.Assign)):
        target, value = assign.targets[0], assign.value
        if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and written(value) == "self.optimizers()"):
            continue
        taken = [_role(written(e)) for e in target.elts]
        if taken == [roles[0][1], roles[0][0]] and None not in taken:
            first, second = (written(e) for e in target.elts)
            yield (assign, "order", f"{written(assign)} takes the optimizers in the other order than "
                   f"configure_optimizers (line {body.lineno}) returns them: each steps the other's parameters",
                   Change(code.file, "in their order").replace(target, f"{second}, {first}").patches())  # fmt: skip


def _roles_returned(code: Syntax, value: ast.expr) -> list[int] | None:
    given = code.origin(value)
    if isinstance(given, ast.Tuple) and len(given.elts) == 2 and isinstance(given.elts[0], (ast.List, ast.Tuple)):
        given = given.elts[0]
    if not isinstance(given, (ast.List, ast.Tuple)) or len(given.elts) != 2:
        return None
    found: list[int] = []
    for part in given.elts:
        made = code.origin(part)
        over = argument(made, 0, "params") if isinstance(made, ast.Call) else None
        attribute = over.func.value if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else None
        role = _role(last_name(attribute)) if attribute is not None else None
        if role is None:
            return None
        found.append(role)
    return found if found[0] != found[1] else None


def _role(name: str) -> int | None:
    says = [i for i, pattern in enumerate(_ROLES) if pattern.search(name)]
    return says[0] if len(says) == 1 else None


def _manual(owner: ast.ClassDef) -> bool:
    """Whether this class turns automatic optimization off."""
    for node in below(owner):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if target is not None and "automatic_optimization" in written(target) and isinstance(node, ast.Assign):
            return isinstance(node.value, ast.Constant) and node.value.value is False
    return False


def _by_hand(code: Syntax, owner: ast.ClassDef, body: ast.FunctionDef) -> list[_Fault]:
    """A scheduler that is handed to Lightning, which does not step it, and nothing in the class does."""
    made = [n for n in below(body) if isinstance(n, ast.Call) and _is(n, _SCHEDULER)]
    stepped = any(isinstance(n, ast.Attribute) and n.attr in ("lr_schedulers", "lr_scheduler_step")
                  for n in below(owner)) or any(
        isinstance(n, ast.Call) and last_name(n.func) == "step" and "sched" in written(n.func) for n in below(owner)
    ) or any(isinstance(n, FunctionNode) and n.name == "lr_scheduler_step" for n in owner.body)  # fmt: skip
    if not made or stepped or [last_name(b) for b in owner.bases] != ["LightningModule"]:
        return []
    return [(made[0], "schedule by hand", f"{last_name(made[0].func)} is returned under manual optimization, where "
             "Lightning steps no scheduler, and the module does not: the learning rate never moves", ())]  # fmt: skip


def _trainer(look: Lookup) -> Iterator[Finding]:
    """Clipping or accumulation that is asked of the trainer for a module that optimizes by hand."""
    by_hand = {o.name for code in look.codes if "automatic_optimization" in code.file.text
               for o in code.of(ast.ClassDef) if _manual(o)}
    for code in look.codes:
        for call in code.calls("fit"):
            trainer = code.origin(call.func.value) if isinstance(call.func, ast.Attribute) else None
            model = look.origin(code, call.args[0])[1] if call.args else None
            fitted = last_name(model.func) if isinstance(model, ast.Call) else ""
            if not (isinstance(trainer, ast.Call) and last_name(trainer.func) == "Trainer" and fitted in by_hand):
                continue
            for keyword in trainer.keywords:
                number = code.number(keyword.value)
                asked = number is not None and number > (1 if keyword.arg == "accumulate_grad_batches" else 0)
                if keyword.arg in ("gradient_clip_val", "accumulate_grad_batches") and asked:
                    why = (f"{keyword.arg}={written(keyword.value)} is asked of the trainer, and {fitted} optimizes by "
                           "hand: Lightning refuses it (do it in training_step)")  # fmt: skip
                    yield _finding(code, keyword.value, "trainer", why, ())


def _finding(code: Syntax, node: ast.AST, kind: str, why: str, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(
        f"{why} (at {code.at(node)})",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.CRITICAL if kind in ("nothing", "order") else None,
        measured={"kind": kind},
        patch=patch,
    )
