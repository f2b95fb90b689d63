"""backward() on a value that no longer depends on the model.

The graph ends at `.item()`, `.detach()`, `.data`, `argmax`, NumPy, `torch.tensor(loss)` and at everything computed
under `no_grad`. Torch refuses backward on such a value unless somebody sets `requires_grad` on it; then it runs,
fills the gradient of that one number and nothing else. The loss never moves and no error is raised. So it is with a
network's output put into a new tensor before the loss: `torch.tensor(model(x), requires_grad=True)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.rewrapped import rewrapped
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.training import sent_backward
from traindx_tools.on_code.ungraphed_steps import ungraphed
from traindx_tools.on_code.values import Bag, Operation, Symbol, Tensor, Value, parts
from traindx_tools.rules import Rule

RULE = Rule(
    id="C145",
    name="loss-without-graph",
    title="The loss does not depend on the model any more",
    severity=Severity.CRITICAL,
    sees="The value that backward is called on, followed back: cut by detach, item, argmax, no_grad or a new tensor.",
    matters="No parameter ever gets a gradient.",
    alike=("parameters that are frozen", "an optimizer over other parameters"),
    confirm=("print([p.grad is None for p in model.parameters()])", "print(loss.grad_fn)"),
)

_FRESH = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.autograd.Variable", "torch.FloatTensor")
_NUMBERS = frozenset({"item", "numpy", "tolist", "cpu", "argmax"})


def check(project: Project) -> Iterator[Finding]:
    """Look at what every training loop sends backward."""
    told: set[tuple[str | None, int | None]] = set()
    for finding in (*_sent(project), *_rewrapped(project), *_returned(project)):
        place = finding.where.file, finding.where.line
        if finding.measured.get("kind") != "new leaf" or place not in told:
            yield finding
        told.add(place)


def _sent(project: Project) -> Iterator[Finding]:
    for loop in project.training_loops:
        fresh = [p.event for p in loop.places if p.event.name in _FRESH]
        for place in loop.backwards:
            loss = sent_backward(place.event)
            if isinstance(loss, Tensor):
                yield from _judged(loop, place, loss, fresh)
            elif isinstance(loss, Operation) and loss.op == "item":
                yield _finding(place.event, place.event, "it is a Python number (.item(), float()), which has no graph")


def _rewrapped(project: Project) -> Iterator[Finding]:
    """Outputs that are made into new leaves before the loss."""
    for file in project.files:
        if "requires_grad" not in file.text:
            continue
        code = syntax(file)
        for one in rewrapped(code):
            made, network = code.file.segment(one.leaf), code.file.segment(one.network)
            goal = "is sent backward" if one.loss is None else f"goes into the loss at line {one.loss.lineno}"
            yield RULE.finding(
                f"{made} at {code.at(one.leaf)} puts what {network} gave into a new tensor, which {goal}: backward "
                "fills the gradient of that tensor, and the network gets none",
                code.place(one.leaf),
                file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "new leaf", "network_line": one.network.lineno},
                patch=_unwrapped(code, one.leaf),
            )


def _returned(project: Project) -> Iterator[Finding]:
    """Losses that a framework sends back, whose model outputs are all computed under no_grad."""
    if not any("training_step" in f.text or "compute_loss" in f.text for f in project.files):
        return
    for one in ungraphed(lookup(project)):
        code, forward = one.code, one.forward
        change = Change(code.file, "let autograd record the forward pass")
        last = forward is one.block.body[-1] and len(one.block.body) > 1
        yield RULE.finding(
            f"{written(forward)[:80]} at {code.at(forward)} stands under no_grad, and the loss that {one.step.name} "
            f"returns at line {one.loss.lineno} depends on no other forward pass: backward finds no graph to the model",
            code.place(forward),
            code.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "returned", "step": one.step.name},
            patch=change.move_after(forward, one.block).patches() if last else (),
        )


def _unwrapped(code: Syntax, leaf: ast.expr) -> tuple[Patch, ...]:
    """The output itself, where nothing but one new tensor stands around it."""
    if not isinstance(leaf, ast.Call) or len(leaf.args) != 1 or last_name(leaf.func) not in ("tensor", "Variable"):
        return ()
    inner = leaf.args[0]
    if isinstance(inner, ast.Call) and last_name(inner.func) in ("detach", "clone") and \
            isinstance(inner.func, ast.Attribute):  # fmt: skip
        inner = inner.func.value
    plain = isinstance(inner, ast.Name) or (isinstance(inner, ast.Call) and last_name(inner.func) not in _NUMBERS)
    return Change(code.file, "keep the graph").unwrap(leaf, inner).patches() if plain else ()


def _judged(loop: TrainingLoop, place: Place, loss: Tensor, fresh: list[Event]) -> Iterator[Finding]:
    made = next((e for e in fresh if _becomes(e.result, loss)), None)
    event = place.event
    if made is not None and _from_loss(made):
        yield _finding(event, made, f"a new tensor is made from the loss at line {made.line}")
        return
    cut = loss.grad is False or (loss.grad is None and _of_cut_outputs(loop, loss))
    if not cut or not loss.models or event.grad is False:
        return
    leaves = [p for p in loop.of("requires_grad_") if isinstance(p.event.receiver, Tensor)]
    if any(not p.event.receiver.models for p in leaves if isinstance(p.event.receiver, Tensor)):
        return  # the gradient of an input is wanted
    if any(p.event.kind == "store" and p.event.name == "attribute.requires_grad" and not _of_model(p.event.receiver)
           for p in loop.places):  # fmt: skip
        return
    yield _finding(event, event, "it was detached, or computed without gradients or from an argmax")


def _of_model(value: Value | None) -> bool:
    """Whether a model computed it: `requires_grad = True` on such a value papers the cut over."""
    return isinstance(value, Tensor) and bool(value.models)


def _of_cut_outputs(loop: TrainingLoop, loss: Tensor) -> bool:
    """Whether it is a loss of torch between outputs that are cut and what a loader gave, which has no graph."""
    made = [p.event for p in loop.places if p.event.kind == "call" and p.event.result == loss and "loss" in loss.tags
            and p.event.method != "requires_grad_"]  # fmt: skip
    given = [(*e.args[:2], *(e.kwargs[k] for k in ("input", "target") if k in e.kwargs)) for e in made]
    return bool(given) and all(
        any(_of_model(v) for v in values) and all(map(_graphless, values))
        for values in given
    )


def _graphless(value: Value) -> bool:
    """Whether it has no graph: cut, or read from a loader."""
    if isinstance(value, Tensor):
        return value.grad is False or (value.grad is None and not value.models and "batch" in value.tags)
    return any(isinstance(p, Symbol) and p.role == "iteration" and p.name == "batch" for p in parts(value))


def _becomes(result: Value | None, loss: Tensor) -> bool:
    """Whether a new tensor is the loss, or what the loss is the mean or sum of."""
    return result is loss or (isinstance(result, Tensor) and result.site is not None and not loss.models and (
        result.site == loss.site or result.site in loss.parents))  # fmt: skip


def _from_loss(made: Event) -> bool:
    """Whether the new tensor holds numbers taken out of tensors: `.item()`, `.data`, `.detach()`, a loss itself."""
    first = made.args[0] if made.args else None
    if isinstance(first, Tensor):
        return "reduced" in first.tags or bool(first.models)
    if isinstance(first, Bag):
        return bool(first.items) and all(getattr(i, "op", "") == "item" for i in first.items)
    return getattr(first, "op", "") == "item"


def _finding(event: Event, place: Event, why: str) -> Finding:
    return RULE.finding(
        f"backward() at {event.file.path}:{event.line} is called on a value without a graph to the model: {why}",
        location(place),
        place.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "cut", "backward_line": event.line},
        patch=graph.stacked(place.file, place.node),
    )
