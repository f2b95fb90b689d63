"""The same seed is set again while training goes on.

A seed belongs at the start. Set again with a constant in the training loop, in a forward pass, in `__getitem__` or in a
collate function, it puts the generator back to the same state every time: each step draws the same noise and the same
dropout mask, each epoch has the same order, each sample the same crop. The run is reproducible and trains on a fraction
of the randomness it was written for. In the loop that builds an
ensemble it makes all members equal. A seed made of the epoch, step or index is right, and so is one in evaluation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, names_in, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C240",
    name="seed-set-again",
    title="The same seed is set again while training goes on",
    severity=Severity.HIGH,
    sees="A seed that is constant, set in a loop that trains, in forward, in __getitem__ or in a collate function.",
    matters="Noise, dropout, augmentation or order are the same in every step or epoch.",
    alike=("a seed made of the epoch, the step, the index or the worker", "fixed noise for evaluation or for pictures",
           "a seed for each run of a loop over folds or trials", "fork_rng, or a generator's state kept and put back"),
    confirm=("print(torch.rand(1)) at the place where randomness is used, in two steps: it is the same",),
)
_LIBRARY = frozenset({
    "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all",
    "torch.cuda.random.manual_seed_all", "numpy.random.seed", "random.seed", "torch.mps.manual_seed",
})  # fmt: skip
_NAMED = re.compile(r"^(set_|fix_|setup_|init_)?(all_)?(random_|rng_|global_)?seeds?(_everything|_all)?$|^seed_\w+$")
_FRESH = frozenset({"default_rng", "RandomState", "Random"})
_HOOKS = re.compile(r"^(forward|__getitem__|training_step|train_step|\w*collate\w*|augment\w*|add_noise|corrupt\w*)$")
_RUNS = re.compile(r"seed|fold|trial|run|rep|exp|conf|cfg|lr|model|method|name|split|task|setting|param|dataset")
_MEMBERS = re.compile(r"ensemble|member|committee|bagg", re.IGNORECASE)
_CALM = re.compile(r"(^|_)(val|valid|validation|test|eval|evaluat\w*|fixed|debug|determin\w*|sampl\w*|infer\w*)($|_)|"
                   r"Val(?!ue)|Test|Eval|Fixed|Determin")  # fmt: skip
_RESTORED = re.compile(r"fork_rng|rng_state|getstate|setstate|get_state|set_state|temp_seed|numpy_seed")
_APART = re.compile(r"no_grad|inference_mode|rng|seed")
_REBUILDS = re.compile(r"^(build|make|create|get|init|configure)_(model|optim|net)|Trainer$|^(main|fit|deepcopy|"
                       r"load_state_dict|reset_parameters)$")  # fmt: skip
_NUMPY = re.compile(r"\b(np|numpy)\.random\.(?!seed)\w|albumentations|imgaug")
_PYTHON = re.compile(r"(?<![\w.])random\.(?!seed|manual_seed)\w+\(|from random import")


def check(project: Project) -> Iterator[Finding]:
    """Look at every call that sets a seed."""
    seeders = {
        f.name for file in project.files for f in syntax(file).of(ast.FunctionDef)
        if _NAMED.match(f.name) and re.search(r"manual_seed|random\.seed", written(f))
    } if any("seed" in f.text for f in project.files) else set()  # fmt: skip
    training: set[str] | None = None
    for file in project.files:
        if ("seed" not in file.text and "default_rng" not in file.text) or re.search(r"bench[^/]*$", file.path):
            continue  # measurements start every variant from the same state
        code = syntax(file)
        for call in code.of(ast.Call):
            if not _sets_seed(project, code, call, seeders):
                continue
            training = _trainers(project) if training is None else training
            yield from _judged(code, call, training)


def _draws(text: str, how: re.Pattern[str]) -> bool:
    """Whether numbers are drawn: a word that stands in every match is looked for first."""
    return any(word in text for word in ("random", "albumentations", "imgaug")) and how.search(text) is not None


def _sets_seed(project: Project, code: Syntax, call: ast.Call, seeders: set[str]) -> bool:
    library, name = code.qualified(call.func), last_name(call.func)
    if library == "numpy.random.seed":
        return any(_draws(f.text, _NUMPY) for f in project.files)
    if library == "random.seed":
        return any(_draws(f.text, _PYTHON) for f in project.files)
    if library in _LIBRARY or (name in ("seed_everything", "set_seed") and library):
        return True
    if name in _FRESH and library.startswith(("numpy.random.", "random.")):
        return True
    if name == "manual_seed" and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
        return code.qualified(call.func.value.func) == "torch.Generator"
    return name in seeders and isinstance(call.func, (ast.Name, ast.Attribute))


def _trainers(project: Project) -> set[str]:
    """Functions of the project that take training steps, and those that call them."""
    direct = _callers(project, {"backward", "manual_backward"})
    direct -= {"forward", "__init__", "step", "main", "backward", "__call__"}
    return direct | (_callers(project, direct) - {"main", "step"})


def _callers(project: Project, names: set[str]) -> set[str]:
    """Functions of the project that hold a call of one of these."""
    return {
        around.name
        for code in map(syntax, project.files)
        for call in code.calls(*names)
        for around in code.above(call)
        if isinstance(around, ast.FunctionDef)
    }


def _judged(code: Syntax, call: ast.Call, training: set[str]) -> Iterator[Finding]:
    function = code.function(call)
    around = function if function is not None else code.file.tree
    owner = code.owner(call)
    names = f"{function.name if function is not None else ''} {owner.name if owner is not None else ''}"
    if any(_CALM.search(n) for n in names.split()) or (function is not None and _RESTORED.search(written(function))):
        return
    fresh = last_name(call.func) in _FRESH or (isinstance(call.func, ast.Attribute)
                                                and isinstance(call.func.value, ast.Call))  # fmt: skip
    if function is not None and _HOOKS.match(function.name):
        given = set(parameters(function))
        if _constant(code, call, function, given) and not _under_condition(code, call, around):
            yield _finding(code, call, "hook", function.name, None)
            return
    built = None if fresh else _ensemble_loop(code, call)
    if built is not None and _constant(code, call, built, set()) and not _under_condition(code, call, built):
        yield _finding(code, call, "members", "", built)
        return
    loop = None if fresh else _training_loop(code, call, training)
    if loop is not None and _constant(code, call, loop, set()) and not _under_condition(code, call, loop):
        yield _finding(code, call, "loop", "", loop)


def _ensemble_loop(code: Syntax, call: ast.Call) -> ast.For | None:
    """The loop around a call that builds the members of an ensemble alike: nothing in a member depends on the turn."""
    if not code.qualified(call.func).startswith("torch.") and "seed" not in last_name(call.func):
        return None
    loop = next((x for x in code.loops(call) if isinstance(x, ast.For)), None)
    if loop is None or re.search(r"lr|rate|fold|seed|config|cfg|trial", written(loop.target)):
        return None
    if re.search(r"bootstrap|resampl|subset|choice", written(loop)):
        return None  # the members differ by their data
    turn = {n.id for n in below(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own = {k.name for k in code.of(ast.ClassDef)}
    around = getattr(code.function(call), "name", "")
    for kept in (c for c in code.calls("append") if c.lineno > call.lineno and loop in code.loops(c)):
        where = f"{written(kept.func)} {around} {getattr(code.owner(call), 'name', '')}"
        made = code.origin(kept.args[0]) if kept.args else None
        while isinstance(made, ast.Call) and last_name(made.func) in ("to", "cuda", "train"):
            made = made.func.value if isinstance(made.func, ast.Attribute) else None
        if not isinstance(made, ast.Call) or not _MEMBERS.search(where) or made.lineno < call.lineno:
            continue
        module = code.qualified(made.func).startswith("torch.nn.") or last_name(made.func) in own
        if module and not names_in(made) & turn:
            return loop
    return None


def _training_loop(code: Syntax, call: ast.Call, training: set[str]) -> ast.For | ast.While | None:
    """The outermost loop around a call that trains one model: its steps come after the call, its optimizer is older."""
    for loop in reversed(code.loops(call)):
        if not isinstance(loop, (ast.For, ast.While)):
            continue
        head = written(loop.target) if isinstance(loop, ast.For) else ""
        calls = [n for n in below(loop) if isinstance(n, ast.Call)]
        steps = [c for c in calls if last_name(c.func) in {"backward", "manual_backward", *training}]
        rebuilt = any(_rebuilds(code, c) for c in calls)
        moved = any(last_name(c.func) in {"step", *training} for c in calls)
        if _RUNS.search(head) or rebuilt or not moved or not any(c.lineno > call.lineno for c in steps):
            continue
        modes = [c for c in calls if last_name(c.func) in ("eval", "train") and c.lineno < call.lineno]
        latest = max(modes, key=lambda c: c.lineno, default=None)
        if latest is None or last_name(latest.func) == "train":
            return loop
    return None


def _rebuilds(code: Syntax, call: ast.Call) -> bool:
    """Whether a call makes a model or an optimizer, or puts one back: each turn of its loop is a run of its own."""
    name = last_name(call.func)
    made = code.qualified(call.func).startswith("torch.optim.") and "lr_scheduler" not in code.qualified(call.func)
    own = name[:1].isupper() and any(
        c.name == name and any("Module" in written(b) for b in c.bases) for c in code.of(ast.ClassDef)
    )
    return made or own or bool(_REBUILDS.search(name))


def _constant(code: Syntax, call: ast.Call, around: ast.AST, given: set[str]) -> bool:
    """Whether the seed is the same each time: no name in it changes inside, or comes from the caller."""
    seed = call.args[0] if call.args else next((k.value for k in call.keywords if "seed" in (k.arg or "")), None)
    if seed is None:
        own = next(iter(code.functions(last_name(call.func))), None)
        defaults = list(parameters(own).values()) if own is not None else []
        return own is not None and all(isinstance(d, ast.Constant) and isinstance(d.value, int) for d in defaults)
    if isinstance(seed, ast.Constant):
        return isinstance(seed.value, int)
    if any(isinstance(n, (ast.Call, ast.Subscript)) for n in below(seed)):
        return False
    stored = {n.id for n in below(around) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    changed = {written(t) for n in below(code.file.tree) if isinstance(n, (ast.AugAssign, ast.Assign))
               for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
               if isinstance(t, ast.Attribute) and not _in_constructor(code, n)}  # fmt: skip
    attributes = {n.attr for n in below(seed) if isinstance(n, ast.Attribute)}
    moving = any(c.rpartition(".")[2] in attributes for c in changed)
    counted = re.search(r"step|epoch|iter|idx|index|count|worker|rank|round", written(seed))
    return not names_in(seed) & (stored | (given - {"self"})) and not moving and not counted


def _in_constructor(code: Syntax, node: ast.AST) -> bool:
    function = code.function(node)
    return function is None or function.name in ("__init__", "__post_init__", "main")


def _under_condition(code: Syntax, call: ast.Call, around: ast.AST) -> bool:
    """Whether a seed is set now and then, or for another purpose: below an `if`, a `with` of its own, a `try`."""
    for up in code.above(call):
        if up is around:
            return False
        if isinstance(up, (ast.If, ast.IfExp, *FunctionNode, ast.Lambda)) and not _inside_main(up):
            return True
        if isinstance(up, ast.With) and _APART.search(written(up.items[0].context_expr)):
            return True
    return True


def _inside_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in written(node.test)


def _finding(code: Syntax, call: ast.Call, kind: str, hook: str, loop: ast.For | ast.While | None) -> Finding:
    statement = code.statement(call)
    patch: tuple[Patch, ...] = ()
    if isinstance(statement, ast.Expr):
        change = Change(code.file, "set the seed once, at the start")
        patch = (change.delete(statement) if loop is None else change.move_before(statement, loop)).patches()
    which = "loop over the members" if kind == "members" else "training loop"
    where = f"every call of {hook}" if loop is None else f"every turn of the {which} at line {loop.lineno}"
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} sets the same seed in {where}: what is random after it is the "
        f"same each time{': all members begin equal' if kind == 'members' else ''}",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "where": hook or "loop", "call": written(call)[:80]},
        patch=patch,
    )
