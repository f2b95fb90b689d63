"""Between which values a metric can lie, by what it is: a share, a distance, a count. Arithmetic, no experience.

A share is a part of a whole, so it lies in [0, 1], or in [0, 100] where it is printed in per cent; which of the two the
values themselves say (`baselines.fraction` asks the same way). What has no bound on one side has infinity there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from traindx_tools.on_logs.readers.names import words
from traindx_tools.on_logs.run import Series


@dataclass(frozen=True)
class Range:
    """`low` to `high`, both possible. `why`: the definition that says so."""

    low: float
    high: float
    why: str
    share: bool = False
    """A part of a whole, which may be printed in per cent: `high` is 1 or 100."""


_SHARE = Range(0.0, 1.0, "a part of a whole", share=True)
_BELOW_ONE = "1 minus a ratio of squares"
_ROLES: dict[str, Range] = {
    **dict.fromkeys(("accuracy", "accuracy_top5", "f1", "auc", "auprc", "iou", "dice", "precision", "recall", "map",
                     "map50", "map50_95", "c_index", "specificity", "jaccard", "ndcg", "mrr",
                     "clip_fraction", "codebook_utilization", "error_rate"), _SHARE),
    **dict.fromkeys(("r2", "explained_variance"), Range(-math.inf, 1.0, _BELOW_ONE)),
    "ssim": Range(-1.0, 1.0, "a product of a correlation and two ratios below 1"),
    **dict.fromkeys(("perplexity", "codebook_perplexity"), Range(1.0, math.inf, "the exponential of an entropy")),
    **dict.fromkeys(("mse", "mae", "rmse", "chamfer"), Range(0.0, math.inf, "a mean of squares or of distances")),
    **dict.fromkeys(("grad_norm", "weight_norm"), Range(0.0, math.inf, "a norm")),
    **dict.fromkeys(("wer", "cer"), Range(0.0, math.inf, "edits over the length of the reference")),
    **dict.fromkeys(("step_time", "data_time", "epoch_time", "throughput", "tokens_per_second"),
                    Range(0.0, math.inf, "a duration or a rate")),
    "learning_rate": Range(0.0, math.inf, "the size of a step"),
}
"""By canonical name. Left out is what has no bound in general: entropies and log likelihoods of densities, estimates of
a KL, rewards, evidence bounds, any "loss" of an unknown kind."""

_DIVERGENCE = Range(0.0, math.inf, "minus the logarithm of a probability, and a probability is at most 1")
_DISTANCE = Range(0.0, math.inf, "a mean of squares or of distances")
_BY_WORDS: tuple[tuple[frozenset[str], Range], ...] = (
    (frozenset({"bce", "ce", "xent", "crossentropy", "logloss", "mlogloss", "ctc", "focal"}), _DIVERGENCE),
    (frozenset({"cross", "entropy"}), _DIVERGENCE),
    (frozenset({"mse", "mae", "l1", "l2", "huber", "smoothl1", "rmse"}), _DISTANCE),
)
"""Kinds of loss that say by their name what they are. The second line needs both words."""
_TURNED = frozenset({"neg", "negative", "minus", "log", "diff", "delta", "change", "improvement", "relative", "gain"})
"""Words that turn a value round or compare two: then nothing follows from what it was made of."""


def range_of(series: Series) -> Range | None:
    """The range of a series; None where its name does not bind it."""
    spelled = set(words(series.original))
    if spelled & _TURNED or series.inferred:
        return None
    head = series.name.split("/")[0]
    if series.name in _ROLES or head in ("accuracy", "learning_rate", "grad_norm"):
        return _ROLES.get(series.name) or _ROLES[head]
    if head == "loss":
        return next((r for kinds, r in _BY_WORDS if (kinds <= spelled if "cross" in kinds else kinds & spelled)), None)
    return None
