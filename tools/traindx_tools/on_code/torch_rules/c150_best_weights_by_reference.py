"""The best weights are kept by reference.

`state_dict()` returns the live tensors. `best = model.state_dict()` at the best epoch goes on changing with the model,
so that loading it at the end changes nothing: the "best" model is the last one. A deep copy, or a file, keeps them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.trace import Block, Place, walk
from traindx_tools.on_code.values import Instance, Symbol, Thing, Value

(RULE,) = pages("state", ("C150",))
_BEST = re.compile(r"best|backup|snapshot|saved|kept|stored|good", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every state that is loaded back into the model it came from."""
    told: set[tuple[str | None, int | None]] = set()
    for root in project.roots:
        if {"state_dict", "load_state_dict"} <= root.methods:
            for found in _in_root(root):
                told.add((found.where.file, found.where.line))
                yield found
    for file in project.files:
        if "load_state_dict" in file.text:
            yield from (f for f in _kept_in_an_object(syntax(file)) if (f.where.file, f.where.line) not in told)


def _kept_in_an_object(code: Syntax) -> Iterator[Finding]:
    """`self.best = {k: v for k, v in self.model.state_dict().items()}` in one method, loaded back in another one."""
    for load in code.calls("load_state_dict"):
        kept = load.args[0] if load.args else None
        owner = code.owner(load)
        if owner is None or not isinstance(kept, ast.Attribute) or not isinstance(load.func, ast.Attribute):
            continue
        values = [(s, v) for s, v in code.bindings(kept) if not (isinstance(v, ast.Constant) and v.value is None)]
        taken = [(s, shallow(v)) for s, v in values]
        for statement, state in taken:
            if state is None or not isinstance(state.func, ast.Attribute) or len(values) != 1:
                continue
            same = written(state.func.value) == written(load.func.value)
            between = code.function(statement) is not code.function(load)
            if same and between and (_BEST.search(written(kept)) or _compares(code, statement)):
                yield _reference(code, state, statement, load)


def shallow(value: ast.expr) -> ast.Call | None:
    """The call of `state_dict()` whose tensors a value holds themselves: itself, or in another dictionary."""
    if isinstance(value, ast.DictComp):
        over = value.generators[0]
        items = over.iter.func.value if isinstance(over.iter, ast.Call) and isinstance(
            over.iter.func, ast.Attribute) and over.iter.func.attr == "items" else None  # fmt: skip
        plain = isinstance(over.target, ast.Tuple) and written(over.target.elts[-1]) in (
            written(value.value), re.sub(r"\.(detach\(\)|data)$", "", written(value.value)))  # fmt: skip
        return shallow(items) if items is not None and plain and len(value.generators) == 1 else None
    if not isinstance(value, ast.Call):
        return None
    name = last_name(value.func)
    if name == "state_dict":
        return value
    if name in ("dict", "OrderedDict", "copy") and len(value.args) == 1:
        return shallow(value.args[0])
    return shallow(value.func.value) if name == "copy" and isinstance(value.func, ast.Attribute) else None


def _compares(code: Syntax, statement: ast.AST) -> bool:
    """Whether the state is kept where a score is better than the best one."""
    return any(isinstance(up, ast.If) and any(isinstance(n, ast.Compare) for n in below(up.test))
               for up in code.above(statement))  # fmt: skip


def _reference(code: Syntax, state: ast.Call, statement: ast.AST, load: ast.Call) -> Finding:
    return RULE.finding(
        f"{code.file.segment(statement)} at {code.at(state)} keeps references to the live weights; loading them back "
        f"at line {load.lineno} changes nothing: each tensor has to be copied (v.clone(), copy.deepcopy)",
        code.place(state),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "reference", "load_line": load.lineno},
    )


def _in_root(root: Block) -> Iterator[Finding]:
    places = [p for p in walk(root, frozenset({"state_dict", "load_state_dict"})) if p.event.kind == "call"]
    for load in places:
        if load.event.method != "load_state_dict" or not load.event.args:
            continue
        state = load.event.args[0]
        for taken in places:
            taken_before = taken.event.method == "state_dict" and taken.order < load.order
            if not taken_before or taken.event.result != state or not isinstance(state, Symbol):
                continue
            if taken.loops and _same(taken, load) and _leaves(taken, load):
                yield _finding(taken, load)
                break


def _same(taken: Place, load: Place) -> bool:
    one: Value | None = taken.event.receiver
    other: Value | None = load.event.receiver
    return one is other if isinstance(one, (Thing, Instance)) else one == other and isinstance(one, Symbol)


def _leaves(taken: Place, load: Place) -> bool:
    """Whether the loop goes on changing the weights before the state is used."""
    inner = taken.loops[-1]
    return inner not in load.path and "step" in inner.methods


def _finding(taken: Place, load: Place) -> Finding:
    event = taken.event
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} keeps references to the live weights; "
        f"loading them back at line {load.event.line} changes nothing: copy.deepcopy is needed where they are kept",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "reference", "load_line": load.event.line},
    )
