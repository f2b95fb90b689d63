"""How far the metrics of a run were read and where they end, in one line: what a healthy answer rests on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.on_logs.run import Run, Series

MOST = 4
"""Metrics whose last value is told."""
_SCORES = re.compile(r"^(?:accuracy|f1|auc|map|iou|miou|dice|bleu|rouge|exact|reward|return|wer|cer|psnr|perplexity)")


def course_of(run: Run) -> str:
    """The positions from first to last and the last value of the metrics that matter most; "" without a metric.

    "epochs 1 to 50; at the end box_loss 0.9923, val/loss 1.03, mAP50 0.788". Names are those of the log.
    """
    told = list(dict.fromkeys(_telling(run)))[:MOST]
    if not told:
        return ""
    longest = max(told, key=lambda s: s.position[-1] - s.position[0] if s.unit != "line" else 0.0)
    ends = ", ".join(f"{s.original.strip()} {s.values[-1]:.4g}" for s in told)
    where = f"{longest.unit}s {longest.position[0]:,.10g} to {longest.position[-1]:,.10g}; "
    return f"{where if longest.unit != 'line' and len(longest) > 1 else ''}at the end {ends}"


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
