"""load_state_dict(strict=False) and nobody looks at what was missing.

With `strict=False` keys that do not fit are skipped without a word: a prefix too many, and not a single weight is
loaded. A model that was saved inside DataParallel or DistributedDataParallel has such a prefix ("module."). The call
returns the missing and the unexpected keys; somebody has to look at them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written

(RULE,) = pages("state", ("C206",))


def check(project: Project) -> Iterator[Finding]:
    """Look at every statement that loads and drops the answer."""
    look = lookup(project)
    saves = any(f.mentions(_SAVED) for f in project.files)
    for file in project.files:
        if "strict=False" not in file.text.replace(" ", ""):
            continue
        code = syntax(file)
        for call in code.calls("load_state_dict"):
            strict = argument(call, 1, "strict")
            off = isinstance(strict, ast.Constant) and strict.value is False
            if not off or not isinstance(code.parent(call), ast.Expr):
                continue
            wrapped = _wrapped_elsewhere(project, code, call)
            if wrapped is not None:
                yield _prefixed(code, call, *wrapped)
            elif _from_file(look, code, call.args[0] if call.args else None, _STEPS):
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} skips keys that do not fit and drops the list of them: "
                    "weights may stay at their initialisation unseen",
                    code.place(call),
                    file.path,
                    bearing=Bearing.SIGN,
                    severity=Severity.INFO if saves else None,
                    measured={"kind": "strict"},
                )


_SAVED = re.compile(r"torch\.save\(|save_file\(|save_pretrained\(")
"""The program writes checkpoints itself: its own keys fit, and a remark is enough."""
_STEPS = 6
_READS = re.compile(r"^(torch\.load|torch\.hub\.load_state_dict_from_url|safetensors\.torch\.load_file|"
                    r"huggingface_hub\.load_torch_model|torch\.utils\.model_zoo\.load_url)$")  # fmt: skip


def _from_file(look: Lookup, code: Syntax, node: ast.expr | None, left: int) -> bool:
    """Whether a state dict was read from a file as it is: nothing was taken out of it on purpose."""
    if node is None or left <= 0:
        return False
    if isinstance(node, ast.Name) and _thinned(code, node):
        return False
    where, made = look.origin(code, node)
    if isinstance(made, (ast.DictComp, ast.ListComp)):
        return not any(g.ifs for g in made.generators) and any(
            _from_file(look, where, g.iter, left - 1) for g in made.generators)  # fmt: skip
    if isinstance(made, ast.Subscript):
        return _from_file(look, where, made.value, left - 1)
    if isinstance(made, ast.IfExp):
        return _from_file(look, where, made.body, left - 1) or _from_file(look, where, made.orelse, left - 1)
    if not isinstance(made, ast.Call):
        return False
    if _READS.match(where.qualified(made.func)):
        return True
    if isinstance(made.func, ast.Attribute) and made.func.attr in ("get", "items", "copy", "state_dict"):
        return made.func.attr != "state_dict" and _from_file(look, where, made.func.value, left - 1)
    return False


def _thinned(code: Syntax, name: ast.Name) -> bool:
    """Whether keys are deleted, popped or asked for by name: what is missing is known."""
    scope = code.scope(name)
    dropped = [t for d in code.inside(scope, ast.Delete) for t in d.targets]
    return any(isinstance(t, ast.Subscript) and written(t.value) == name.id for t in dropped) or any(
        isinstance(c.func, ast.Attribute) and written(c.func.value) == name.id
        for c in code.inside(scope, ast.Call) if last_name(c.func) == "pop")  # fmt: skip


_WRAPPERS = frozenset({"DataParallel", "DistributedDataParallel", "DDP"})
_STRIPPED = re.compile(
    r"""["']module\.|\.module\b|consume_prefix_in_state_dict|unwrap_model|removeprefix\(|getattr\([^\n]*["']module["']"""
)
"""Somebody takes the prefix off, or saves what is inside the wrapper."""


def _wrapped_elsewhere(project: Project, here: Syntax, load: ast.Call) -> tuple[Syntax, ast.Call, ast.Call] | None:
    """The wrapper whose state dict is saved, where what is loaded may be without it and nobody takes "module." off."""
    if any(f.mentions(_STRIPPED) for f in project.files):
        return None
    receiver = _name(load.func.value) if isinstance(load.func, ast.Attribute) else ""
    codes = [syntax(f) for f in project.files]
    always = {name for code in codes for name, _, sure in _wraps(code) if sure}
    if receiver in always and not _bare(here, load):
        return None
    for code in codes:
        for name, wrapper, _ in _wraps(code):
            for saved in (c for other in codes for c in other.calls("state_dict")):
                mine = isinstance(saved.func, ast.Attribute) and _name(saved.func.value) == name
                if mine and not any(_bare(other, saved) for other in codes if other.parent(saved) is not None):
                    return code, wrapper, saved
    return None


def _bare(code: Syntax, load: ast.Call) -> bool:
    """Whether the model that is loaded into is made in the same function, and not wrapped there."""
    model = load.func.value if isinstance(load.func, ast.Attribute) else None
    made = code.bindings(model) if isinstance(model, ast.Name) else []
    return bool(made) and all(
        isinstance(value, ast.Call) and code.scope(statement) is code.scope(load)
        and not any(isinstance(n, ast.Call) and last_name(n.func) in _WRAPPERS for n in below(value))
        for statement, value in made
    )


def _same_file(code: Syntax, load: ast.Call, other: Syntax, saved: ast.Call) -> bool:
    """Whether what is loaded is certainly what was saved: one path, by the same name or text."""
    reads = {written(c.args[0]) for c in code.calls("load") if c.args and code.scope(c) is code.scope(load)}
    writes = {written(to) for c in other.calls("save") if other.scope(c) is other.scope(saved)
              and (to := argument(c, 1, "f")) is not None}  # fmt: skip
    return len(reads) == 1 and reads == writes


def _wraps(code: Syntax) -> Iterator[tuple[str, ast.Call, bool]]:
    """Names that hold a wrapped model, where it is wrapped, and whether it always is."""
    for call in code.calls(*_WRAPPERS):
        statement = code.statement(call)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            branches = [a for a in code.above(call) if isinstance(a, (ast.If, ast.IfExp))]
            yield _name(statement.targets[0]), call, not branches


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _prefixed(code: Syntax, load: ast.Call, other: Syntax, wrapper: ast.Call, saved: ast.Call) -> Finding:
    certain = _bare(code, load) and _same_file(code, load, other, saved)
    where = "the model is not wrapped here" if certain else "where the model is not wrapped"
    return RULE.finding(
        f"{written(wrapper)} at {other.at(wrapper)} is saved as it is, so its keys begin with \"module.\"; "
        f"{written(load)} at {code.at(load)} skips all of them ({where}), and drops the list: no weight is loaded",
        code.place(load), code.file.path, severity=Severity.HIGH,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        measured={"kind": "prefix"},
    )  # fmt: skip
