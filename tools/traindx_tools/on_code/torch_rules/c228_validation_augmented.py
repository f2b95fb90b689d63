"""Validation data go through the random augmentation of training.

`random_split` and `Subset` share the data set that they cut: if it was made with a random transform, both parts are
augmented. Validation is then pessimistic (flipped, erased, cropped inputs) and gives another number at each evaluation
of the same weights; a model is chosen by luck. The same happens where a validation set is built with the transform of
training. A second data set object over the same indices, a transform that is set for each part, and what is
deterministic (resize, normalise) are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.random_draws import Random, defined, drawn
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C228",
    name="validation-augmented",
    title="Validation data are augmented at random",
    severity=Severity.HIGH,
    sees="Training and validation parts of one data set with a random transform, or its transform on validation data.",
    matters="Validation is worse than it should be and differs between evaluations of the same weights.",
    alike=("dropout that stays on in evaluation", "a validation set that is too small"),
    confirm=("evaluate the same weights twice", "print(torch.equal(val[0][0], val[0][0]))"),
)
_HELD = re.compile(
    r"(^|_)(x|ds|d)?_?(val|valid|validation|test|dev|eval|hold_?out|held_?out|te|va)"
    r"(_|$|set|data|ds|loader|part|idx|ind|dl|split|subset)",
    re.IGNORECASE,
)
_TRAIN = re.compile(r"train|(^|_)(trn|tr|fit)(_|$)", re.IGNORECASE)
_AUGMENTED = re.compile(r"(use_|do_|with_|random_|data_)?(aug\w*|jitter|flips?|distort|perturb|randomi[sz]e)")
_VIEWS = re.compile(
    r"simclr|contrastive|byol|\bdino|two_?crop|n_?views|moco|simsiam|barlow|vicreg|self.?supervis|masked.?auto|jigsaw",
    re.IGNORECASE,
)
"""Tasks whose loss is made of random views: they are drawn for validation as well."""
_OVERRIDES = frozenset({"dataset", "transform", "transforms", "augment", "aug", "tfm", "tfms", "tf", "augmentation"})
_PREPARES = re.compile(r"from_numpy|tensor\(|totensor|resize|normali[sz]e|permute|compose|\.float\(|astype", re.I)
"""What a transform does that the network needs, random or not."""
_WRAPS = re.compile(r"transform|wrap|apply|map|augment|no_aug|plain", re.IGNORECASE)


@dataclass(frozen=True)
class _Split:
    """One data set in parts: where they are made, the data set, the parts (or, if not `cut`, their loaders)."""

    node: ast.AST
    data: ast.expr
    parts: list[ast.expr]
    cut: bool = True


def check(project: Project) -> Iterator[Finding]:
    """Look at every cut of a data set, and at every data set for validation."""
    codes = [syntax(f) for f in project.files]
    for code in codes:
        text = code.file.text
        if "torch" not in text:
            continue
        found = list(_of_file(codes, code))
        if found and not _VIEWS.search(text):
            yield from found


def _of_file(codes: list[Syntax], code: Syntax) -> Iterator[Finding]:
    text = code.file.text
    if "random_split" in text or "Subset" in text:
        for split in (*_splits(code), *_sampled(code)):
            finding = _shared(codes, code, split)
            if finding is not None:
                yield finding
    if any(word in text for word in ("transform", "aug", "tf")):
        yield from _of_training(codes, code)


def _splits(code: Syntax) -> Iterator[_Split]:
    """random_split(data, ...) with its targets, and the Subsets of one data set in one scope."""
    for call in code.calls("random_split"):
        data, up = argument(call, 0, "dataset"), code.parent(call)
        if data is not None and isinstance(up, ast.Assign):
            target = up.targets[0]
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else _entries(code, target)
            yield _Split(up, data, list(parts))
    cut: dict[tuple[int, str], list[tuple[ast.Assign, ast.expr, ast.expr]]] = {}
    for node in code.of(ast.Assign):
        for target, value in _pairs(node):
            if isinstance(value, ast.Call) and last_name(value.func) == "Subset":
                data = argument(value, 0, "dataset")
                if isinstance(data, (ast.Name, ast.Attribute)):
                    cut.setdefault((id(code.scope(node)), written(data)), []).append((node, target, data))
    for group in cut.values():
        if len(group) > 1 and group[0][0].lineno >= _last_bound(code, group[0][2]):
            yield _Split(group[-1][0], group[0][2], [target for _, target, _ in group])


def _entries(code: Syntax, target: ast.expr) -> list[ast.expr]:
    """`parts[0]` and `parts[1]` of `parts = random_split(...)`."""
    found: dict[str, ast.expr] = {}
    for node in code.of(ast.Subscript):
        if written(node.value) == written(target) and isinstance(node.slice, ast.Constant):
            found.setdefault(written(node), node)
    return list(found.values())


def _sampled(code: Syntax) -> Iterator[_Split]:
    """Two loaders over one data set, each with a sampler for its part."""
    cut: dict[tuple[int, str], list[tuple[ast.Assign, ast.expr]]] = {}
    for call in code.calls("DataLoader"):
        data, up = argument(call, 0, "dataset"), code.parent(call)
        sampled = argument(call, 3, "sampler") is not None or argument(call, 4, "batch_sampler") is not None
        if sampled and isinstance(up, ast.Assign) and isinstance(data, (ast.Name, ast.Attribute)):
            cut.setdefault((id(code.scope(up)), written(data)), []).append((up, data))
    for group in cut.values():
        data = group[0][1]
        if len(group) > 1 and group[0][0].lineno >= _last_bound(code, data):
            yield _Split(group[-1][0], data, [node.targets[0] for node, _ in group], cut=False)


def _last_bound(code: Syntax, data: ast.expr) -> int:
    """The line of the last binding of a name, 0 where there is one binding or none."""
    bound = code.bindings(data)
    return max((s.lineno for s, _ in bound), default=0) if len(bound) > 1 else 0


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _shared(codes: list[Syntax], code: Syntax, split: _Split) -> Finding | None:
    """Training and validation parts of one object whose transform draws."""
    held = [p for p in split.parts if _is_held(code, p)]
    trained = [p for p in split.parts if p not in held and _is_trained(code, p)]
    made = code.origin(split.data)
    if not held or not trained or not isinstance(made, ast.Call) or any(_handled(code, split, h) for h in held):
        return None
    random = _random_part(codes, code, made)
    if random is None or _changed_later(codes, code, split.data):
        return None
    names = f"{written(trained[0])} and {written(held[0])}"
    return RULE.finding(
        f"{names} at {code.at(split.node)} share one data set, made at line {made.lineno}, whose {random.name} at "
        f"{random.at} draws at random: the validation part is augmented as well, differently at every evaluation",
        code.place(split.node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "split", "random": random.name, "part": written(held[0])},
        patch=_plain_copy(codes, code, split, made, held[0]) if split.cut else (),
    )


def _is_held(code: Syntax, part: ast.expr) -> bool:
    name = last_name(part)
    return bool(_HELD.search(name) and not _TRAIN.search(name)) or any(
        _HELD.search(n) and not _TRAIN.search(n) for n in _loaders_of(code, part))  # fmt: skip


def _is_trained(code: Syntax, part: ast.expr) -> bool:
    return any(_TRAIN.search(n) for n in (last_name(part), *_loaders_of(code, part)))


def _loaders_of(code: Syntax, part: ast.expr) -> list[str]:
    """The names of the loaders over a part."""
    found: list[str] = []
    for call in code.calls("DataLoader"):
        data, up = argument(call, 0, "dataset"), code.parent(call)
        if data is not None and written(data) == written(part) and isinstance(up, ast.Assign):
            found += [last_name(t) for t in up.targets]
    return found


def _handled(code: Syntax, split: _Split, held: ast.expr) -> bool:
    """Whether the part gets a data set or transform of its own afterwards, or is wrapped."""
    name = written(held)
    for node in code.of(ast.Assign):
        for target in node.targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                later = node is not split.node and node.lineno > getattr(split.node, "lineno", 0)
                if later and written(part) == name:
                    return True
                if isinstance(part, ast.Attribute) and part.attr in _OVERRIDES and written(part).startswith(name + "."):
                    return True
    for call in code.of(ast.Call):
        given = [*call.args, *(k.value for k in call.keywords)]
        wraps = _WRAPS.search(last_name(call.func)) and not last_name(call.func).endswith("DataLoader")
        if wraps and any(written(a) == name for a in given):
            return True
        if any(isinstance(a, ast.Attribute) and a.attr == "indices" and written(a.value) == name for a in given):
            return True
    return False


def _changed_later(codes: list[Syntax], code: Syntax, data: ast.expr) -> bool:
    """Whether the program switches the augmentation of the data set: `data.augment = False` before it validates."""
    own = tuple(f"{last_name(data)}.{o}" for o in _OVERRIDES) if last_name(data) else ()
    tails = (*own, ".dataset.transform")
    return any(
        isinstance(t, ast.Attribute) and written(t).endswith(tails)
        for c in codes
        for node in c.of(ast.Assign)
        for t in node.targets
    ) or any(last_name(c.func) in ("set_augment", "set_transform", "disable_augmentation") for c in code.of(ast.Call))


def _random_part(codes: list[Syntax], code: Syntax, made: ast.Call) -> Random | None:
    """What draws in a data set: a transform that it is given, one that it makes itself, or its own switch."""
    given = [*made.args, *(k.value for k in made.keywords if k.arg not in ("target_transform", "sampler"))]
    for value in given:
        if isinstance(value, (ast.Call, ast.Name, ast.Attribute, ast.Lambda, ast.List)):
            if isinstance(value, ast.Call) and not re.search(r"[Cc]ompose|[Tt]ransform|[Aa]ug|Random|Sequential",
                                                             written(value.func)):  # fmt: skip
                continue
            random = drawn(codes, code, value)
            if random is not None:
                return random
    home = defined(codes, code, made.func)
    if home is None or not isinstance(home[1], ast.ClassDef):
        return None
    return _own_transform(codes, home[0], home[1]) or _switched(home[0], home[1], made)


def _own_transform(codes: list[Syntax], code: Syntax, owner: ast.ClassDef) -> Random | None:
    """`self.tf = Compose([RandomCrop(...)])`, the only binding, which `__getitem__` calls."""
    fetch = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__getitem__"), None)
    for call in (n for n in below(fetch) if isinstance(n, ast.Call)) if fetch is not None else ():
        if isinstance(call.func, ast.Attribute) and written(call.func.value) == "self" and _always(code, call):
            bound = code.bindings(call.func)
            if len(bound) == 1 and _always(code, bound[0][0]) and isinstance(bound[0][1], (ast.Call, ast.List)):
                return drawn(codes, code, bound[0][1])
    return None


def _always(code: Syntax, node: ast.AST) -> bool:
    return not any(isinstance(a, (ast.If, ast.IfExp)) for a in code.above(node))


def _switched(code: Syntax, owner: ast.ClassDef, made: ast.Call) -> Random | None:
    """A data set that draws under its own switch, made with the switch on: Scans(root, augment=True)."""
    init = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    fetch = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__getitem__"), None)
    if init is None or fetch is None:
        return None
    known = parameters(init)
    names = [n for n in known if n != "self"]
    for name in (n for n in names if _AUGMENTED.fullmatch(n)):
        value = argument(made, names.index(name), name) or known[name]
        on = isinstance(value, ast.Constant) and value.value is True
        for branch in (n for n in below(fetch) if isinstance(n, ast.If)) if on else ():
            if re.search(rf"self\.(_)?{name}\b", written(branch.test)) and "not " not in written(branch.test):
                random = _draw_below(code, branch)
                if random is not None:
                    return Random(f"{name}=True", code.at(random))
    return None


def _draw_below(code: Syntax, branch: ast.If) -> ast.AST | None:
    for call in (n for part in branch.body for n in below(part) if isinstance(n, ast.Call)):
        full = code.qualified(call.func)
        if full.startswith(("random.", "numpy.random.", "torch.rand")) and "seed" not in full:
            return call
        if re.search(r"[Rr]andom|jitter|augment", last_name(call.func)):
            return call
    return None


def _of_training(codes: list[Syntax], code: Syntax) -> Iterator[Finding]:
    """A validation data set that is given the very transform of the training data set."""
    trained: dict[tuple[int, str], ast.expr] = {}
    held: list[tuple[ast.Assign, str, ast.expr]] = []
    for node in code.of(ast.Assign):
        for target, value in _pairs(node):
            name = last_name(target)
            if not isinstance(value, ast.Call) or not re.search(r"[a-z]", last_name(value.func)):
                continue
            inner = value.args[0] if last_name(value.func) == "DataLoader" and value.args else value
            for given in (*inner.args, *(k.value for k in inner.keywords)) if isinstance(inner, ast.Call) else ():
                if not isinstance(given, (ast.Name, ast.Attribute)) or not _is_transform(given):
                    continue
                if _HELD.search(name) and not _TRAIN.search(name):
                    held.append((node, name, given))
                elif _TRAIN.search(name):
                    trained[id(code.scope(node)), written(given)] = given
    for node, name, given in held:
        random = drawn(codes, code, given)
        if random is not None and (id(code.scope(node)), written(given)) in trained:
            yield RULE.finding(
                f"{name} at {code.at(node)} is made with {written(given)}, the transform of the training data, whose "
                f"{random.name} at {random.at} draws at random: validation is augmented, otherwise at every evaluation",
                code.place(node),
                code.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "transform", "random": random.name, "part": name},
                patch=_plain_transform(codes, code, node, given),
            )


def _is_transform(node: ast.expr) -> bool:
    return re.search(r"(^|_)(t|tf|tfm|tfms|aug\w*|transforms?|preproc\w*|pipeline|compose)(_|$)|transform|augment",
                     last_name(node), re.IGNORECASE) is not None  # fmt: skip


def _plain_transform(codes: list[Syntax], code: Syntax, node: ast.Assign, given: ast.expr) -> tuple[Patch, ...]:
    """The one transform of the same scope that is made for validation and draws nothing."""
    scope, names = code.scope(node), set()
    for other in code.of(ast.Assign):
        name = last_name(other.targets[0])
        near = code.scope(other) is scope or code.scope(other) is code.file.tree
        plain = isinstance(other.value, ast.Call) and last_name(other.value.func) == "Compose"
        own = isinstance(other.targets[0], ast.Name) and _HELD.search(name) and not _TRAIN.search(name)
        if near and plain and own and other.lineno < node.lineno and drawn(codes, code, other.value) is None:
            names.add(name)
    change = Change(code.file, "the transform of validation")
    return change.replace(given, names.pop()).patches() if len(names) == 1 else ()


def _plain_copy(
    codes: list[Syntax], code: Syntax, split: _Split, made: ast.Call, held: ast.expr
) -> tuple[Patch, ...]:
    """The same rows of a data set without the transform, or with its switch off, where the class does without."""
    home = defined(codes, code, made.func)
    subset = next((n for n, full in code.aliases.items() if full == "torch.utils.data.Subset"), None)
    subset = subset or ("torch.utils.data.Subset" if code.aliases.get("torch") == "torch" else None)
    if home is None or not isinstance(home[1], ast.ClassDef) or subset is None or not isinstance(split.node, ast.stmt):
        return ()
    options = _without_draws(codes, code, home[0], home[1], made)
    if options is None or not isinstance(held, (ast.Name, ast.Attribute)) or any(k.arg is None for k in made.keywords):
        return ()
    given = [*(source_of(code.file, a) for a in made.args), *(f"{name}={value}" for name, value in options.items())]
    copy, part = f"{source_of(code.file, made.func)}({', '.join(given)})", written(held)
    change = Change(code.file, "validate on the same rows of a data set without the random augmentation")
    return change.after(split.node, f"{part} = {subset}({copy}, {part}.indices)").patches()


def _without_draws(
    codes: list[Syntax], code: Syntax, home: Syntax, owner: ast.ClassDef, made: ast.Call
) -> dict[str, str] | None:
    """The keywords of the same data set without what draws; None where that is not certain."""
    init = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    known = parameters(init) if init is not None else {}
    options = {k.arg or "": source_of(code.file, k.value) for k in made.keywords}
    switches = [n for n in known if _AUGMENTED.fullmatch(n)]
    if _switched(home, owner, made) is not None and len(switches) == 1:
        positional = [n for n in known if n != "self"].index(switches[0]) < len(made.args)
        return None if positional else {**options, switches[0]: "False"}
    drop = [k for k in made.keywords if k.arg and drawn(codes, code, k.value) is not None]
    default = known.get(drop[0].arg or "") if len(drop) == 1 else None
    function = defined(codes, code, drop[0].value) if len(drop) == 1 and isinstance(drop[0].value, ast.Name) else None
    prepares = function is None or _PREPARES.search(written(function[1])) is not None
    if prepares or not isinstance(default, ast.Constant) or default.value is not None:
        return None
    return {name: text for name, text in options.items() if name != drop[0].arg}
