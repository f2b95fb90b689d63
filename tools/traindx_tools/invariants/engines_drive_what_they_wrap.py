"""What an engine wraps it drives, and what it drives it has to wrap.

An Accelerator holds back the optimizer that it prepared until the window of `accumulate()` is full, divides the loss by
the window and multiplies it by the loss scale of fp16. A plain optimizer steps in every micro-batch, or with scaled
gradients; a loss that calls its own backward is neither divided nor scaled; a window that no loop opens divides the
loss and holds nothing back. A loader that is not prepared gives every process the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.driving import EngineLoop, Left
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("frameworks", ("C392", "C284", "C320"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every loop that an engine drives."""
    for one in program.own_losses:
        yield Breach(
            "C392", f"compute_loss at {one.at} gives the mean of a micro-batch, and the Trainer takes it for divided: "
            f"the model takes num_items_in_batch, so nothing divides by the {one.window} micro-batches of an update "
            f"({one.said}); loss and gradients are {one.window} times as large", one.at,
            measured={"kind": "own loss", "window": one.window})
    told: set[str] = set()
    for loop in program.engine_loops:
        if loop.own is not None:
            yield from _left_out(loop, told)
        if loop.clip is not None and loop.clip not in told:
            told.add(loop.clip)
            yield Breach("C320", f"The clip at {loop.clip} goes past the {loop.engine} of {loop.made}: the gradients "
                         f"still hold the loss scale of {loop.precision}: the bound is as much too small", loop.clip,
                         Known.DERIVED, {"kind": "clip", "matters": "fp16"})
        if loop.trains_wrapped:
            yield from _bypassed(loop)


def _left_out(loop: EngineLoop, told: set[str]) -> Iterator[Breach]:
    many = loop.window != 1
    for step in loop.steps:
        if step.wrapped or step.at in told:
            continue
        if step.kind == "scheduler":
            if many and step.accumulates and step.in_updates and not step.guarded:
                yield _part(loop, step, "scheduler", f"{step.text} at {step.at} moves it on in every micro-batch, "
                                                     "although "
                            "its length is counted in updates: the rate ends too early")
        elif many and step.accumulates and not step.guarded:
            yield _part(loop, step, "accumulate", f"{step.text} at {step.at} is not held back in accumulate(): a plain "
                        "optimizer steps on every micro-batch and nothing is accumulated")
        elif loop.scales:
            yield _part(loop, step, "loss scale", f"{step.text} at {step.at} steps with gradients that still hold the "
                                                  "loss "
                        f"scale of {loop.precision}")
    if loop.model:
        so = (f"{loop.precision} never reaches its forward pass" if loop.precision else
              "several processes train copies of it that drift apart")
        yield Breach("C284", f"The model made at {loop.model} is not prepared by the {loop.engine} of {loop.made}, so "
                             f"{so}",
                     loop.at, Known.DERIVED if loop.precision else Known.GUESSED, {"kind": "model"})
    if loop.loader:
        yield Breach("C284", f"The loader made at {loop.loader} is not prepared by the {loop.engine} of {loop.made}, "
                             "so "
                     f"every process goes through the same batches in the loop at {loop.at}",
                     loop.at, Known.GUESSED, {"kind": "loader"}, Severity.MEDIUM)


def _part(loop: EngineLoop, step: Left, kind: str, so: str) -> Breach:
    return Breach("C284", f"The {step.kind} is not prepared by the {loop.engine} of {loop.made}, so {so}", step.at,
                  Known.DERIVED, {"kind": kind, "part": step.text})


def _bypassed(loop: EngineLoop) -> Iterator[Breach]:
    count = f"{loop.window:g}" if loop.window is not None else "more than one"
    if loop.plain is not None and loop.own is None and (loop.scales or loop.window != 1):
        lost = (f"scales the loss for {loop.precision}: small gradients become 0" if loop.scales else
                f"divides the loss by gradient_accumulation_steps={count}: over one window the gradients are that many "
                "times larger")
        yield Breach("C320", f"The backward at {loop.plain} goes past the {loop.engine} of {loop.made}, which {lost}",
                     loop.plain, Known.DERIVED,
                     {"kind": "backward", "matters": "fp16" if loop.scales else "accumulation"})
    plain = [s for s in loop.steps if s.kind == "optimizer" and not s.accumulates]
    held_back = loop.accumulates or any(s.guarded for s in plain)
    if loop.own is not None and loop.window != 1 and plain and not held_back:
        yield Breach(
            "C320", f"The {loop.engine} of {loop.made} is asked for gradient_accumulation_steps={count} and no loop "
                    "stands in "
            f"accumulate(): {plain[0].text} at {plain[0].at} runs on every micro-batch, with a loss that was divided "
            "by "
            f"{count}", plain[0].at, Known.DERIVED if loop.window_known else Known.GUESSED,
            {"kind": "accumulate", "steps": count, "step_line": plain[0].at.line})
