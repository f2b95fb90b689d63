"""A metric is watched in the wrong direction.

What keeps the best checkpoint, stops early or lowers the learning rate compares a metric with its best value so far,
and has to be told which way is better. Told the wrong way, it takes the worst epoch for the best one: the checkpoint
that is kept is the one to throw away, the run stops as soon as it improves, the rate is lowered while the loss falls.
Defaults differ: ReduceLROnPlateau and Lightning's callbacks look for a minimum, Orbax for a maximum, and the Trainer of
transformers for a maximum unless the name of the metric ends in "loss". A best value that begins where nothing can beat
it (0 for a loss, infinity for an accuracy) keeps no checkpoint at all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.best_kept import reversed_bests
from traindx_tools.on_code.best_start import unreachable
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.metric_direction import Direction, by_name, by_value
from traindx_tools.on_code.metric_flow import by_flow
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.on_code.written_options import entry
from traindx_tools.rules import Rule

RULE = Rule(
    id="C241",
    name="metric-direction",
    title="A metric is watched in the wrong direction",
    severity=Severity.HIGH,
    sees="A mode, a default or a comparison that takes the larger loss or the smaller accuracy for the better one.",
    matters="The worst weights are kept, the run stops as it improves, or the rate is lowered while it improves.",
    alike=("a metric that was negated on purpose", "a record of the worst case beside that of the best",
           "an attack, which looks for the largest loss"),
    confirm=("print the metric of the checkpoint that was kept beside the best one in the log",),
)
_UNBOUNDED = frozenset({"reward", "rewards", "return", "returns", "score", "psnr", "perplexity", "bleu"})
_SIGNED = frozenset({"policy", "actor", "critic", "generator", "g", "d", "nll", "elbo", "energy", "log", "pg",
                     "objective", "surrogate", "reward", "rewards"})  # fmt: skip
"""Losses that may be below 0."""
_WORD = {"min": "smaller", "max": "larger"}
_PARTIAL = ("dict", "replace", "update")
"""Calls that hold some of the options only."""
_WATCHES = re.compile(r"Stop|Checkpoint|Best|Monitor|Saver|Tracker|Plateau|Patience", re.IGNORECASE)
_ASKED = ("step", "update", "check", "__call__", "should_stop")
_LIGHTNING = ("lightning.", "pytorch_lightning.")


def check(project: Project) -> Iterator[Finding]:
    """Look at every scheduler, callback, option and comparison that watches a metric."""
    look = lookup(project)
    for file in project.files:
        code = syntax(file)
        near = list(_plateau(look, code))
        yield from near or _plateau_afar(look, code)
        yield from _monitors(code)
        yield from _own_stoppers(look, code)
        yield from _trainer_options(code)
        yield from _jax(code)
        yield from _studies(code)
        for best in reversed_bests(code):
            looks_for = "max" if best.better == "min" else "min"
            yield _finding(
                code, best.node, f"{written(best.node)} takes the {_WORD[looks_for]} {best.metric} for the better one",
                best.metric, best.better, best.change.patches(),
            )  # fmt: skip
        for start in unreachable(code, partial(_bounded, look, code)):
            name, first = written(start.metric), written(start.begun)
            begins = "inf" if start.better == "min" else "-inf"
            patch = Change(code.file, "begin where every value is better").replace(start.begun, f'float("{begins}")')
            yield RULE.finding(
                f"{written(start.test)} at {code.at(start.test)} never holds: the best begins at {first} (line "
                f"{start.begun.lineno}), and no {name} is {_WORD[start.better]}",
                code.place(start.test), code.file.path, bearing=Bearing.CAUSE,
                measured={"kind": "start", "metric": name, "better": start.better}, patch=patch.patches(),
            )  # fmt: skip


def _bounded(look: Lookup, code: Syntax, metric: ast.expr) -> Direction | None:
    """The direction of a metric that is known to stay above 0 (a loss, an error) or below a thousand (a share)."""
    found = _direction(look, code, metric)
    words = set(re.split(r"[^a-z0-9]+", written(metric).lower()))
    return None if (found == "max" and words & _UNBOUNDED) or words & _SIGNED else found


def _plateau(look: Lookup, code: Syntax) -> Iterator[Finding]:
    """scheduler.step(metric), and "monitor" beside a scheduler in what configure_optimizers gives."""
    for made in code.calls("ReduceLROnPlateau"):
        mode = _mode(made, 1, "min")
        if mode is None or not _is_torch(code, made):
            continue
        for node, name, direction in _stepped_with(look, code, made):
            if direction is not None and direction != mode:
                why = f"ReduceLROnPlateau looks for a {mode}imum and is given {name} (line {node.lineno})"
                yield _finding(code, made, why, name, direction, _set_mode(code, made, 1, direction))
                break


def _plateau_afar(look: Lookup, code: Syntax) -> Iterator[Finding]:
    """A scheduler that is handed to what steps it, in any file; options and the metric's name from a configuration."""
    for made in code.calls("ReduceLROnPlateau"):
        mode = _mode_afar(look, code, made) if _is_torch(code, made) else None
        if mode is None:
            continue
        for other, step in ((c, s) for c in look.codes for s in c.calls("step")):
            given = argument(step, 0, "metrics")
            if not isinstance(step.func, ast.Attribute) or given is None or not _comes_from(look, other, step, made):
                continue
            name, direction = _metric(look, other, given)
            if direction is not None and direction != mode:
                why = f"ReduceLROnPlateau (mode {mode}) is given the {name} at {other.at(step)}, looks for a {mode}imum"
                yield _finding(code, made, why, name, direction, _set_mode_afar(look, code, made, direction))
                break


def _comes_from(look: Lookup, code: Syntax, step: ast.Call, made: ast.Call) -> bool:
    owner = step.func.value if isinstance(step.func, ast.Attribute) else step
    return look.origin(code, owner)[1] is made


def _mode_afar(look: Lookup, code: Syntax, made: ast.Call) -> Direction | None:
    """The mode, also where `**options` of a configuration file hold it or leave it out."""
    opened = [k.value for k in made.keywords if k.arg is None]
    if not opened or argument(made, 1, "mode") is not None:
        return _mode(made, 1, "min") if not opened else None
    tables = [entry(look, look.origin(code, o)[1]) for o in opened]
    if not all(isinstance(t, dict) for t in tables):
        return None
    said = next((t["mode"] for t in tables if "mode" in t), "min")
    return {"min": "min", "max": "max"}.get(str(said))  # type: ignore[return-value]


def _set_mode_afar(look: Lookup, code: Syntax, made: ast.Call, direction: Direction) -> tuple[Patch, ...]:
    """The mode in front of `**options` that leave it out."""
    opened = [k.value for k in made.keywords if k.arg is None]
    if not opened:
        return _set_mode(code, made, 1, direction)
    tables = [entry(look, look.origin(code, o)[1]) for o in opened]
    if any(not isinstance(t, dict) or "mode" in t for t in tables):
        return ()
    change, at = Change(code.file, "watch the metric in its own direction"), opened[0]
    return change.insert(at.lineno, at.col_offset - 2, f'mode="{direction}", ').patches()


def _metric(look: Lookup, code: Syntax, given: ast.expr) -> tuple[str, Direction | None]:
    """The metric's name: as written, or what the key of `metrics[monitor]` is set to."""
    found = _direction(look, code, given)
    if found is not None or not isinstance(given, ast.Subscript):
        return written(given), found
    _, key = look.origin(code, given.slice)
    name = key.value if isinstance(key, ast.Constant) else entry(look, key)
    return (name, by_name(name)) if isinstance(name, str) else ("", None)


def _is_torch(code: Syntax, made: ast.Call) -> bool:
    name = code.qualified(made.func)
    return "keras" not in name and argument(made, 99, "monitor") is None


def _own_stoppers(look: Lookup, code: Syntax) -> Iterator[Finding]:
    """A class of the project that stops early or keeps the best, told the mode or made for one, given the metric."""
    for made in code.calls(*(n for n in code.called if n in look.classes and _WATCHES.search(n))):
        found = look.classes[last_name(made.func)]
        if len(found) != 1:
            continue
        init = next((m for m in found[0][1].body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
        names = [n for n in parameters(init) if n != "self"] if init is not None else []
        default = parameters(init)["mode"] if init is not None and "mode" in names else None
        told = "mode" in names and _compares(found[0][1])
        known = default.value if isinstance(default, ast.Constant) else None
        ways: dict[str, Direction] = {"min": "min", "max": "max"}
        mode = _mode(made, names.index("mode"), ways.get(str(known))) if told else _built_in(found[0][1])
        for given, line in _watched(code, made) if mode is not None else ():
            direction = _direction(look, code, given)
            if direction is not None and direction != mode:
                why = f"{last_name(made.func)} looks for a {mode}imum and is given {written(given)} (line {line})"
                patch = _set_mode(code, made, names.index("mode"), direction) if told else ()
                yield _finding(code, made, why, written(given), direction, patch)
                break


def _watched(code: Syntax, made: ast.Call) -> Iterator[tuple[ast.expr, int]]:
    """What such an object is given."""
    for call in code.of(ast.Call):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        plain = not isinstance(call.func, ast.Attribute) or call.func.attr in _ASKED
        if plain and call is not made and call.args and code.origin(owner) is made:
            yield call.args[0], call.lineno


def _built_in(owner: ast.ClassDef) -> Direction | None:
    """The direction that the class itself compares in: `if value < self.best: self.best = value`."""
    found: set[Direction] = set()
    for method in (m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name in _ASKED):
        first = next((n for n in parameters(method) if n != "self"), None)
        for branch in (n for n in below(method) if isinstance(n, ast.If)):
            kept = [written(t) for s in branch.body if isinstance(s, ast.Assign) and written(s.value) == first
                    for t in s.targets if isinstance(t, ast.Attribute)]  # fmt: skip
            for test in (n for n in below(branch.test) if isinstance(n, ast.Compare) and len(n.ops) == 1):
                left, right = written(test.left), written(test.comparators[0])
                less = isinstance(test.ops[0], (ast.Lt, ast.LtE))
                if not less and not isinstance(test.ops[0], (ast.Gt, ast.GtE)):
                    continue
                if left == first and any(right.startswith(k) for k in kept):
                    found.add("min" if less else "max")
                elif right == first and any(left.startswith(k) for k in kept):
                    found.add("max" if less else "min")
    return found.pop() if len(found) == 1 else None


def _compares(owner: ast.ClassDef) -> bool:
    """Whether the class asks for "min" or "max"."""
    return any(isinstance(n, ast.Compare) and any(isinstance(c, ast.Constant) and c.value in ("min", "max")
               for c in n.comparators) for n in below(owner))  # fmt: skip


def _direction(look: Lookup, code: Syntax, given: ast.expr) -> Direction | None:
    """By the name, else by how the value is made."""
    found = by_value(code, given)
    name = last_name(given)
    return found if found is not None or (name and by_name(name) is not None) else by_flow(look, code, given)


def _stepped_with(look: Lookup, code: Syntax, made: ast.Call) -> Iterator[tuple[ast.expr, str, Direction | None]]:
    for step in code.calls("step"):
        given = argument(step, 0, "metrics")
        if isinstance(step.func, ast.Attribute) and given is not None and code.origin(step.func.value) is made:
            yield step, written(given), _direction(look, code, given)
    for table in code.of(ast.Dict):
        keys = {k.value: v for k, v in zip(table.keys, table.values, strict=True) if isinstance(k, ast.Constant)}
        monitor = keys.get("monitor")
        if not isinstance(monitor, ast.Constant) or not isinstance(monitor.value, str):
            continue
        if any(code.origin(keys[k]) is made for k in ("scheduler", "lr_scheduler") if k in keys):
            yield table, monitor.value, by_name(monitor.value)


def _monitors(code: Syntax) -> Iterator[Finding]:
    """Callbacks of Lightning and Keras."""
    for made in code.calls("EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau", "BackupBestModel"):
        name = code.qualified(made.func)
        monitor = argument(made, 0 if last_name(made.func) == "EarlyStopping" else 99, "monitor")
        mode = _mode(made, 99, "min" if name.startswith(_LIGHTNING) else None)
        kept = code.number(argument(made, 99, "save_top_k"))
        if mode is None or kept in (0.0, -1.0) or not isinstance(monitor, ast.Constant):
            continue
        direction = by_name(str(monitor.value))
        if direction is not None and direction != mode:
            why = f"{last_name(made.func)} looks for a {mode}imum of {monitor.value!r}"
            yield _finding(code, made, why, str(monitor.value), direction, _set_mode(code, made, 99, direction))


def _trainer_options(code: Syntax) -> Iterator[Finding]:
    """metric_for_best_model of transformers, beside greater_is_better or its default."""
    for made in code.of(ast.Call):
        metric = argument(made, 99, "metric_for_best_model")
        if not isinstance(metric, ast.Constant) or not isinstance(metric.value, str):
            continue
        name, direction = metric.value, by_name(metric.value)
        given = argument(made, 99, "greater_is_better")
        if isinstance(given, ast.Constant) and isinstance(given.value, bool):
            mode = "max" if given.value else "min"
            how = f"greater_is_better={given.value}"
        elif given is not None or any(k.arg is None for k in made.keywords) or last_name(made.func) in _PARTIAL:
            continue
        else:
            best = argument(made, 99, "load_best_model_at_end")
            if not (isinstance(best, ast.Constant) and best.value is True) and "EarlyStopping" not in code.file.text:
                continue
            mode = "min" if name.endswith("loss") else "max"
            how = 'no greater_is_better, which is True unless the name ends in "loss"'
        if direction is not None and direction != mode:
            change = Change(code.file, "say which way the metric is better")
            change = change.pass_argument(made, "greater_is_better", str(direction == "max"))
            yield _finding(code, metric, f"metric_for_best_model={name!r} stands with {how}", name, direction,
                           change.patches())  # fmt: skip


def _jax(code: Syntax) -> Iterator[Finding]:
    """Orbax keeps the largest by default; Flax's early stopping looks for the smallest."""
    for made in code.calls("CheckpointManagerOptions"):
        best, mode = argument(made, 99, "best_fn"), _mode(made, 99, "max", "best_mode")
        if mode is None or not isinstance(best, ast.Lambda):
            continue
        direction = by_value(code, best.body)
        if direction is not None and direction != mode:
            change = Change(code.file, "keep the best, not the worst")
            change = change.pass_argument(made, "best_mode", f'"{direction}"')
            why = f"CheckpointManagerOptions keeps the {_WORD[mode]} {written(best.body)}"
            yield _finding(code, made, why, written(best.body), direction, change.patches())
    for step in code.calls("update"):
        if not isinstance(step.func, ast.Attribute) or len(step.args) != 1:
            continue
        makers = [v for _, v in code.bindings(step.func.value) if isinstance(v, ast.Call)]
        if any(code.qualified(v.func) == "flax.training.early_stopping.EarlyStopping" for v in makers) and \
                by_value(code, step.args[0]) == "max":  # fmt: skip
            negated = Change(code.file, "give it what is to be small").wrap(step.args[0], "-(", ")")
            why = f"EarlyStopping looks for a minimum and is given {written(step.args[0])}"
            yield _finding(code, step, why, written(step.args[0]), "max", negated.patches())


def _studies(code: Syntax) -> Iterator[Finding]:
    """A search over settings whose objective gives a metric."""
    for made in code.calls("create_study"):
        mode = _mode(made, 99, "min", "direction", {"minimize": "min", "maximize": "max"})
        if mode is None or argument(made, 99, "directions") is not None:
            continue
        for run in code.calls("optimize"):
            objective = argument(run, 0, "func")
            if not isinstance(run.func, ast.Attribute) or code.origin(run.func.value) is not made:
                continue
            bodies = [f for f in code.of(ast.FunctionDef) if isinstance(objective, ast.Name) and f.name == objective.id]
            given = [n.value for f in bodies for n in below(f)
                     if isinstance(n, ast.Return) and n.value is not None and code.function(n) is f]  # fmt: skip
            ways = {by_value(code, v) for v in given}
            direction = ways.pop() if len(ways) == 1 else None
            if direction is not None and direction != mode:
                change = Change(code.file, "search in the direction of the metric")
                change = change.pass_argument(made, "direction", f'"{direction}imize"')
                yield _finding(code, made, f"the study looks for a {mode}imum of {written(given[0])}",
                               written(given[0]), direction, change.patches())  # fmt: skip


def _mode(
    call: ast.Call,
    position: int,
    default: Direction | None,
    name: str = "mode",
    words: dict[str, Direction] | None = None,
) -> Direction | None:
    """The mode that a call is given, its default where it is not; None where it cannot be read."""
    given = argument(call, position, name)
    if any(k.arg is None for k in call.keywords):
        return None
    if given is None:
        return default
    known: dict[str, Direction] = words or {"min": "min", "max": "max"}
    return known.get(str(given.value)) if isinstance(given, ast.Constant) else None


def _set_mode(code: Syntax, made: ast.Call, position: int, direction: Direction) -> tuple[Patch, ...]:
    change = Change(code.file, "watch the metric in its own direction")
    plain = argument(made, position)
    if plain is not None:
        return change.replace(plain, f'"{direction}"').patches()
    return change.pass_argument(made, "mode", f'"{direction}"').patches()


def _finding(
    code: Syntax, node: ast.AST, why: str, metric: str, better: Direction, patch: tuple[Patch, ...]
) -> Finding:
    return RULE.finding(
        f"{why} at {code.at(node)}, and {metric} is better when it is {_WORD[better]}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "direction", "metric": metric, "better": better},
        patch=patch,
    )
