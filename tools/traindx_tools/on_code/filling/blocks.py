"""What blocks of the trace are: windows, counts, frameworks, forward passes, context managers that are generators."""

from __future__ import annotations

import ast

from traindx_tools.on_code import lengths
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import Bag, Const, Instance, Symbol, Tensor, Thing, number, parts, unwrap, whole
from traindx_tools.program.conditions import Condition
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.timeline import Moment


def wrap(items: list[Act | Section]) -> None:
    """A context manager that is a generator: what stands behind its `yield` runs behind the body of the `with`."""
    for at in range(len(items) - 1, 0, -1):
        manager, body = items[at - 1], items[at]
        if not isinstance(manager, Section) or not isinstance(body, Section) or body.kind != "with":
            continue
        cut = _at_yield(manager.items)
        if manager.kind == "call" and cut is not None:
            before, after = (Section("call", manager.at, part, origin=manager.origin, has=manager.has) for part in cut)
            items[at - 1: at + 1] = [before, body, after]


def _at_yield(items: list[Act | Section]) -> tuple[list[Act | Section], list[Act | Section]] | None:
    """What stands before and behind a `yield`, which may stand in a `with` of its own."""
    cut: tuple[list[Act | Section], list[Act | Section]] | None
    for at, item in enumerate(items):
        if isinstance(item, Act):
            cut = ([], []) if item.moment is Moment.YIELD else None
        else:
            cut = _at_yield(item.items) if item.kind == "with" else None
        if cut is not None:
            return [*items[:at], *cut[0]], [*cut[1], *items[at + 1:]]
    return None


def gate(block: Block) -> Condition | None:
    """The window of `with accelerator.accumulate(model)`, where it is longer than one."""
    subject = block.subject
    if block.kind != "with" or not isinstance(subject, Symbol) or not subject.name.startswith("accumulate@"):
        return None
    steps = subject.parent.kwargs.get("gradient_accumulation_steps") if isinstance(subject.parent, Thing) else None
    if steps is None or number(steps) == 1:
        return None
    return Condition("every", key=("window", whole(number(steps)) or steps), shift=1)


def is_forward(block: Block) -> bool:
    """Whether a block is the forward pass of a module of the project."""
    info = block.function
    return block.kind == "call" and info is not None and info.owner is not None and info.name in (
        "forward", "__call__") and info.owner.is_module  # fmt: skip


def may_suspend(event: Event) -> bool:
    """Whether a decorator that is not known, or a framework without such a state, decides if autograd records here."""
    if event.function is not None and event.function.unknown_decorator:
        return True
    owner = unwrap(event.receiver) if event.receiver is not None else None
    if isinstance(owner, Thing):
        return owner.type.startswith("flax.")
    if isinstance(owner, Instance):
        return any(b.startswith("flax.") for b in owner.klass.info.foreign_bases)
    return "flax" in event.file.text and "torch" not in event.file.text


def turns(block: Block) -> int | None:
    """How often a loop runs where nobody changes the defaults of options."""
    return whole(lengths.turns(block.subject, block.count))


def count(block: Block) -> int | None:
    """How often a loop runs, where the text fixes it: once, where it is left at the end of its first turn."""
    if isinstance(block.node, (ast.For, ast.While)) and any(isinstance(s, (ast.Break, ast.Return))
                                                            for s in block.node.body):  # fmt: skip
        return 1
    subject = block.subject
    if isinstance(subject, Thing) and subject.type == "enumerate" and subject.args:
        subject = subject.args[0]
    times = block.count if block.count is not None else subject.size if isinstance(subject, Bag) else None
    return whole(number(times)) if isinstance(times, Const) and times.fixed else None


def framework(block: Block) -> str:
    """What calls a block: "lightning", "trainer", "" for the program itself."""
    if block.framework == "training_step":
        owner = block.function.owner if block.function is not None else None
        return "lightning" if owner is not None and owner.derives("LightningModule") else "trainer"
    return "trainer" if block.framework else ""


def is_unused(event: Event) -> bool:
    """Whether nobody takes the result of a call: it is a statement, or bound to `_`."""
    above = syntax(event.file).parent(event.node)
    return isinstance(above, ast.Expr) or (isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name)
                                           and above.targets[0].id == "_")


def is_repeated(event: Event, loop: Block | None) -> bool:
    """Whether the innermost loop only counts: what the module is given does not change in it."""
    if loop is None or not isinstance(loop.subject, Thing) or loop.subject.type != "range":
        return False
    first, last = loop.line, getattr(loop.node, "end_lineno", None) or loop.line
    given = (*event.args, *event.kwargs.values())
    made = [a.site for a in given if isinstance(a, Tensor)]
    inside = any(s is not None and s.path == loop.file.path and first <= s.line <= last for s in made)
    varies = any(isinstance(p, Symbol) and p.role in ("index", "item", "call") for a in given for p in parts(a)
                 if not isinstance(a, Tensor))
    return bool(given) and not inside and not varies
