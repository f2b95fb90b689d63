"""Before and after a fix: the metric that the symptom is about, then what matters, each better, worse or unchanged.

Compared are the levels at the end of the runs (`traindx_tools.experiments.level`): the mean of the last fifth of the
records, and a difference within the spread is none. What two runs differ in without any fix is left out: clocks, rates
and how many steps were made say nothing, unless the symptom is about them; nor do settings that are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from traindx.effect import Level, spread
from traindx.promised import Promise, promises_of
from traindx.verification import Change, MetricChange
from traindx_tools.experiments.outcome import better_high
from traindx_tools.symptom import parse
from traindx_tools.symptom.subjects import BY_KEY, JUDGED_BY_VALUE, ROWS

MOST = 12
"""Rows of a table."""

CLOCKS = frozenset({"step_time", "data_time", "epoch_time", "elapsed", "throughput", "tokens_per_second", "mfu",
                    "tflops", "consumed_samples", "consumed_tokens"})
"""They differ between any two runs, with the machine and with how long a run was."""

SETTINGS = frozenset({"learning_rate", "loss_scale", "codebook_size", "weight_decay", "momentum"})
"""What a person or a schedule sets: a row only where it is another one, and never better or worse by itself."""

UNITS: Mapping[str, str] = {
    "step_time": "s", "data_time": "s", "epoch_time": "s", "elapsed": "s", "throughput": "1/s", "memory": "MiB",
    "tokens_per_second": "tokens/s", "bpc": "bit", "bpd": "bit", "tflops": "TFLOP/s", "psnr": "dB",
    "episode_length": "steps", "skipped_steps": "steps", "nan_steps": "steps"}
"""Canonical units of `on_logs.readers`; a loss and a norm have none that a log says."""

SHARES = frozenset({"accuracy", "accuracy_top5", "f1", "auc", "auprc", "iou", "dice", "precision", "recall", "map",
                    "clip_fraction", "codebook_utilization", "error_rate", "wer", "cer"})
"""Parts of a whole: shown in per cent, whether the log wrote 0.87 or 87."""

_JUDGED = frozenset(n for row in ROWS if row.family in ("loss", "score", "speed", "time", "memory") for n in row.names)
"""Metrics of which more is known to be better, or worse. Of a norm, an entropy or an own term nothing is known."""

_WORST = frozenset({"skipped_steps", "nan_steps"})


@dataclass(frozen=True)
class Ended:
    """How a run ended, where it did not run through: "RuntimeError at step 130"; "" for one that did."""

    before: str = ""
    after: str = ""


def asked_about(symptom: str, promised: str) -> tuple[str, ...]:
    """Names of the series that the symptom and the fix's promise are about, the symptom's first."""
    named = [_grouped(name, s.subject.group) for s in parse(symptom) if s.subject is not None and not s.asked
             and s.subject.family in JUDGED_BY_VALUE for name in BY_KEY[s.subject.key].names if s.subject.key]
    return tuple(dict.fromkeys([*named, *(_grouped(p.metric, p.group) for p in promises_of(promised))]))


def _grouped(name: str, group: str | None) -> str:
    return f"{group} {name}" if group and group != "train" else name


def rows(before: Sequence[Mapping[str, Level]], after: Sequence[Mapping[str, Level]], *, symptom: str = "",
         promised: str = "", ended: Ended = Ended()) -> tuple[MetricChange, ...]:
    """The table of the runs of the unfixed code and those with the fix, by the name of each series.

    A series that one side has not is shown where the symptom is about it.
    """
    if not before or not after:
        return ()
    asked = asked_about(symptom, promised)
    ways = {_grouped(p.metric, p.group): p for p in reversed(promises_of(promised))}
    first, second = _common(before), _common(after)
    found = [_row(name, first.get(name, ()), second.get(name, ()), name in asked, ways.get(name))
             for name in sorted({*first, *second}, key=lambda n: _order(n, asked))]
    shown = [row for row in found if row is not None]
    return (*_how_they_ended(ended), *shown)[:MOST]


def _common(runs: Sequence[Mapping[str, Level]]) -> dict[str, list[Level]]:
    """The series of all runs of one side, in the order of the first."""
    return {name: [run[name] for run in runs] for name in runs[0] if all(name in run for run in runs)}


def _order(name: str, asked: Sequence[str]) -> tuple[int, int, str]:
    """The symptom's own, then losses and scores of held-out data, of training, then the rest."""
    base = _base(name)
    place = asked.index(name) if name in asked else len(asked)
    matters = 0 if base in _JUDGED and base not in CLOCKS else 1 if base == "grad_norm" else 2
    return (place, matters, "" if name.startswith(("validation", "test")) else name)


def _base(name: str) -> str:
    return name.rpartition(" ")[2]


def _row(name: str, old: Sequence[Level], new: Sequence[Level], asked: bool, promise: Promise | None
         ) -> MetricChange | None:
    base = _base(name)
    if (base in CLOCKS and not asked) or not ((old and new) or asked):
        return None
    change = _change(name, old, new, promise)
    if base in SETTINGS and not asked:
        if change == "unchanged":
            return None
        change = "changed"
    unit, times = _unit(base, (*old, *new))
    return MetricChange(name=name, before=_shown(old, times), after=_shown(new, times), unit=unit, change=change,
                        asked=asked)


def _unit(base: str, levels: Iterable[Level]) -> tuple[str, float]:
    """The unit that is shown, and the factor to it."""
    if base not in SHARES:
        return UNITS.get(base, ""), 1.0
    whole = any(abs(lv.value) > 1.5 for lv in levels if math.isfinite(lv.value))
    return "%", 1.0 if whole else 100.0


def _shown(levels: Sequence[Level], times: float) -> str:
    return f"{times * fmean(lv.value for lv in levels):.4g}" if levels else "-"


def _change(name: str, old: Sequence[Level], new: Sequence[Level], promise: Promise | None) -> Change:
    """Finite beats what is not; beyond the spread the promise says which way is better, else what the metric is."""
    if not old or not new:
        return ""
    was, now = (all(math.isfinite(lv.value) for lv in side) for side in (old, new))
    if not (was and now):
        return "unchanged" if was == now else "better" if now else "worse"
    change = fmean(lv.value for lv in new) - fmean(lv.value for lv in old)
    if abs(change) <= spread(old, new):
        return "unchanged"
    up = _up(name, promise)
    return "changed" if up is None else "better" if (change > 0) == up else "worse"


def _up(name: str, promise: Promise | None) -> bool | None:
    """Whether more is better; None where nothing says so."""
    if promise is not None and promise.way in ("up", "down"):
        return promise.way == "up"
    base = _base(name)
    return better_high(base) if base in _JUDGED | _WORST else None


def _how_they_ended(ended: Ended) -> tuple[MetricChange, ...]:
    """A row where a run broke off: that is what a symptom of a crash is about."""
    if not ended.before and not ended.after:
        return ()
    change: Literal["better", "worse", "unchanged", "changed"] = (
        "better" if not ended.after else "worse" if not ended.before
        else "unchanged" if ended.before == ended.after else "changed")
    return (MetricChange(name="how it ends", before=ended.before or "ran through", after=ended.after or "ran through",
                         change=change, asked=True),)
