"""Characters that are numbered by their place in a text, and the class that a CTC loss keeps for none of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Const, Operation, Symbol, Tensor, Thing, Value, number, whole
from traindx_tools.program.parts import Alphabet, BlankUse


def blank_uses(project: Project) -> Iterator[BlankUse]:
    """Every CTC loss of which the blank is known."""
    for event in project.calls("ctc_loss"):
        layer = event.receiver
        given = layer.argument(0, "blank") if isinstance(layer, Thing) else event.argument(4, "blank")
        blank = whole(number(given or event.kwargs.get("blank_id") or Const(0)))
        scores = event.argument(0, "log_probs")
        shape = scores.shape if isinstance(scores, Tensor) else None
        if isinstance(scores, Tensor) and shape is None:  # axes were turned after the log-softmax
            made = [e.result for e in project.calls("log_softmax") if e.site == scores.kind_site]
            shape = made[0].shape if made and isinstance(made[0], Tensor) else None
        if blank is not None:
            yield BlankUse(event.spot, blank, shape.dims[-1] if shape is not None and shape.dims else None)


def alphabets(project: Project) -> Iterator[Alphabet]:
    """Every `{c: i for i, c in enumerate(characters)}` whose characters the program fixes."""
    told: set[str] = set()
    for event in (e for e in project.events if e.kind == "numbering"):
        entries, start = _entries(event.receiver), _start(event.args[0])
        made = event.node if isinstance(event.node, ast.DictComp) else None
        if made is None or start is None or not entries or str(event.site) in told:
            continue
        told.add(str(event.site))
        target = made.generators[0].target
        if isinstance(target, ast.Tuple) and written(target.elts[-1]) == written(made.key):
            yield Alphabet(event.spot, written(made.generators[0].iter), entries, start + _added(project, event))


def _entries(value: Value | None) -> tuple[str, ...]:
    """The texts of a list, up to the first that is not known."""
    if isinstance(value, Const):
        return tuple(value.value) if isinstance(value.value, str) else ()
    found: list[str] = []
    for item in value.items if isinstance(value, Bag) else ():
        if not (isinstance(item, Const) and isinstance(item.value, str)):
            break
        found.append(item.value)
    return tuple(found)


def _start(value: Value) -> int | None:
    """The number of the first entry: 0 for the counter, 1 for the counter plus 1."""
    if isinstance(value, Symbol):
        return 0 if value.role == "index" else None
    if isinstance(value, Operation) and value.op == "+" and len(value.operands) == 2:
        known = [whole(number(o)) for o in value.operands]
        inner = [_start(o) for o, k in zip(value.operands, known, strict=True) if k is None]
        more = [k for k in known if k is not None]
        return inner[0] + more[0] if len(more) == 1 and inner and inner[0] is not None else None
    return None


def _added(project: Project, event: Event) -> int:
    """What is added wherever the table is read: `table[c] + 1`."""
    statement = syntax(event.file).statement(event.node)
    name = last_name(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    return int(bool(name) and any(f.mentions(re.compile(rf"\b{re.escape(name)}\[[^\]\n]+\]\s*\+\s*1\b"))
                                  for f in project.files))
