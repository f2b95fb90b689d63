"""A checkpoint holds the state of something that the program which goes on from it never takes out again.

The program reads some entries of the file by their names and leaves others: the running statistics of a normaliser, a
schedule's position, an average. What is left starts anew, in the middle of the training. The names are those of the
file; the code is read as text for any use of them besides storing.

To go on is more than to take the weights: fine-tuning takes those alone, and starts its optimizer anew on purpose. A
program goes on where it takes out state of the training, or a position (epoch, step) that it uses for more than print.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.rules import Rule, Threshold

_READ = 2
_TRAINS = re.compile(r"\.backward\(|value_and_grad\(|jax\.grad\(|\.fit\(|\.train\(\)|apply_updates\(")
_POSITION = re.compile(r"epoch|step|iter|round|update", re.IGNORECASE)
_TELLS = frozenset({"print", "debug", "info", "warning", "log", "write"})
"""Calls that tell somebody a value and do nothing else with it."""
_CHANCE = re.compile(r"rng|random|seed|generator", re.IGNORECASE)
_KINDS = (("schedule", re.compile(r"sched|^lr", re.IGNORECASE)),
          ("scaler", re.compile(r"scaler|loss_?scale", re.IGNORECASE)))

RULE = Rule(
    id="W138",
    name="entry-never-read",
    title="State in the checkpoint is never taken out again",
    severity=Severity.MEDIUM,
    sees="entries of a checkpoint that hold tensors or state, and each use of their names in a program that trains",
    matters="What is not restored starts anew on weights that were trained with it.",
    alike=(
        "A program that takes the whole file, or goes over its entries: nothing is said.",
        "Random states, settings and records: no training depends on them.",
        "A program that evaluates, and needs the weights alone.",
        "Fine-tuning from a whole checkpoint: neither state nor position of the old training is taken up.",
    ),
    confirm=("Print the keys of the loaded file beside those that are read.",
             "Load the named entry as well in a copy, and compare the first steps after the resumption."),
    thresholds={"read": Threshold(_READ, "entries", "that the program reads by their names, at least")},
)


def check_code(checkpoint: Checkpoint, projects: Sequence[Project]) -> Iterator[Finding]:
    """A finding for each entry with state that a program never reads which trains and reads others of the file."""
    held = _state(checkpoint)
    names = held.keys() | {k.partition(".")[0] for k in checkpoint.values}
    for project in projects:
        uses = [_Uses(f.tree) for f in project.files]
        read = {n for n in names for u in uses if n in u.read}
        every = any(u.goes_over_all for u in uses)
        if every or len(read) < _READ or not any(_TRAINS.search(f.text) for f in project.files):
            continue
        if not any(_goes_on(checkpoint, n) for u in uses for n in u.used & names):
            continue
        said = {n for u in uses for n in u.said}
        for name in sorted(held.keys() - said):
            file, line = next((f.path, u.line) for f, u in zip(project.files, uses, strict=True) if u.read & names)
            yield RULE.finding(
                f"{name} of {checkpoint.path} ({held[name]}) is never read: {file}:{line} and after take out "
                f"{', '.join(sorted(read))} and not it, so that it starts anew",
                Location(file=str(file), line=line), checkpoint.path, bearing=Bearing.CAUSE,
                measured={"name": name, "kind": _kind(checkpoint, name), "read": len(read), "held": held[name]})
        return


def _state(checkpoint: Checkpoint) -> dict[str, str]:
    """The entries at the top of the file that hold state, and what each of them holds."""
    found: dict[str, str] = {}
    tops = Counter(f"{part.key}.{name}".lstrip(".").partition(".")[0] for part in checkpoint.parts
                   for name in part.tensors)
    found |= {top: f"{count} tensor{'s' if count > 1 else ''}" for top, count in tops.items()}
    for optimizer in checkpoint.optimizers:
        found[optimizer.key.partition(".")[0]] = "the state of an optimizer"
    for path in checkpoint.values:
        top, dot, _ = path.partition(".")
        if dot and any(p.search(top) for _, p in _KINDS):
            found.setdefault(top, "plain values")
    return {k: v for k, v in found.items() if k and not _CHANCE.search(k)}


def _goes_on(checkpoint: Checkpoint, name: str) -> bool:
    """Whether who takes this entry goes on with the training: state of it, or where it stood."""
    if _kind(checkpoint, name) != "statistics":
        return True
    return bool(_POSITION.search(name)) and isinstance(checkpoint.values.get(name), int)


def _kind(checkpoint: Checkpoint, name: str) -> str:
    if any(o.key.partition(".")[0] == name for o in checkpoint.optimizers):
        return "optimizer"
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "statistics")


class _Uses:
    """The texts that a file reads entries by, all that it says besides names of what it stores, and wholesale uses."""

    def __init__(self, tree: ast.AST) -> None:
        self.read: set[str] = set()
        self.used: set[str] = set()
        """Of what is read, what is used for more than to be told."""
        self.said: set[str] = set()
        self.line = 0
        self.goes_over_all = False
        loaded, stored = set(), set()
        self._told: set[int] = set()
        for node in below(tree):
            if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and _called(node) in _TELLS):
                self._told |= {id(n) for n in below(node)}
            if isinstance(node, ast.Assign) and _is_load(node.value):
                loaded |= {t.id for t in node.targets if isinstance(t, ast.Name)}
            elif isinstance(node, ast.Dict):
                stored |= {id(k) for k in node.keys if k is not None}
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                stored.add(id(node.slice))
        for node in below(tree):
            self._seen(node, loaded, stored)

    def _seen(self, node: ast.AST, loaded: set[str], stored: set[int]) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in stored:
            self.said.add(node.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            self._key(node.slice, node)
        elif isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if method in ("get", "pop") and node.args:
                self._key(node.args[0], node)
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            on = owner.id if isinstance(owner, ast.Name) else ""
            given = {a.id for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Name)}
            self.goes_over_all |= (on in loaded and method in ("items", "keys", "values")) or bool(given & loaded)

    def _key(self, key: ast.AST, of: ast.Subscript | ast.Call) -> None:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            self.read.add(key.value)
            self.line = min(self.line or of.lineno, of.lineno)
            if id(of) not in self._told:
                self.used.add(key.value)


def _is_load(node: ast.AST) -> bool:
    """A call of what is called load: `torch.load(path)`, `pickle.load(file)`, `checkpointer.restore(path)`."""
    if not isinstance(node, ast.Call):
        return False
    name = _called(node)
    return name in ("load", "restore") or name.startswith("load_")


def _called(call: ast.Call) -> str:
    """The last part of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else str(getattr(call.func, "id", ""))
