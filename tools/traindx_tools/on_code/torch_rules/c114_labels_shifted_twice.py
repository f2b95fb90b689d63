"""Next-token labels are shifted twice.

A causal language model's labels move by one position against its logits. Done once in the data or the model and again
in the loss (a helper that shifts, or a Hugging Face model, which shifts inside when it is given `labels`), the model
learns to predict the token after the next: the loss falls, and text that it generates skips tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Symbol, Tensor, Thing, Value, parts

(RULE,) = pages("torch", ("C114",))
_CAUSAL = ("LMHeadModel", "ForCausalLM")


def check(project: Project) -> Iterator[Finding]:
    """Look at losses over tokens and at models that shift by themselves."""
    for event in project.calls("cross_entropy", "softmax_cross_entropy_with_integer_labels"):
        labels = event.argument(1, "target") or event.kwargs.get("labels")
        if labels is not None and _shifts(labels) >= 2:
            yield _finding(
                event,
                "its labels lost their first position twice, so position t is compared with token t + 2",
            )
    for event in project.calls("__call__"):
        model, labels, ids = event.receiver, event.kwargs.get("labels"), event.kwargs.get("input_ids")
        if not isinstance(model, Thing) or not model.short.endswith(_CAUSAL) or labels is None or ids is None:
            continue
        if _shifts(labels) >= 1 and _shifts(ids) == 0:
            yield _finding(event, f"{model.short} shifts labels itself, and these are shifted already")


def _shifts(value: Value) -> int:
    if isinstance(value, Tensor):
        return 2 if "first_dropped_twice" in value.tags else int("without_first" in value.tags)
    return sum(1 for p in parts(value) if isinstance(p, Symbol) and p.role == "item" and "without_first" in p.name)


def _finding(event: Event, why: str) -> Finding:
    return RULE.finding(
        f"Labels are shifted twice before {event.method if event.method != '__call__' else 'the model'} at "
        f"{event.file.path}:{event.line}: {why}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "shift"},
    )
