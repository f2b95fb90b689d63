"""Parameters of replicas differ between ranks.

`kind`: "start" where the ranks take the same gradients and their weights were never equal: each began with its own (a
seed per rank, no broadcast, weights changed after the wrapping); "parted" where they were equal and are no more,
though a wrapper holds them or most gradients agree: after which step, and how many steps were not synchronised;
"alone" where every rank has its own gradients and nobody wraps the model: replicas that are never synchronised, or
models that are meant to be of their own. Parts that differ from the beginning in weights and gradients are shards,
stages or actors and are left alone; so is a start that is one value everywhere. Weights that become equal again are
those of local SGD.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_ranks.replicas import DRIFT, GRADIENT, WEIGHT, Job, listed, module_of, plain
from traindx_tools.rules import Rule, Threshold

FEWEST = 2

RULE = Rule(
    id="R102",
    name="parameters-differ",
    title="Parameters of replicas differ between ranks",
    severity=Severity.HIGH,
    sees="digests of weights and gradients before the optimizer's step on every rank",
    matters="an average of gradients of different models is the gradient of none; rank 0's model alone is kept",
    alike=("shards, pipeline stages, experts and actors of their own", "local SGD between two averages",
           "stochastic rounding, noise that is added to the weights"),
    confirm=("print(rank, sum(p.double().sum().item() for p in model.parameters())) before the first step and after "
             "the hundredth",),
    thresholds={"equal": Threshold(WEIGHT, "relative", "digests have seven digits"),
                "drift": Threshold(DRIFT, "relative", "a thousand roundings of float32"),
                "gradient": Threshold(GRADIENT, "relative", "gradients reduced in 8 or 16 bits")},
)


@dataclass(frozen=True)
class Apart:
    """A parameter that differs at the last look."""

    name: str
    last: int
    ratio: float
    equal_until: int | None
    """The last look at which it was still equal; None where it never was."""
    reduced: bool
    """Its gradients are equal on all ranks."""
    own: bool
    """Its gradients differ at every look."""


def check(job: Job) -> Iterator[Finding]:
    """At most one finding of each kind."""
    if job.averaged_at is not None or (job.model_parallel and not _any_wrapped(job)):
        return
    apart = [a for n in job.names if (a := _apart(job, n)) is not None]
    start = [a for a in apart if a.equal_until is None and a.reduced]
    if start:
        yield _finding(job, start, "start", Severity.HIGH, Bearing.CAUSE)
    parted = [a for a in apart if a.equal_until is not None and (a.reduced or job.in_ddp(a.name))]
    if parted:
        severity = Severity.MEDIUM if all(a.reduced for a in parted) else Severity.HIGH
        yield _finding(job, parted, "parted", Severity.LOW if job.hooked else severity, Bearing.SIGN)
    alone = [a for a in apart if a.equal_until is not None and a.own and not job.constant(a.name)]
    others = any(not job.constant(a.name) for a in apart if a not in alone)
    if alone and not others and not _any_wrapped(job) and not any(_reduced(job, n) for n in job.names):
        yield _finding(job, alone, "alone", Severity.LOW, Bearing.SIGN)


def _reduced(job: Job, name: str) -> bool:
    looks = job.gradients(name)
    return bool(looks) and all(d <= GRADIENT for d in looks.values())


def _any_wrapped(job: Job) -> bool:
    return any(job.in_ddp(n) for n in job.names)


def _apart(job: Job, name: str) -> Apart | None:
    looks, gradients = job.weights(name), job.gradients(name)
    if len(looks) < FEWEST or len(gradients) < FEWEST or job.equal_again(name) is not None:
        return None
    last = max(looks)
    if looks[last] <= DRIFT:
        return None
    equal = [s for s, d in looks.items() if d <= WEIGHT]
    off = [d > GRADIENT for d in gradients.values()]
    return Apart(name, last, looks[last], max(equal) if equal else None, sum(off) <= 0.25 * len(off), all(off))


def _finding(job: Job, apart: list[Apart], kind: str, severity: Severity, bearing: Bearing) -> Finding:
    worst = max(apart, key=lambda a: a.ratio)
    names = listed([a.name for a in apart])
    seen, until = job.windows, worst.equal_until
    first = {
        "start": f"{len(apart)} of {len(job.names)} sampled parameters were never equal on the ranks although these "
                 f"take the same gradients ({names})",
        "parted": f"{len(apart)} of {len(job.names)} sampled parameters part between ranks after step {until} although "
                  + ("most of their gradients are equal" if all(a.reduced for a in apart)
                     else "DistributedDataParallel holds them") + f" ({names})" + (
                      f", and in {seen.unsynchronised + seen.around} of {seen.steps} steps the last micro-batch was "
                      "not synchronised" if _any_wrapped(job) and seen.unsynchronised + seen.around else ""),
        "alone": f"{len(apart)} of {len(job.names)} sampled parameters began equal on all ranks and part after step "
                 f"{until} ({names}): no gradient is equal on the ranks, and no wrapper reduces them",
    }[kind]
    return RULE.finding(
        f"{first}; after {worst.last} steps {plain(worst.name)} differs by {worst.ratio:.3g} times its norm",
        Location(step=float(until or 0), end_step=float(worst.last), module=module_of(worst.name),
                 rank=job.replicas[0].rank),
        "records of all ranks", severity=severity, bearing=bearing,
        measured={"kind": kind, "parameters": len(apart), "sampled": len(job.names), "parameter": plain(worst.name),
                  "ratio": round(worst.ratio, 6), "equal_until": until, "step": worst.last,
                  "ranks": tuple(r.rank for r in job.replicas[:8]), "world": job.world, "steps": seen.steps,
                  "unsynchronised": seen.unsynchronised, "around": seen.around})
