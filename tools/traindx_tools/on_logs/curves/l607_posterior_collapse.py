"""The KL term of a variational model has gone to zero: the latent variables carry nothing.

KL between posterior and prior measures, in nats, what the code tells about the input. At zero the encoder says the same
for every input and the decoder works without it. A KL that is small early and rises later is the usual course of
training with a warm-up and is left alone: the last third of the log must stay at the floor without rising.

The floor is 0.05 nats, or 5 % of what KL once was where it fell from above (a hundredth where it was small at first);
where it never was higher, it is 0.001,
because a KL that is averaged over elements is small in a healthy model too. `measured.kind`: "zero" (exactly 0),
"collapsed" (fell to the floor), "never-used" (never left it, or only shrank below it) or "inactive" (the log counts
active latent units, and there is none).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, last_part, median, tail, trend
from traindx_tools.on_logs.curves.learning import aligned, is_reinforcement, number, percent, setting, span
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

FLOOR = 0.05
SHARE = 0.05
TINY_FLOOR = 1e-3
HUNDREDTH = 0.01
SHRUNK = 0.6
LAST = 1 / 3
RECORDS = 6

RULE = Rule(
    id="L607",
    name="posterior-collapse",
    title="The KL term has gone to zero: the latent code carries nothing",
    severity=Severity.MEDIUM,
    sees="the KL term of a variational model beside its reconstruction",
    matters="Samples and reconstructions do not depend on the code; what is built on the latents learns nothing.",
    alike=(
        "KL is small for the first epochs and rises later.",
        "KL averaged over elements instead of summed: small numbers, healthy code.",
        "A free-bits or delta constraint holds KL at a chosen floor.",
    ),
    confirm=(
        "Print the KL of each latent dimension, averaged over a batch.",
        "Decode the same input with two different codes: equal outputs mean collapse.",
    ),
    thresholds={
        "floor": Threshold(FLOOR, "nats", "a twentieth of a nat tells next to nothing of the input"),
        "share": Threshold(SHARE, "of its highest level", "it fell, so its scale is known"),
        "tiny_floor": Threshold(TINY_FLOOR, "nats", "where it never was higher"),
        "hundredth": Threshold(HUNDREDTH, "of its highest level, below tiny_floor", "a KL that is a mean of elements"),
        "shrunk": Threshold(SHRUNK, "of its first records, under the floor throughout",
                            "the KL of a code that comes into use rises while the reconstruction improves"),
        "last": Threshold(round(LAST, 3), "of the log", "not just an early phase"),
    },
)

_VARIATIONAL = re.compile(r"recon|elbo|(?:^|[/_])rec(?:$|[/_])|nll|bpd")

_ACTIVE = re.compile(r"active[_ -]?(units?|dims?|latents?|z)|(?<![a-z])au(?![a-z])", re.IGNORECASE)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    if is_reinforcement(run) or not any(_VARIATIONAL.search(s.name) for s in run.series):
        return
    for series in [*run.find("kl", group="train"), *(s for s in run.components() if re.search(r"(?:^|/|_)kl", s.name))]:
        c = curve(series)
        kind = _kind(c) or ("inactive" if _no_active_unit(run) else None)
        if kind is not None:
            yield _finding(run, c, kind)
            return


def _kind(c: Curve) -> str | None:
    v = c.values
    if len(v) < RECORDS or v.min() < -1e-3 or not _complete(c.series):
        return None
    last = last_part(v, LAST)
    level, highest = median(last), float(v[: max(1, len(v) // 2)].max())
    if trend(last) > 1.0 and tail(v) > 1.2 * median(last[:3]):
        return None
    if not v.any():
        return "zero"
    if highest >= 2.0 * FLOOR and level <= min(FLOOR, SHARE * highest):
        return "collapsed"
    if highest >= 10.0 * TINY_FLOOR and level <= min(TINY_FLOOR, HUNDREDTH * highest):
        return "collapsed"
    if float(v.max()) <= TINY_FLOOR or (float(v.max()) <= FLOOR and median(last) <= SHRUNK * median(v[:3])):
        return "never-used"
    return None


def _no_active_unit(run: Run) -> bool:
    """Whether the log counts active latent units and none ever is active."""
    counts = [s for s in run.series if _ACTIVE.search(s.original) and len(s) >= RECORDS]
    return bool(counts) and all(not s.values.any() for s in counts)


def _beside(run: Run, c: Curve, level: float) -> str:
    """What the reconstruction does while KL is at its floor."""
    series = next((s for s in run.series if s.group == c.series.group and re.search(r"recon", s.name)), None)
    values = aligned(curve(series), c) if series is not None and len(series) >= RECORDS else None
    if series is None or values is None:
        return ""
    above = (c.values > 2.0 * level).nonzero()[0]
    first = int(above[-1]) + 1 if len(above) else 0
    later = values[min(first, len(values) - 2):]
    return f", while {series.original} goes from {number(float(later[0]))} to {number(float(later[-1]))}"


def _complete(series: Series) -> bool:
    """Whether the last records are finite: what precedes a NaN is another matter."""
    return bool(series.finite[-1])


def _finding(run: Run, c: Curve, kind: str) -> Finding:
    start, end = c.where(len(c) - len(last_part(c.values, LAST)), len(c) - 1)
    level, highest = median(last_part(c.values, LAST)), float(c.values.max())
    weight = setting(run.config, "beta", "klweight", "klcoef", "kldweight", "lambdakl", "klcoeff")
    fell = f", {percent(level / highest)} of the {number(highest)} it once had" if kind == "collapsed" else ""
    said = f" ({weight[0]} = {weight[1]:g})" if weight is not None else ""
    return RULE.finding(
        f"{c.series.original} stays at {number(level)} {span(c.series, start, end)}{fell}{said}"
        f"{_beside(run, c, level)}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN,
        severity=Severity.HIGH if kind in ("collapsed", "inactive") else Severity.MEDIUM,
        measured={"kind": kind, "kl": level, "highest": highest, "weight": weight[1] if weight else None},
    )
