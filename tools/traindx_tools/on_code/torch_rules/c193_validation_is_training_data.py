"""Validation data are training data.

The validation loader is built over the training set, a validation set is drawn from a training set that keeps what was
drawn, two slices of one array overlap, two independent permutations choose the two parts, or a ready-made data set is
opened with train=True twice. Validation then measures memory: it is as good as training whatever the model does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.evaluated import on_purpose, overlap, pairs, part
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C193",
    name="validation-is-training-data",
    title="Validation data are training data",
    severity=Severity.HIGH,
    sees="What a validation set or loader is made of, and whether the training set keeps it.",
    matters="Validation says nothing about new data: overfitting and a bad model selection go unseen.",
    alike=("a training metric that is computed on a part of the training set on purpose",),
    confirm=("print(len(set(train_indices) & set(val_indices)))",),
)
_TRAIN = re.compile(r"(.*_)?(train|training|trn)(_.*|set|data|ds|x|idx)?|x_?tr|xt", re.IGNORECASE)
_HELD = re.compile(
    r"(.*_)?(val|valid|validation|test|dev|holdout|held_out)(_.*|set|data|ds|loader|idx|x)?|x_?v", re.IGNORECASE
)
_PARTS = frozenset({"Subset", "drop", "random_split", "remove", "pop", "difference", "delete", "sample"})
_DRAWS = frozenset({"randperm", "permutation", "choice", "sample"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every assignment to a name for held-out data, and at what is handed over for validation."""
    told: set[tuple[str | None, int | None]] = set()
    for finding in (*_named(project), *_handed(project)):
        place = finding.where.file, finding.where.line
        if place not in told:
            told.add(place)
            yield finding


def _handed(project: Project) -> Iterator[Finding]:
    """Data that a trainer, or a loop without gradients, validates on."""
    if not any("eval_dataset" in f.text or "ightning" in f.text or "DataLoader" in f.text for f in project.files):
        return
    look = lookup(project)
    for pair in pairs(look):
        trained, held = part(look, pair.code, pair.trained), part(look, pair.held_code, pair.held)
        if trained is None or held is None or not overlap(trained, held) or on_purpose(pair):
            continue
        what = written(pair.held)[:60]
        rows = "all" if trained.whole and trained.source == held.source else "some"
        yield _finding(pair.held_code, pair.held, what, f"validates on {held.name}, and the model is trained on {rows} "
                       f"of it ({pair.code.at(pair.trained)})", "handed")  # fmt: skip


def _named(project: Project) -> Iterator[Finding]:
    for file in project.files:
        if not any(word in file.text for word in ("torch", "jax", "sklearn", "tensorflow")):
            continue
        code = syntax(file)
        for node in code.of(ast.Assign):
            for target, value in _pairs(node):
                if isinstance(target, ast.Name) and _held(target.id):
                    why = _why(code, node, target, value)
                    if why is not None:
                        yield _finding(code, node, target.id, *why)


def _held(name: str) -> bool:
    return _HELD.fullmatch(name) is not None and "train" not in name.lower()


def _trained(name: str) -> bool:
    return _TRAIN.fullmatch(name) is not None and not re.search(r"eval|metric|probe|subset|val|test|loss", name, re.I)


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _why(code: Syntax, node: ast.Assign, target: ast.Name, value: ast.expr) -> tuple[str, str] | None:
    if isinstance(value, ast.Call) and last_name(value.func).endswith("DataLoader") and value.args:
        data = value.args[0]
        if isinstance(data, ast.Name) and not _samples(value) and _trains_on(code, data):
            return f"is a loader over {data.id}, on which the model is trained", "loader"
        return None
    if isinstance(value, ast.Name) and _trained(value.id):
        return f"is {value.id} itself", "same"
    base = _subset_of(value)
    if base is not None and _trained(base.id) and not _reduced(code, node, base.id):
        return f"is a part of {base.id}, which keeps it", "part"
    if base is not None and not _trained(base.id) and _trained_whole(code, node, base.id):
        return f"is a part of {base.id}, and the model is trained on all of {base.id}", "part"
    if isinstance(value, ast.Call) and _opened_for_training(code, value):
        return f"opens the training part ({written(value)[:60]})", "opened"
    return _overlaps(code, node, value)


def _trains_on(code: Syntax, data: ast.Name) -> bool:
    """Whether another loader, of training, is built over the same name in the same scope."""
    for call in code.of(ast.Call):
        statement = code.statement(call)
        target = last_name(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        first = call.args[0] if call.args else None
        over = last_name(call.func).endswith("DataLoader") and isinstance(first, ast.Name) and first.id == data.id
        if over and "train" in target.lower() and "eval" not in target.lower() and not _samples(call):
            return code.scope(call) is code.scope(data)
    return False


def _samples(call: ast.Call) -> bool:
    """Whether a loader takes a part of its data set by a sampler."""
    return any(k.arg in ("sampler", "batch_sampler") for k in call.keywords)


def _trained_whole(code: Syntax, node: ast.Assign, name: str) -> bool:
    """Whether a training loop of the same scope draws from all of an array."""
    scope = code.scope(node)
    for loop in (n for n in below(scope) if isinstance(n, (ast.For, ast.While))):
        text = written(loop)
        if ".backward(" not in text and "value_and_grad" not in text and "update(" not in text:
            continue
        for use in (n for n in below(loop) if isinstance(n, ast.Subscript) and _is(n.value, name)):
            if not isinstance(use.slice, ast.Name):
                continue
            drawn = code.origin(use.slice)
            over = loop.iter if isinstance(loop, ast.For) and _binds(loop, use.slice.id) else drawn
            if re.search(rf"len\({name}\)|{name}\.shape\[0\]|{name}\.size\(0\)", written(over)):
                return sum(_is(n.value, name) and isinstance(n.slice, ast.Slice) for n in below(scope)
                           if isinstance(n, ast.Subscript)) == _counted(node, name)  # fmt: skip
    return False


def _binds(loop: ast.For, name: str) -> bool:
    return name in names_in(loop.target)


def _subset_of(value: ast.expr) -> ast.Name | None:
    """The name that a value is a part of: `x[:n]`, `Subset(x, ...)`, `random.sample(x, k)`."""
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        return value.value if isinstance(value.slice, ast.Slice) else None
    if isinstance(value, ast.Call) and last_name(value.func) in ("Subset", "sample") and value.args:
        return value.args[0] if isinstance(value.args[0], ast.Name) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "sample":
        return value.func.value if isinstance(value.func.value, ast.Name) else None
    return None


def _reduced(code: Syntax, node: ast.Assign, name: str) -> bool:
    """Whether the training set is cut as well: bound anew, sliced elsewhere, or parts of it dropped."""
    scope = code.scope(node)
    own = {id(n) for n in below(node)}
    for other in below(scope):
        if id(other) in own:
            bound = isinstance(other, ast.Name) and isinstance(other.ctx, ast.Store) and other.id == name
            if bound or (isinstance(other, ast.Subscript) and _is(other.value, name) and _counted(node, name) > 1):
                return True
            continue
        later = getattr(other, "lineno", 0) > node.lineno
        if later and _is(other, name) and not isinstance(getattr(other, "ctx", None), ast.Load):
            return True
        sliced = isinstance(other, ast.Subscript) and isinstance(other.slice, (ast.Slice, ast.Name))
        if sliced and isinstance(other, ast.Subscript) and _is(other.value, name):
            return True
        if isinstance(other, ast.Call) and last_name(other.func) in _PARTS and name in names_in(other):
            return True
    return False


def _counted(node: ast.AST, name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in below(node))


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _opened_for_training(code: Syntax, value: ast.Call) -> bool:
    """Whether a ready-made data set is opened with train=True, as the training set is."""
    train = argument(value, 99, "train")
    split = argument(value, 99, "split")
    yes = (isinstance(train, ast.Constant) and train.value is True) or (
        isinstance(split, ast.Constant) and split.value == "train")  # fmt: skip
    if not yes or not code.qualified(value.func).startswith(("torchvision.datasets", "torchaudio.datasets")):
        return False
    scope = code.scope(value)
    cut = {"Subset", "random_split", "SubsetRandomSampler"}
    return not any(isinstance(n, ast.Call) and last_name(n.func) in cut for n in below(scope))


def _overlaps(code: Syntax, node: ast.Assign, value: ast.expr) -> tuple[str, str] | None:
    """Slices of one array, or draws of indices, that overlap with those of the training set."""
    own = _slice(code, value)
    scope = code.scope(node)
    for other in code.of(ast.Assign):
        if code.scope(other) is not scope:
            continue
        for target, made in _pairs(other):
            if not (isinstance(target, ast.Name) and _trained(target.id)):
                continue
            theirs = _slice(code, made)
            if own is not None and theirs is not None and own[0] == theirs[0]:
                low, high = max(own[1], theirs[1]), min(own[2], theirs[2])
                if low < high:
                    return (
                        f"overlaps with {target.id} (line {other.lineno}): both hold {own[0]}[{low:g}:{high:g}]",
                        "overlap",
                    )
            if _drawn(value) and _drawn(made) and value is not made and _other_draw(value, made):
                return f"and {target.id} (line {other.lineno}) are drawn independently: they overlap", "drawn"
    return None


def _slice(code: Syntax, value: ast.expr) -> tuple[str, float, float] | None:
    """(array, from, to) of a slice with known ends; the end of the array is 1e12."""
    if not (isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and value.slice.step is None):
        return None
    if not isinstance(value.value, (ast.Name, ast.Attribute)):
        return None
    low = 0.0 if value.slice.lower is None else code.number(value.slice.lower)
    high = 1e12 if value.slice.upper is None else code.number(value.slice.upper)
    if low is None or high is None or low < 0 or high < 0:
        return None
    return written(value.value), low, high


def _drawn(value: ast.expr) -> bool:
    """Whether it is a slice of a fresh permutation, or a draw of indices."""
    inner = value.value if isinstance(value, ast.Subscript) else value
    return isinstance(inner, ast.Call) and last_name(inner.func) in _DRAWS and "seed" not in written(inner)


def _other_draw(value: ast.expr, made: ast.expr) -> bool:
    """Whether the two draw from the same range by separate calls."""
    one = value.value if isinstance(value, ast.Subscript) else value
    two = made.value if isinstance(made, ast.Subscript) else made
    same = isinstance(one, ast.Call) and isinstance(two, ast.Call) and one.args and two.args
    if not same or not isinstance(one, ast.Call) or not isinstance(two, ast.Call):
        return False
    generated = any(k.arg == "generator" for c in (one, two) for k in c.keywords)
    return written(one.args[0]) == written(two.args[0]) and not generated


def _finding(code: Syntax, node: ast.AST, name: str, why: str, kind: str) -> Finding:
    return RULE.finding(
        f"{name} at {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "name": name},
    )
