"""A learning-rate schedule is stepped as often as its length, its milestones or its factor mean.

A schedule whose length counts epochs, stepped after every batch, ends within the first epoch or repeats; one whose
length counts all batches, stepped once an epoch, hardly moves; one as long as a single epoch of several leaves the
others without a rate. A factor that is meant for an epoch leaves nothing of the rate after some hundred batches. Where
it is stepped before the optimizer, its first value is skipped. A scheduler that is built after the optimizer's state
was loaded writes the first rate back; one that accelerate prepared is stepped once for each process.

A decay that counts from the beginning (`lr0 / (1 + k * epoch)`, `lr0 * gamma ** epoch`) is meant for the initial rate.
Applied to the rate of the step before, and stored again, the factors multiply up: after ten epochs of
1 / (1 + 0.15 * epoch) the rate is 52 times lower than it should be. A constant factor in every step does so too.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.constants import ScheduleUse
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("schedules", ("C110", "C233"))
GONE = 1e-5
"""Share of the rate with which nothing is learned any more."""
STRONG, SURE = 0.99, 0.97
"""Factors from which on one is meant for epochs: 0.99 leaves 4e-5 after 1000 batches, 0.97 6e-14."""
_ENDS = ("get_linear_schedule_with_warmup", "get_cosine_schedule_with_warmup", "get_scheduler", "PolynomialLR",
         "get_polynomial_decay_schedule_with_warmup", "CosineAnnealingLR", "cosine_decay_schedule", "linear_schedule",
         "warmup_cosine_decay_schedule", "polynomial_schedule")
"""Schedules that end: LinearLR is usually a warm-up. CosineAnnealingLR of one epoch may be a cycle on purpose."""

_TURN = ("CosineAnnealingLR", "get_cosine_schedule_with_warmup")
"""Those that rise again beyond their end."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every place where a schedule is stepped."""
    for product in program.rate_products:
        why = "by a factor that depends on a loop's counter" if product.by_counter else "in every training step"
        yield Breach("C233", f"{product.text} at {product.at} multiplies the current {product.rate} {why}: the factors "
                     "of all steps so far multiply up", product.at,
                     measured={"kind": "compounds" if product.by_counter else "each step", "rate": product.rate})
    for use in program.schedule_uses:
        if use.loaded is not None:
            yield Breach("C110", f"{use.kind} is built at {use.made} after the optimizer's state was loaded at line "
                         f"{use.loaded.line}: its constructor sets the learning rate back to the schedule's start, and "
                         "its own state is not loaded", use.made,
                         measured={"kind": "built after the optimizer's state was loaded", "scheduler": use.kind})
        if use.processes is not None:
            certain = use.processes is Known.DERIVED
            yield Breach("C110", f"The {use.kind} built at {use.made} for {use.length} steps is prepared by "
                         "accelerate, whose wrapper steps it num_processes times for each optimizer step: it ends at "
                         "1/num_processes of training", use.made, use.processes,
                         {"kind": "prepared scheduler, length of one process", "length": use.length},
                         None if certain else Severity.MEDIUM)
        if use.once_a == "never":
            yield Breach("C110", f"{use.kind} built at {use.made} is never stepped, its optimizer is at {use.at}: the "
                         "rate stays at its first value", use.made, measured={"kind": "never", "scheduler": use.kind})
        if use.every is not None:
            ends = (f"the number of micro-batches, is stepped once for each {use.every:g} of them at {use.at}: it gets "
                    f"to 1/{use.every:g} of its length" if use.every > 1 else f"the number of windows of "
                    f"{1 / use.every:g} batches, is stepped after every batch at {use.at}: it ends that much too early")
            yield Breach("C110", f"{use.kind} built at {use.made} for {use.length} steps, {ends}", use.made,
                         measured={"kind": "window", "window": use.every})
        yield from _length(use)
        if use.once_a == "batch":
            yield from _milestones(use)
            yield from _factor(use)
        if use.before is not None:
            yield Breach("C110", f"The scheduler is stepped at {use.at} before the optimizer at line "
                         f"{use.before.line}: the first value of the schedule is skipped", use.at, Known.DERIVED,
                         {"kind": "before the optimizer", "optimizer_line": use.before.line}, Severity.MEDIUM)


def _length(use: ScheduleUse) -> Iterator[Breach]:
    built = f"{use.kind} built at {use.made}"
    measured = {"length": use.length, "scheduler": use.kind}
    if use.counts == "passes" and use.once_a == "batch" and not use.few:
        yield Breach("C110", f"{built} for {use.length} steps, the number of epochs, is stepped after every batch at "
                     f"{use.at}: it reaches its end within one epoch or repeats", use.made if use.asked else use.at,
                     measured={"kind": "per batch, length in epochs", **measured})
    if use.counts in ("batches", "batches of a pass") and use.once_a == "epoch":
        yield Breach("C110", f"{built} for {use.length} steps is stepped only once for each pass over the batches "
                     f"({use.at}): the rate hardly moves", use.at,
                     measured={"kind": "per epoch, length in batches", **measured})
    if use.counts == "batches of a pass" and use.once_a != "epoch" and use.kind in _ENDS and 1 not in use.passes:
        epochs = f"{use.passes[-1]:g} epochs" if use.passes[-1] is not None else "epochs"
        again = " and rises again" if use.kind in _TURN else ""
        yield Breach("C110", f"{built} is as long as one pass over the loader, and it is stepped in every pass of a "
                     f"loop over {epochs} ({use.at}): after the first epoch the rate is at its end{again}", use.made,
                     Known.GUESSED if use.kind == "CosineAnnealingLR" else Known.DERIVED,
                     {"kind": "length of one epoch", "scheduler": use.kind, "epochs": use.passes[-1]})


def _milestones(use: ScheduleUse) -> Iterator[Breach]:
    epochs = next((n for n in use.passes if n is not None), None)
    if use.last is not None and epochs is not None and 1 < use.last < epochs and not use.few:
        yield Breach("C110", f"{use.kind} built at {use.made}, whose last milestone is {use.last:g}, is stepped after "
                     f"every batch at {use.at} in {epochs:g} epochs: it decays in the first epochs", use.at,
                     measured={"kind": "per batch, milestones in epochs", "milestone": use.last, "epochs": epochs})


def _factor(use: ScheduleUse) -> Iterator[Breach]:
    gamma = use.factor
    if gamma is not None and 0 < gamma < STRONG and use.steps is not None and gamma**use.steps < GONE:
        yield Breach("C110", f"{use.kind} with gamma {gamma:g} built at {use.made} is stepped after every batch at "
                     f"{use.at}: the rate falls to {gamma**1000:.1e} of itself in 1000 batches", use.at,
                     Known.DERIVED if gamma <= SURE else Known.GUESSED,
                     {"kind": "per batch, factor of an epoch", "gamma": gamma})
