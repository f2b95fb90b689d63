"""A vector quantizer uses few of its codes and does not recover.

The perplexity of the code histogram, exp(entropy), counts how many codes carry the assignments: it equals the
codebook's size when all are used alike and 1 when a single code takes everything. Below a tenth of the size the
bottleneck is far narrower than planned and reconstruction stays poor. The rule looks at the last half of the log, so
that a cold start and a recovery are left alone, and stays silent while the use is still rising.

`measured.kind`: "never-used" (few codes from the first record: initialisation off the data, an input scale that one
code covers, a codebook that is not updated or is overwritten) or "collapsed" (a third or less of an earlier use: the
encoder was pulled onto few codes, often by a large commitment weight). `measured.replaced` gives the count of revived
codes where the log has one: revival that goes on without any effect says that the revived codes do not survive.

The size comes from the log ("5.3 / 128", "used 1/64") or the configuration. Without a size, a perplexity below 2
counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, last_part, median, tail, trend
from traindx_tools.on_logs.curves.learning import number, percent, setting, span
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

UTILISATION = 0.10
ALONE = 2.0
COLLAPSED = 3.0
RECORDS = 4

RULE = Rule(
    id="L601",
    name="codebook-collapse",
    title="The codebook has collapsed onto few codes",
    severity=Severity.HIGH,
    sees="codebook perplexity, codes in use, the codebook's size",
    matters="The discrete bottleneck carries a fraction of its bits; what is trained on the codes inherits that.",
    alike=(
        "The first steps after initialisation: use rises within a few hundred steps.",
        "Use within one small batch: a batch of 32 vectors cannot show more than 32 codes.",
        "A data set that needs few codes: reconstruction is good then.",
    ),
    confirm=(
        "Print the histogram of code indices over 100 batches, and the norms of encoder outputs and of the codes.",
        "Train 500 steps with a commitment weight of 0.25 and codes initialised from encoder outputs.",
    ),
    thresholds={
        "utilisation": Threshold(UTILISATION, "of the codebook", "below 10 % is collapse: Systematic Debugging skill"),
        "alone": Threshold(ALONE, "codes", "where the size is unknown"),
        "collapsed": Threshold(COLLAPSED, "times", "an earlier use three times as high"),
        "records": Threshold(RECORDS, "records", "fewer say nothing of a course"),
    },
)

_SIZE_KEYS = ("codebooksize", "numembeddings", "nembed", "nembeddings", "numcodes", "ncodes", "codes", "kcodes",
              "codebookentries", "numcodewords", "codebook", "embeddings", "ncodebook", "codebooknum", "nume")
_REPLACED = re.compile(r"replac|revive|reviv|restart|reset|reinit|dead")


@dataclass(frozen=True)
class _Use:
    """One measure of use. `codes`: its last level in codes; `share`: of the codebook, None for an unknown size."""

    curve: Curve
    codes: float | None
    share: float | None


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: for the measure with the lowest use."""
    size = _size(run)
    uses = [u for s in _measures(run) if (u := _use(s, size)) is not None]
    low = [u for u in uses if _is_low(u)]
    if low:
        yield _finding(run, min(low, key=lambda u: u.share if u.share is not None else 0.0), size)


def _size(run: Run) -> float | None:
    logged = run.first("codebook_size")
    if logged is not None and len(curve(logged)):
        return tail(curve(logged).values)
    stated = setting(run.config, *_SIZE_KEYS)
    return stated[1] if stated is not None and 2 <= stated[1] <= 1e7 else None


def _measures(run: Run) -> Iterator[Series]:
    for group in ("train", "validation"):
        yield from run.find("codebook_perplexity", "codebook_used", "codebook_utilization", group=group)
        if run.first("loss/commit", "loss/vq", "codebook_used", "codebook_size") is not None:
            yield from run.find("perplexity", group=group)


def _use(series: Series, size: float | None) -> _Use | None:
    c = curve(series)
    if len(c) < RECORDS or c.values.min() < 0.0:
        return None
    level = median(last_part(c.values, 0.5))
    if series.name == "codebook_utilization":
        share = level / 100.0 if c.values.max() > 1.0 else level
        return _Use(c, share * size if size is not None else None, share)
    return _Use(c, level, level / size if size is not None and size >= 2 else None)


def _is_low(use: _Use) -> bool:
    last = last_part(use.curve.values, 0.5)
    recovering = trend(last) > 2.0 and tail(last) > 1.2 * float(last[0])
    limit = UTILISATION if use.share is not None else ALONE
    measured = use.share if use.share is not None else use.codes
    now = tail(use.curve.values) / max(median(last), 1e-30)
    return measured is not None and measured < limit and measured * now < limit and not recovering


def _finding(run: Run, use: _Use, size: float | None) -> Finding:
    c = use.curve
    s = c.series
    start, end = c.where(len(c) // 2, len(c) - 1)
    highest = float(c.values[: max(1, len(c) // 2)].max())
    level = median(last_part(c.values, 0.5))
    kind = "collapsed" if highest >= COLLAPSED * max(level, 1e-30) and highest > 2.0 else "never-used"
    replaced = _replaced(run)
    of = f" of {number(size)} codes" if size is not None and s.name != "codebook_utilization" else ""
    share = f", {percent(use.share)} of the codebook" if use.share is not None else ""
    revived = f"; {replaced.original} has reached {number(float(curve(replaced).values[-1]))} without effect" if (
        replaced is not None) else ""
    earlier = f" (it was {number(highest)})" if kind == "collapsed" else ""
    return RULE.finding(
        f"{s.original} stays at {number(level)}{of}{share} {span(s, start, end)}{earlier}{revived}",
        s.at(start, end), s.source, bearing=Bearing.SIGN,
        severity=Severity.HIGH,
        measured={"kind": kind, "metric": s.name, "codes": use.codes, "size": size, "utilisation": use.share,
                  "highest": highest, "replaced": float(curve(replaced).values[-1]) if replaced is not None else None},
    )


def _replaced(run: Run) -> Series | None:
    """A count of revived codes that goes up."""
    for s in run.series:
        c = curve(s)
        if _REPLACED.search(s.original.lower()) and len(c) >= 3 and float(c.values[-1]) > max(float(c.values[0]), 0.0):
            return s
    return None
