"""The statistics by which inputs are normalised are not in the checkpoint.

A running mean and variance of the inputs is part of what the network has learned: it only knows inputs in that scale.
An object that keeps them outside the model is in no `state_dict`. After a restart, or in the script that predicts, it
begins with zeros and ones again, the restored network sees inputs of another scale, and its error is several times
higher, until the statistics are estimated anew. `VecNormalize` around environments is such an object.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, parameters, written

(RULE,) = pages("data", ("C292",))
_STATISTIC = re.compile(
    r"mean|var|std|m2|rms|running|moment|(^|_)mu($|_)|sigma|(^|_)(lo|hi|min|max)(imum)?($|_)", re.IGNORECASE)
_SAVES = frozenset({"save", "dump", "savez", "savez_compressed", "save_file", "save_checkpoint", "to_json",
                    "write_text", "save_pretrained"})  # fmt: skip
_SAVING = re.compile(r"save|checkpoint|ckpt|state_dict|snapshot|get_state|__getstate__|export|to_dict", re.IGNORECASE)
_LOADS = re.compile(r"torch\.load\(|load_state_dict\(|load_file\(")
_ONE_PROGRAM = 40


@dataclass(frozen=True, eq=False)
class _Kind:
    """A class that keeps running statistics."""

    code: Syntax
    node: ast.ClassDef
    attributes: tuple[str, ...]
    applies: frozenset[str]
    """Its methods that normalise."""

    @property
    def is_module(self) -> bool:
        return any(last_name(b).endswith("Module") for b in self.node.bases)


def check(project: Project) -> Iterator[Finding]:
    """Look at every object that keeps statistics of the inputs, where a checkpoint is saved and loaded."""
    if len(project.files) > _ONE_PROGRAM:
        return
    texts = "\n".join(f.text for f in project.files)
    if not _LOADS.search(texts) and ".load(" not in texts:
        return
    look = lookup(project)
    if not _LOADS.search(texts) or not re.search(r"\b(save|dump)\w*\(", texts):
        return
    kinds = {k.node.name: k for code in look.codes for k in _kinds(code)}
    if not kinds:
        return
    saved = _saved(look)
    for code in look.codes:
        for made in code.of(ast.Assign):
            kind = kinds.get(last_name(made.value.func)) if isinstance(made.value, ast.Call) else None
            name = last_name(made.targets[0]) if len(made.targets) == 1 else ""
            if kind is None or not name or _kept(code, made, kind, name, saved) or not _applied(look, kind, name):
                continue
            yield _finding(code, made, kind, name, look)
            return


def _kinds(code: Syntax) -> Iterator[_Kind]:
    for owner in code.of(ast.ClassDef):
        bodies = [b for b in owner.body if isinstance(b, ast.FunctionDef)]
        first = {t.attr for b in bodies if b.name in ("__init__", "reset") for t in below(b)
                 if isinstance(t, ast.Attribute) and isinstance(t.ctx, ast.Store)}  # fmt: skip
        changed: set[str] = set()
        for body in bodies:
            if body.name in ("__init__", "reset", "load", "load_state_dict", "set_state", "__setstate__"):
                continue
            given = set(parameters(body)) - {"self"}
            if given:
                stored = [t for t in below(body) if isinstance(t, ast.Attribute) and isinstance(t.ctx, ast.Store)]
                changed |= {t.attr for t in stored if written(t.value) == "self"}
        kept = tuple(sorted(a for a in changed & first if _STATISTIC.search(a)))
        applies = frozenset(b.name for b in bodies if _normalises(b))
        buffers = any(isinstance(n, ast.Call) and last_name(n.func) == "register_buffer" for n in below(owner))
        if kept and applies and not (buffers and not any("Module" in last_name(b) for b in owner.bases)):
            yield _Kind(code, owner, kept, applies)


def _normalises(body: ast.FunctionDef) -> bool:
    """Whether a method returns `(x - self.mean) / ...` of its parameter."""
    given = set(parameters(body)) - {"self"}
    for node in below(body):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Name):
            own = any(isinstance(n, ast.Attribute) and _STATISTIC.search(n.attr) for n in below(node.right))
            inside = any(isinstance(n, ast.Return) for n in below(body))
            if node.left.id in given and own and inside and isinstance(_quotient(body, node), ast.BinOp):
                return True
    return False


def _quotient(body: ast.AST, difference: ast.AST) -> ast.AST | None:
    """The division that a difference is the top of."""
    for node in below(body):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
            top = node.left
            while isinstance(top, ast.Call) and isinstance(top.func, ast.Attribute):
                top = top.func.value
            if top is difference:
                return node
    return None


def _saved(look: Lookup) -> str:
    """The text of what is saved: arguments of saving calls, tables with states, functions that collect a state."""
    parts: list[str] = []
    for code in look.codes:
        for call in code.of(ast.Call):
            if last_name(call.func) in _SAVES:
                parts += [written(call), *(written(code.origin(a)) for a in call.args)]
        for table in code.of(ast.Dict):
            text = written(table)
            if "state_dict" in text or ".params" in text or "opt_state" in text:
                parts.append(text)
        for holder, stores in code.item_stores.items():
            if _SAVING.search(holder) or "state" in holder:
                parts += [written(s) for s in stores]
        for body in code.of(ast.FunctionDef):
            if _SAVING.search(body.name) and not body.name.startswith(("load", "restore", "from_")):
                parts.append(written(ast.Module(body.body, [])))
    return "\n".join(parts)


def _kept(code: Syntax, made: ast.Assign, kind: _Kind, name: str, saved: str) -> bool:
    """Whether the object is in what is saved: by its name, as a part of a saved model, or whole with its owner."""
    if re.search(rf"\b{re.escape(name)}\b", saved) or re.search(rf"\b{re.escape(kind.node.name)}\b", saved):
        return True
    owner = code.owner(made)
    inside = owner is not None and isinstance(made.targets[0], ast.Attribute)
    held = inside and owner is not None and any(last_name(b).endswith("Module") for b in owner.bases)
    whole = re.search(r"(torch\.save|pickle\.dump|dump)\((self|\w*(agent|trainer|model|net))\s*,", saved) is not None
    return (held and kind.is_module) or (inside and whole)


def _applied(look: Lookup, kind: _Kind, name: str) -> bool:
    """Whether the object normalises anything outside its own class."""
    for code in look.codes:
        for call in code.of(ast.Call):
            direct = last_name(call.func) == name and kind.applies & {"__call__", "forward"}
            method = isinstance(call.func, ast.Attribute) and call.func.attr in kind.applies and (
                last_name(call.func.value) == name)  # fmt: skip
            if (direct or method) and code.owner(call) is not kind.node:
                return True
    return False


def _finding(code: Syntax, made: ast.Assign, kind: _Kind, name: str, look: Lookup) -> Finding:
    load = next((f"{c.at(call)}" for c in look.codes for call in (*c.calls("load_state_dict"), *c.calls("load"))), "")
    return RULE.finding(
        f"{name} = {kind.node.name}(...) at {code.at(made)} normalises inputs by running statistics "
        f"({', '.join(kind.attributes[:3])}) that are not saved in the checkpoint and not restored with the model "
        f"(loaded at {load}): after a restart the normalisation begins anew",
        code.place(made),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "statistics", "what": kind.node.name},
    )
