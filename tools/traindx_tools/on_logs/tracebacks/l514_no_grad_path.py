"""backward() was called on a loss that no parameter reaches.

"does not require grad and does not have a grad_fn": the loss was detached, made under no_grad, passed through argmax,
round, numpy or .item(), or every parameter is frozen. With gradient checkpointing a frozen base model needs inputs that
require gradients.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 40

RULE = Rule(
    id="L514",
    name="no-grad-path",
    title="No gradient path from the loss to a parameter",
    severity=Severity.CRITICAL,
    sees="'does not require grad and does not have a grad_fn', optimizers over nothing, gradients that are None.",
    matters="Nothing can be learned.",
    alike=("A graph that was freed (L511).", "Gradients that are exactly zero (L104)."),
    confirm=("Walk loss.grad_fn.next_functions towards the inputs and see where it ends.",
             "sum(p.requires_grad for p in model.parameters()) and a search for no_grad, detach, .data, .item(), "
             "argmax."),
)

_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("detached", r"does not require grad and does not have a grad_fn",
     "backward was called on a loss that has no graph: detached, made under no_grad, or every parameter is frozen"),
    ("unused-tensor", r"appears to not have been used in the graph",
     "a gradient was asked for a tensor that the loss does not depend on"),
    ("empty-optimizer", r"optimizer got an empty parameter list", "the optimizer was given no parameters"),
    ("non-leaf", r"can't optimize a non-leaf Tensor", "the optimizer was given a tensor that is no parameter"),
    ("needs-detach", r"Can't call numpy\(\) on Tensor that requires grad", "a tensor with a graph was turned into "
                                                                           "NumPy"),
    ("all-none", r"No gradients? (?:provided|were) for any (?:variable|parameter)", "no parameter received a gradient"),
    ("ddp-frozen", r"DistributedDataParallel is not needed when a module doesn't have any parameters that require "
                   r"a gradient",
     "every parameter of the module is frozen"),
))


def claims(event: ErrorEvent) -> bool:
    """Autograd's and optimizers' messages about missing gradients."""
    return event.kind == "exception" and any(p.search(event.message) for _, p, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        kind, words = next((k, w) for k, p, w in _KINDS if p.search(incident.text))
        yield report(RULE, incident, words, bearing=Bearing.SIGN, measured={"kind": kind},
                     surfaced="the graph was cut before it" if kind == "detached" else "")
