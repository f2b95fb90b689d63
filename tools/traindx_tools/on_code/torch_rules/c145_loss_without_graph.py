"""backward() on a value that no longer depends on the model.

The graph ends at `.item()`, `.detach()`, `.data`, `argmax`, NumPy, `torch.tensor(loss)` and at everything computed
under `no_grad`. Torch refuses backward on such a value unless somebody sets `requires_grad` on it; then it runs,
fills the gradient of that one number and nothing else. The loss never moves and no error is raised.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.training import sent_backward
from traindx_tools.on_code.values import Bag, Operation, Symbol, Tensor, Value, parts

(RULE,) = pages("torch", ("C145",))

_FRESH = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.autograd.Variable", "torch.FloatTensor")
def check(project: Project) -> Iterator[Finding]:
    """Look at what every training loop sends backward."""
    for loop in project.training_loops:
        fresh = [p.event for p in loop.places if p.event.name in _FRESH]
        for place in loop.backwards:
            loss = sent_backward(place.event)
            if isinstance(loss, Tensor):
                yield from _judged(loop, place, loss, fresh)
            elif isinstance(loss, Operation) and loss.op == "item":
                yield _finding(place.event, place.event, "it is a Python number (.item(), float()), which has no graph")


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
    )
