"""How much of a run was read, how far its metrics go and where they end: what a healthy answer rests on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.on_logs.run import Run, Series

MOST = 4
"""Metrics whose last value is told."""
_SCORES = re.compile(r"^(?:accuracy|f1|auc|map|iou|miou|dice|bleu|rouge|exact|reward|return|wer|cer|psnr|perplexity)")


def amount_of(run: Run) -> str:
    """How many values of how many metrics, files of code where there are no values, and error messages."""
    values, errors = sum(len(s) for s in run.series), len(run.errors)
    names = len({(s.name, s.group) for s in run.series if len(s)})
    code = sum(a.format == "python" for a in run.artifacts)
    parts = [f"{_counted(values, 'value')} of {_counted(names, 'metric')}" if values else "no metrics"]
    parts += [f"{_counted(code, 'file')} of code"] if code and not values else []
    return ", ".join([*parts, *([_counted(errors, "error message")] if errors else [])])


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def course_of(run: Run) -> str:
    """The positions from first to last and the last value of the metrics that matter most; "" without a metric.

    "epochs 1 to 50; at the end box_loss 0.9923 (2.1 at first), mAP50 0.788". Names are those of the log.
    """
    told = list({(s.name, s.group): s for s in reversed([*_telling(run)])}.values())[::-1][:MOST]
    if not told:
        return ""
    longest = max(told, key=lambda s: s.position[-1] - s.position[0] if s.unit != "line" else 0.0)
    ends = ", ".join(f"{s.original.strip()} {s.values[-1]:.4g}{_began(s)}" for s in told)
    where = f"{longest.unit}s {longest.position[0]:,.10g} to {longest.position[-1]:,.10g}; "
    return f"{where if longest.unit != 'line' and len(longest) > 1 else ''}at the end {ends}"


def _began(series: Series) -> str:
    """Where a loss began: whether it moved is what a person looks for first."""
    return f" ({series.values[0]:.4g} at first)" if "loss" in series.name and len(series) > 1 else ""


def _telling(run: Run) -> Iterator[Series]:
    """The training loss or its first terms, the held-out loss, scores (held-out ones first); else all there is."""
    filled = [s for s in run.series if len(s) and s.rank in (None, 0)]
    losses = [s for s in filled if "loss" in s.name]
    train = [run.loss] if run.loss is not None else [s for s in losses if s.group == "train"][:2]
    held_out = [run.val_loss] if run.val_loss is not None else [s for s in losses if s.group != "train"][:1]
    scores = [s for s in filled if _SCORES.match(s.name)]
    yield from (*train, *held_out, *sorted(scores, key=lambda s: s.group == "train"))
    if not (train or held_out or scores):
        yield from filled
