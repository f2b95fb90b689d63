"""A metric turns NaN or infinite, and what could be seen before it did.

NaN spreads: once a weight is NaN every later loss is. So only the first non-finite value matters, in which metric it
stands and what the other metrics did before. Three beginnings mean three different searches:

* **from-start** (first or second record): data, initialisation, the loss itself or the very first update. Nothing had
  time to grow.
* **abrupt** (all metrics were quiet until the record before): an operation left its domain (log or square root of 0,
  0/0, an empty batch, a masked row), a half-precision overflow or one bad sample. Lowering the learning rate only
  postpones it.
* **ramp** (loss or gradient norm had grown tenfold before, a loss at its height counted from its lowest value): the run
  diverged and overflowed in the end. Look at what started the growth, not at the NaN.

A held-out loss that breaks while the training loss stays finite is a search of its own: the weights are finite then,
and it is the evaluation (its data, its precision, a batch without targets, running statistics) that makes it.

A gradient norm that is infinite for single steps under a dynamic loss scale is how the scaler finds its range and is
not reported; nor is an infinite perplexity whose loss is finite, nor a metric that never had a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.curves.onsets import rise_begins
from traindx_tools.on_logs.curves.outcomes import LOSSES, RAMP, growth_before_end, main_loss
from traindx_tools.on_logs.curves.shapes import number, place, track, value_near
from traindx_tools.on_logs.run import Floats, Ints, Run, Series
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="L101",
    name="nonfinite",
    title="A metric turns NaN or infinite",
    severity=Severity.CRITICAL,
    sees="The first NaN or infinite value of every loss, gradient norm and other metric, and the growth before it.",
    matters="From the first NaN on nothing is learned; checkpoints written later are worthless.",
    alike=("A gradient norm of inf at single steps with a dynamic loss scale: the scaler skips them (healthy).",
           "A metric that is undefined by design, such as an AUC without positives: never finite at all."),
    confirm=("python -c 'import torch; torch.autograd.set_detect_anomaly(True)' at the top of the run names the "
             "operation whose backward gives NaN.",
             "Run the batch of the first bad step alone, in float32, and check inputs, loss terms and gradients."),
    thresholds={
        "ramp": Threshold(RAMP, "times the usual value", "allocated with the rule; a tenfold loss is no batch noise"),
        "from_start": Threshold(2, "records", "an update needs one record before it can be seen"),
        "recurring": Threshold(0.2, "share of records", "a scaler that searches its range skips fewer steps than that"),
    },
)

FEWEST = 5
"""Finite values after it from which on a beginning of NaN is taken for values that were not there yet."""
_NEVER_SAYS_MUCH = ("learning_rate", "step_time", "data_time", "throughput", "tokens_per_second", "memory", "mfu",
                    "loss_scale", "reward_std", "r2", "skipped_steps", "nan_steps")
_RAMPS = ("grad", "norm", "activation", "logit")
"""What, besides the loss, grows before a run overflows. A small term of the loss may grow tenfold and mean nothing."""


@dataclass(frozen=True)
class Break:
    """Value `i` of a series is the first that is not finite. `lasts`: it never recovers."""

    series: Series
    i: int
    lasts: bool

    @property
    def kind(self) -> str:
        return "nan" if np.isnan(self.series.values[self.i]) else "inf"

    @property
    def where_said(self) -> str:
        return place(self.series, self.i)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding a group (train, validation): the first metric that breaks."""
    for group in ("train", "validation", "test"):
        breaks = [b for s in run.series if s.group == group and (b := _break(run, s)) is not None]
        if breaks:
            yield _report(run, _first_first(breaks, main_loss(run)))
            break
    yield from _at_a_beat(run)
    yield from _counted(run)


def is_loss_like(name: str) -> bool:
    """Whether a canonical name is a loss or one of its terms."""
    return name in (*LOSSES, "elbo", "kl") or name.startswith("loss/") or name.endswith("loss")


def _break(run: Run, series: Series) -> Break | None:
    bad = ~series.finite
    if not bad.any() or series.name.startswith(_NEVER_SAYS_MUCH) or "best" in series.name:
        return None
    i = int(np.argmax(bad))
    lasts = bool(bad[-1]) and float(bad[i:].mean()) > 0.5
    if not lasts and _left_blank(series) and not _evaluated(run, series):
        return None
    if is_loss_like(series.name):
        return None if series.name == "perplexity" and _only_overflows(run, series) else Break(series, i, lasts)
    if series.name.startswith("grad_norm"):
        recurring = len(series) >= 10 and float(bad[len(series) // 5:].mean()) > 0.2
        return Break(series, i, lasts) if lasts or recurring else None
    return Break(series, i, lasts) if lasts and i > 0 else None


def _left_blank(series: Series) -> bool:
    """Whether the values are missing rather than broken: NaN before the first value, or at a regular beat.

    A NaN that was sent backward stays in the weights: where a training metric begins with it and is finite in all that
    follows, it is the mean of nothing (a replay buffer that fills, a window without an update).
    """
    bad, good = np.flatnonzero(np.isnan(series.values)), np.flatnonzero(series.finite)
    if len(bad) + len(good) < len(series) or len(good) < 2:
        return False
    if bad[-1] < good[0] and (series.group != "train" or len(good) >= FEWEST > len(bad)):
        return True
    return len(bad) >= 2 and len(good) >= 2 and (_even(bad) or _even(good))


def _evaluated(run: Run, series: Series) -> bool:
    """Whether the held-out records that are not finite were evaluations all the same: others of their values are there.

    What stands beside them moves, or the record is one of the evaluation alone.
    """
    if series.group == "train":
        return False
    lines = series.line[~series.finite]
    own = [s for s in run.series if s.source == series.source and s is not series]
    beside = [s for s in own if s.group == series.group and np.isin(lines, s.line[s.finite]).all()]
    alone = not any(np.isin(lines, s.line).any() for s in own if s.group == "train")
    return any(alone or np.ptp(s.values[s.finite]) > 0 for s in beside)


def _at_a_beat(run: Run) -> Iterator[Finding]:
    """A training loss that is NaN at every n-th record: nothing was measured there, or it breaks there."""
    loss = main_loss(run)
    bad = np.flatnonzero(~loss.finite) if loss is not None and loss.group == "train" else np.zeros(0, np.int64)
    if loss is None or len(bad) < 3 or 2 * len(bad) > len(loss) or not _even(bad) or not _left_blank(loss):
        return
    every, i = int(bad[1] - bad[0]), int(bad[0])
    yield RULE.finding(
        f"{loss} is nan at one record in {every} ({len(bad)} of {len(loss)}, the first {place(loss, i)}) and finite in "
        "all between: none was measured there, or it breaks there", loss.at(i, i), loss.source,
        bearing=Bearing.COMPANION, severity=Severity.INFO,
        measured={"metric": loss.name, "onset": "beat", "position": float(loss.position[i]), "every": every})


def _even(where: Ints) -> bool:
    """Whether the indices have one distance, and it is not one after another."""
    distances = np.diff(where)
    return bool(distances[0] > 1 and (distances == distances[0]).all() and len(distances) >= 2)


def _only_overflows(run: Run, perplexity: Series) -> bool:
    loss = run.first("loss", group=perplexity.group)
    return not np.isnan(perplexity.values).any() and loss is not None and bool(loss.finite.all())


def _first_first(breaks: list[Break], main: Series | None) -> list[Break]:
    home = main or breaks[0].series

    def key(b: Break) -> tuple[float, bool, bool, float]:
        s = b.series
        if s.source == home.source:
            order = float(s.line[b.i])
        elif s.unit == home.unit != "line":
            after = np.flatnonzero(home.position >= s.position[b.i])
            order = float(home.line[after[0]]) if len(after) else float("inf")
        else:
            order = float("inf")
        return order, s is not main, not is_loss_like(s.name), -len(s)

    unique: dict[str, Break] = {}
    for b in sorted(breaks, key=key):
        unique.setdefault(b.series.name, b)
    return list(unique.values())


def _report(run: Run, breaks: list[Break]) -> Finding:
    first = breaks[0]
    s, i = first.series, first.i
    ramp, rising, told = _growth(run, s, i)
    onset = "from-start" if i <= 1 else "ramp" if ramp >= RAMP else "abrupt"
    together = [b.series.name for b in breaks if _same_record(b, first)]
    later = [f"{b.series.name} from {b.where_said}" for b in breaks if not _same_record(b, first)]
    lr = value_near(run.first("learning_rate"), s, i)
    stays = _training_stays(run, s)
    if stays:
        told = stays if ramp < RAMP else f"{told}; {stays}"
    rest = f"; {', '.join(later[:3])}" if later else ""
    measured: dict[str, Value] = {
        "metric": s.name, "group": s.group, "kind": first.kind, "onset": onset, "position": float(s.position[i]),
        "unit": s.unit, "records_before": i, "last_finite": float(s.values[i - 1]) if i else None,
        "ramp_ratio": ramp, "ramp_metric": rising, "recovered": not first.lasts, "lr": lr, "first": tuple(together),
        "later": tuple(b.series.name for b in breaks if not _same_record(b, first)),
        "training": "finite" if stays else None, "held_out": s.group if stays else None,
        "intact": tuple(_intact(run, s.group)), **_precision(run, s, i),
    }
    written = f" ({s.original.strip()})" if stays else ""
    return RULE.finding(f"{s}{written} {_course(first)}{rest}; {told}",
                        s.at(max(0, i - 1) if onset == "ramp" else i, i), s.source, bearing=Bearing.SIGN,
                        severity=_severity(first), measured=measured)


def _course(first: Break) -> str:
    """Where it breaks, what the last value before was, and whether it recovers or breaks again."""
    s, i = first.series, first.i
    bad = ~s.finite[i:]
    again = f" and at {int(bad.sum()) - 1} of the {len(bad) - 1} records after it" if 1 < bad.sum() < len(bad) else ""
    end = again or ("" if first.lasts else "; later values are finite again")
    before = f" (last finite value {number(float(s.values[i - 1]))}" if i else ""
    if i and first.lasts and not again and _sparse(s, i):
        return f"turns {first.kind} between {place(s, i - 1)} and {place(s, i)}{before})"
    lasting = first.lasts and not again
    since = f"from {first.where_said} on" if i else f"from its first record ({first.where_said}) on"
    return (f"is {first.kind} {since if lasting else f'at {first.where_said}'}"
            f"{f'{before} at {place(s, i - 1)})' if i else ''}{end}")


def _training_stays(run: Run, broken: Series) -> str:
    """That the training loss has been finite throughout, with its values, where a held-out metric broke; else ""."""
    loss = main_loss(run)
    if broken.group == "train" or loss is None or loss.group != "train" or len(loss) < 2 or not loss.finite.all():
        return ""
    return (f"the training loss stays finite in all {len(loss)} records ({number(float(loss.values[0]))} at "
            f"{place(loss, 0)}, {number(float(loss.values[-1]))} at {place(loss, len(loss) - 1)})")


def _sparse(s: Series, i: int) -> bool:
    """Whether steps lie between the last finite record and the first that is not: it broke somewhere among them."""
    return s.unit != "line" and bool(s.position[i] - s.position[i - 1] > 1)


def _same_record(a: Break, b: Break) -> bool:
    if a.series.source == b.series.source:
        return bool(a.series.line[a.i] == b.series.line[b.i])
    return a.series.unit == b.series.unit and bool(a.series.position[a.i] == b.series.position[b.i])


def _severity(first: Break) -> Severity:
    if not first.lasts:
        return Severity.MEDIUM
    if not (is_loss_like(first.series.name) or first.series.name.startswith("grad_norm")):
        return Severity.MEDIUM
    return Severity.CRITICAL if first.series.group == "train" else Severity.HIGH


def _growth(run: Run, broken: Series, i: int) -> tuple[float, str | None, str]:
    """The largest growth of any metric before the break: factor, metric, and a clause that tells it."""
    best, name, told, main, climbed = 1.0, None, "", main_loss(run), False
    for s in run.series:
        if s.group != broken.group or not (s is broken or s is main or any(word in s.name for word in _RAMPS)):
            continue
        t = track(s)
        if t is None or (cut := _values_before(s, broken, i)) == 0:
            continue
        t = t.part(0, int(np.searchsorted(t.index, cut)))
        factor = growth_before_end(t.y)
        if s is main and _is_new_high(t.y):
            factor = max(factor, _largest_rise(t.y[[int(np.argmin(t.y)), -1]]))
        climbed = climbed or _largest_rise(t.y) >= RAMP
        if factor > best and (factor >= RAMP or s is broken):
            low = rise_begins(t.y, len(t) - 1) if len(t) > 1 else 0
            best, name = factor, s.name
            told = (f"{s.name} rose from {number(t.y[low])} at {t.place(low)} to {number(t.y[-1])} at {t.place(-1)} "
                    "before")
    if best >= RAMP:
        return best, name, told
    quiet = ("no loss or gradient norm stood tenfold above its usual level just before" if climbed
             else "no loss or gradient norm rose tenfold before")
    return best, name, ("nothing was logged before", "only one record came before", quiet)[min(i, 2)]


def _largest_rise(y: Floats) -> float:
    """How many times larger a value of a positive curve is than a value before it, at most; else 1."""
    return float(np.max(y / np.minimum.accumulate(y))) if len(y) and bool((y > 0).all()) else 1.0


def _is_new_high(y: Floats) -> bool:
    """Whether the curve ends above all that it was before: a noisy one is far above its lowest value at any time."""
    return len(y) > 1 and bool(y[-1] > y[:-1].max())


def _values_before(s: Series, broken: Series, i: int) -> int:
    """How many values of `s` were written before the break."""
    if s.source == broken.source:
        return int((s.line <= broken.line[i]).sum())
    if s.unit == broken.unit != "line":
        return int((s.position < broken.position[i]).sum())
    return 0


def _intact(run: Run, group: str) -> list[str]:
    return sorted({s.name for s in run.series if s.group == group and is_loss_like(s.name) and s.finite.all()})


def _precision(run: Run, s: Series, i: int) -> dict[str, Value]:
    """What the log says of half precision at that moment."""
    told = next((n.text[:120] for n in run.notes if n.kind == "precision"), None)
    scale = run.first("loss_scale")
    at = value_near(scale, s, i)
    if scale is None or at is None:
        return {"precision": told, "loss_scale": None}
    return {"precision": told, "loss_scale": at, "loss_scale_first": float(scale.values[0])}


def _counted(run: Run) -> Iterator[Finding]:
    """Counters of NaN iterations, as Megatron-LM writes them."""
    for s in run.find("nan_steps"):
        t = track(s)
        if t is not None and int((t.y > 0).sum()) >= 2:
            i = int(np.argmax(t.y > 0))
            yield RULE.finding(
                f"{int((t.y > 0).sum())} of {len(t)} records count NaN iterations, the first at {t.place(i)}", t.at(i),
                s.source, bearing=Bearing.COMPANION, severity=Severity.MEDIUM,
                measured={"metric": "nan_steps", "onset": "counted", "position": float(s.position[t.index[i]])})
            return
