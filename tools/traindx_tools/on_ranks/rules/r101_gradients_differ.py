"""Gradients differ between ranks at the optimizer's step although the model is replicated.

Replicas stay equal only while every rank takes the same step, so the gradient that the optimizer takes is the same on
all ranks. Each rank writes down digests of it at some twenty steps; they are compared after the run, and no
collective is added. What the wrapper did is counted in each rank. `kind`: "flag-late" where the last micro-batch
before the step ran its forward with `require_backward_grad_sync=False` and the flag was set by its backward
(DistributedDataParallel decides in forward); "unsynchronised" where it was not set then either (`no_sync` around the
last micro-batch, or all of them); "around" where no pass of a step went through the wrapper (`model.module(x)`);
"outside" where the parameter is in no bucket of the wrapper; "partly" where nobody wraps the model and some gradients
are reduced and others are not; "hook" where a communication hook reduces them in a way of its own; "averaged" where
weights become equal again, as in local SGD; "unknown" else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_ranks.replicas import GRADIENT, WEIGHT, Job, listed, module_of, plain
from traindx_tools.rules import Rule, Threshold

FEWEST, USUAL = 2, 0.5

RULE = Rule(
    id="R101",
    name="gradients-differ",
    title="Gradients differ between ranks at the step",
    severity=Severity.CRITICAL,
    sees="digests of gradients before the optimizer's step on every rank, and how DDP was called before it",
    matters="every rank trains a model of its own on its share of the data, and one of them is kept",
    alike=("local SGD and DiLoCo, which average the weights now and then", "sharded or pipelined models, experts",
           "communication hooks that send less than the gradient"),
    confirm=("print(rank, step, model.module.some.weight.grad.norm().item()) before optimizer.step(): it must be the "
             "same number on all ranks",),
    thresholds={"gradient": Threshold(GRADIENT, "relative", "gradients reduced in 8 or 16 bits; all-reduce gives "
                                                            "every rank the same bits"),
                "weight": Threshold(WEIGHT, "relative", "digests have seven digits"),
                "steps": Threshold(FEWEST, "steps", "one may be the end of an epoch")},
)

_LOW = {"hook", "averaged"}
_SIGNS = {"unknown", "partly", *_LOW}


@dataclass(frozen=True)
class Differing:
    """A parameter whose gradients differ."""

    name: str
    step: int
    """The first look at which they do."""
    ratio: float
    steps: int
    compared: int


def check(job: Job) -> Iterator[Finding]:
    """At most one finding for parameters in buckets of a wrapper, and one for the others."""
    differing = [d for n in job.names if (d := _differing(job, n)) is not None and _parted(job, n)]
    inside = [d for d in differing if job.in_ddp(d.name)]
    if inside:
        yield _finding(job, inside, _kind(job))
    if job.model_parallel:
        return
    wrapped = any(job.in_ddp(n) for n in job.names)
    began_equal = [d for d in differing if not job.in_ddp(d.name) and _began_equal(job, d.name)]
    reduced = [n for n in job.names if _reduced(job, n)]
    if began_equal and reduced:
        kind = "averaged" if _averaged(job, began_equal) else "outside" if wrapped else "partly"
        yield _finding(job, began_equal, kind, reduced)


def _differing(job: Job, name: str) -> Differing | None:
    looks = job.gradients(name)
    off = [s for s, d in looks.items() if d > GRADIENT]
    if len(off) < FEWEST or len(off) < USUAL * len(looks):
        return None
    return Differing(name, off[0], looks[off[0]], len(off), len(looks))


def _reduced(job: Job, name: str) -> bool:
    looks = job.gradients(name)
    return len(looks) >= FEWEST and all(d <= GRADIENT for d in looks.values())


def _parted(job: Job, name: str) -> bool:
    """Averages of the weights after each step make up for gradients that differ."""
    looks = job.weights(name)
    return bool(looks) and looks[max(looks)] > WEIGHT


def _began_equal(job: Job, name: str) -> bool:
    looks = job.weights(name)
    return not job.constant(name) and bool(looks) and looks[min(looks)] <= WEIGHT


def _averaged(job: Job, differing: list[Differing]) -> bool:
    return job.averaged_at is not None or any(job.equal_again(d.name) is not None for d in differing)


def _kind(job: Job) -> str:
    seen = job.windows
    known = bool(seen.steps) and not seen.several
    names = [Differing(n, 0, 0.0, 0, 0) for n in job.names if job.in_ddp(n)]
    if _averaged(job, names):
        return "averaged"
    if known and seen.around >= USUAL * seen.steps:
        return "around"
    if known and seen.unsynchronised >= USUAL * seen.steps:
        return "flag-late" if seen.late >= USUAL * seen.unsynchronised else "unsynchronised"
    return "hook" if job.hooked else "unknown"


def _finding(job: Job, differing: list[Differing], kind: str, reduced: list[str] | None = None) -> Finding:
    worst = max(differing, key=lambda d: d.ratio)
    severity = Severity.LOW if kind in _LOW else Severity.HIGH if kind in ("unknown", "outside") else (
        Severity.MEDIUM if kind == "partly" else Severity.CRITICAL)
    others = len(reduced or ())
    statement = (
        f"before the optimizer's step the gradients of {len(differing)} of {len(job.names)} sampled parameters differ "
        f"between ranks ({listed([d.name for d in differing])}), in {worst.steps} of {worst.compared} steps "
        f"that were compared: those of {plain(worst.name)} by {worst.ratio:.3g} times their norm at step {worst.step}"
        + _why(job, kind, others))
    seen = job.windows
    return RULE.finding(
        statement, _where(job, kind, worst), "records of all ranks", severity=severity,
        bearing=Bearing.SIGN if kind in _SIGNS else Bearing.CAUSE,
        measured={"kind": kind, "parameters": len(differing), "sampled": len(job.names), "parameter": plain(worst.name),
                  "ratio": round(worst.ratio, 4), "step": worst.step, "differ": worst.steps, "compared": worst.compared,
                  "ranks": tuple(r.rank for r in job.replicas[:8]), "world": job.world, "steps": seen.steps,
                  "unsynchronised": seen.unsynchronised, "late": seen.late, "around": seen.around,
                  "passes": round(seen.passes / seen.steps) if seen.steps else 0})


def _why(job: Job, kind: str, reduced: int) -> str:
    seen = job.windows
    return {
        "flag-late": f"; in {seen.unsynchronised} of {seen.steps} steps the last micro-batch ran its forward with "
                     f"require_backward_grad_sync=False, where DDP decides, and in {seen.late} of them the flag was "
                     f"True only by its backward ({seen.turned} of {seen.passes} micro-batches have another flag at "
                     "backward than at forward)",
        "unsynchronised": f"; in {seen.unsynchronised} of {seen.steps} steps the last micro-batch ran its forward with "
                          "require_backward_grad_sync=False (no_sync), so that nothing is reduced before the step",
        "around": f"; in {seen.around} of {seen.steps} steps no forward went through DistributedDataParallel, whose "
                  "hooks reduce only what its own forward has prepared",
        "outside": f"; they are in no bucket of DistributedDataParallel (not trainable, or not there, when it wrapped "
                   f"the model), while those of {reduced} others are equal",
        "partly": f", although they began equal; those of {reduced} others are equal on all ranks",
        "hook": "; a communication hook of the program reduces them",
        "averaged": "; the weights are made equal again between steps, as local SGD does",
    }.get(kind, "; DistributedDataParallel holds them, and its forward was synchronised in "
                f"{max(0, seen.steps - seen.unsynchronised - seen.around)} of {seen.steps} steps")


def _where(job: Job, kind: str, worst: Differing) -> Location:
    module = module_of(worst.name)
    rank, step = job.replicas[0].rank, float(worst.step)
    file, _, number = job.windows.line.rpartition(":")
    if kind in ("flag-late", "unsynchronised", "around") and file and number.isdigit():
        return Location(file=file, line=int(number), step=step, module=module, rank=rank)
    return Location(step=step, module=module, rank=rank)
