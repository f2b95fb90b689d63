"""An attribute is set that nothing reads.

Python lets any name be set on an object: `p.require_grad = False` makes a new attribute beside `requires_grad`, and the
parameter trains on. `optimizer.lr = 1e-4` does not touch `param_groups`, which is where the learning rate lives, and
`model.is_training = False` does not switch dropout or BatchNorm. No error, no warning; the freezing, the rate or the
mode that the line is for does not happen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.patching import indentation
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C238",
    name="attribute-nothing-reads",
    title="An attribute is set that nothing reads",
    severity=Severity.HIGH,
    sees="A misspelt requires_grad, optimizer.lr, optimizer.momentum, or a mode flag of a module that torch has not.",
    matters="The parameters are not frozen, the rate does not change, dropout and BatchNorm keep their mode.",
    alike=("a class of one's own that has the attribute and reads it", "a scheduler's attributes, which it reads",
           "an optimizer of another package that has a property for its rate"),
    confirm=("print(p.requires_grad), print(optimizer.param_groups[0]['lr']), print(model.training) after the line",),
)
_GRAD = re.compile(r"^(requir(e|es|ed|s)?_?grads?|requir(e|es|ed)_gradients?|req_grad|needs?_grads?)$", re.IGNORECASE)
_RATES = {"lr": "lr", "learning_rate": "lr", "learningrate": "lr", "momentum": "momentum",
          "weight_decay": "weight_decay", "betas": "betas"}  # fmt: skip
_MODES = re.compile(r"^(is_?train(ing)?|training_mode|train_mode|is_eval|eval_mode|trainning|trainable|trainnig)$")
_OPTIMIZERS = frozenset({
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "LBFGS",
    "SparseAdam", "Adafactor", "Muon",
})  # fmt: skip
_LAYERS = re.compile(r"^(Lazy)?(Linear|Conv\d?d|Dropout\d?d?|BatchNorm\dd|LayerNorm|LSTM|GRU|RNN|Embedding|Sequential|"
                     r"Transformer\w*|MultiheadAttention|SyncBatchNorm|GroupNorm|ModuleList)$")  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every assignment to an attribute of something other than self."""
    read = _read(project)
    for file in project.files:
        if "torch" not in file.text and "lightning" not in file.text:
            continue
        code = syntax(file)
        for node in code.of(ast.Assign):
            for target in node.targets:
                if not isinstance(target, ast.Attribute) or target.attr in read:
                    continue
                right = _right(project, code, node, target)
                if right is not None:
                    yield _finding(code, node, target, *right)


def _read(project: Project) -> set[str]:
    """Attributes that the project reads anywhere, or defines: somebody may have use for them."""
    found: set[str] = set()
    for file in project.files:
        code = syntax(file)
        found |= {n.attr for n in code.of(ast.Attribute) if isinstance(n.ctx, ast.Load) and _misleading(n.attr)}
        found |= {f.name for f in code.of(ast.FunctionDef) if _misleading(f.name)}
        for call in code.calls("getattr", "hasattr", "register_buffer"):
            found |= {a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    return found


def _misleading(name: str) -> bool:
    return bool(_GRAD.match(name) or _MODES.match(name))


def _right(project: Project, code: Syntax, node: ast.Assign, target: ast.Attribute) -> tuple[str, str] | None:
    """(kind, what the line should be) of an attribute that torch does not know."""
    name, owner = target.attr, target.value
    if _GRAD.match(name) and name != "requires_grad" and _flag(node.value) and not _fresh(code, owner):
        return "requires_grad", f"{written(owner)}.requires_grad = {written(node.value)}"
    if name.lower() in _RATES and _is_optimizer(code, owner):
        held = _RATES[name.lower()]
        return "optimizer", f'for group in {written(owner)}.param_groups:\n    group["{held}"] = {written(node.value)}'
    if _MODES.match(name) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        if name != "trainable" and _is_layer(code, owner):
            on = node.value.value != name.startswith(("is_eval", "eval"))
            return "mode", f"{written(owner)}.{'train' if on else 'eval'}()"
        if name == "trainable" and _is_layer(code, owner):
            return "trainable", f"{written(owner)}.requires_grad_({node.value.value})"
    return None


def _fresh(code: Syntax, node: ast.expr) -> bool:
    """Whether something is a new tensor of torch, which requires no gradient anyway: `torch.zeros(n, d).float()`."""
    made = code.origin(node)
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and isinstance(made.func.value, ast.Call):
        made = made.func.value
    library = code.qualified(made.func) if isinstance(made, ast.Call) else ""
    return library.startswith("torch.") and library.count(".") == 1


def _flag(value: ast.expr) -> bool:
    """Whether a value is one that requires_grad could be given."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, bool)
    return isinstance(value, (ast.Name, ast.Compare, ast.UnaryOp, ast.BoolOp, ast.Attribute))


def _is_optimizer(code: Syntax, node: ast.expr) -> bool:
    """Whether something is an optimizer of torch: made by one of its classes, or parameter groups are read off it."""
    bound = [v for _, v in code.bindings(node)]
    made = [v for v in bound if isinstance(v, ast.Call) and code.qualified(v.func).startswith("torch.optim.")
            and last_name(v.func) in _OPTIMIZERS]  # fmt: skip
    if bound:
        return len(made) == len(bound)
    if not isinstance(node, (ast.Name, ast.Attribute)) or not re.search(r"^opt(im(izer)?)?$|_opt(im(izer)?)?$",
                                                                       last_name(node)):  # fmt: skip
        return False
    owner = code.owner(node)
    if isinstance(node, ast.Attribute) and (owner is None or written(node.value) != "self"):
        return False
    stepped = any(isinstance(c.func, ast.Attribute) and written(c.func.value) == written(node)
                  for c in code.calls("zero_grad", "step"))  # fmt: skip
    return isinstance(node, ast.Name) and stepped and "torch.optim" in code.file.text


def _is_layer(code: Syntax, node: ast.expr) -> bool:
    """Whether something is a module: made by a layer of torch, or one of what `modules()` gives."""
    made = code.origin(node)
    if isinstance(made, ast.Call):
        name = last_name(made.func)
        if _LAYERS.match(name) and code.qualified(made.func).startswith("torch.nn."):
            return True
        return any(c.name == name and _plain_module(code, c) for c in code.of(ast.ClassDef))
    if isinstance(node, ast.Name):
        for loop in code.loops(node):
            if isinstance(loop, ast.For) and node.id in names_in(loop.target):
                return bool(re.search(r"\.(named_)?(modules|children)\(\)", written(loop.iter)))
    if isinstance(node, ast.Name) and re.search(r"(^|_)(model|net|network)$", node.id):
        calls = {last_name(c.func) for c in code.of(ast.Call)
                 if isinstance(c.func, ast.Attribute) and written(c.func.value) == node.id}  # fmt: skip
        return "parameters" in calls or "state_dict" in calls
    return False


def _plain_module(code: Syntax, node: ast.ClassDef) -> bool:
    """A class right below nn.Module, which has no attributes that are not in this file."""
    return [code.qualified(b) for b in node.bases] == ["torch.nn.Module"]


def _finding(code: Syntax, node: ast.Assign, target: ast.Attribute, kind: str, better: str) -> Finding:
    change = Change(code.file, f"set what torch reads in place of .{target.attr}")
    patch: tuple[Patch, ...] = ()
    if len(node.targets) == 1:
        if kind == "requires_grad":
            start = source_of(code.file, target.value)
            patch = change.replace(target, f"{start}.requires_grad").patches()
        elif kind != "optimizer" or code.file.line(node.lineno).strip().startswith(written(target)):
            pad = indentation(code.file, node.lineno)
            deeper = "\t" if "\t" in pad else "    "
            patch = change.replace(node, better.replace("\n    ", f"\n{pad}{deeper}")).patches()
    where = {
        "requires_grad": "torch reads requires_grad",
        "optimizer": "torch reads param_groups",
        "mode": "torch reads training, which train() and eval() set",
        "trainable": "torch reads requires_grad of the parameters",
    }[kind]
    return RULE.finding(
        f"{written(node)} at {code.at(node)} sets an attribute that nothing reads ({where}): it changes nothing",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "attribute": target.attr, "instead": better.replace("\n    ", " ")},
        patch=patch,
    )
