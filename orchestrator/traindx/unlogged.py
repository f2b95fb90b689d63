"""A check of a fix that names a metric which this run does not log: what the run logs instead, or how it is measured.

"200 steps: R2 > 0.1" is a riddle where the log has a loss alone. A check that says by itself how it is made ("print the
KL", "a unit test per reward") is left as it is.
"""

from __future__ import annotations

import re

from traindx.promised import promises_of
from traindx_tools.on_logs.run import Run

_BY_HAND = re.compile(r"\btests?\b|\bprint\b|\bby hand\b|\basserts?\b|`|\bthe log\b|\blog (?:the |norms)|\bmonitor\b",
                      re.IGNORECASE)
"""The check says how it is made."""

_HOW: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (r"\bR2\b", ("r2",),
     "R2 is 1 - (squared error of the predictions) / (squared distance of the targets from their mean)"),
    (r"\baccuracy\b", ("accuracy",), "accuracy is the share of rows whose highest output is the label"),
    (r"\bF1\b", ("f1",), "F1 is 2 TP / (2 TP + FP + FN) of a class"),
    (r"(?<!known )\bperplexity\b", ("perplexity", "codebook_perplexity"),
     "perplexity is exp(mean cross-entropy of a token)"),
    (r"(?<!cross-)\bentropy\b", ("entropy",), "entropy is the mean of -sum(p * log(p)) over the outputs"),
    (r"\bKL\b", ("kl", "loss/kl"), "KL is the mean of log p - log q over what the policy drew"),
    (r"\bgrad_norm\b", ("grad_norm",), "grad_norm is what `traindx run -- CMD` records"),
    (r"\bthroughput\b", ("throughput", "tokens_per_second", "step_time"),
     "throughput is samples by the seconds that they took"),
)
"""Words of a check, the series that they mean, and how a run without it measures it."""


def with_how(verify: str, promised: str, run: Run) -> str:
    """The check; with what is logged that the fix should move, and how the metric that is not logged is measured.

    As it is where nothing is logged at all: then it is not known what the run measures.
    """
    logged = {s.name for s in run.series if len(s)}
    missing = [how for words, names, how in _HOW
               if re.search(words, verify, re.IGNORECASE) and logged.isdisjoint(names)]
    if not logged or not missing or _BY_HAND.search(verify):
        return verify
    moves = [str(p) for p in promises_of(promised) if p.metric in logged]
    instead = f"; what is logged and tells as well: {', '.join(moves)}" if moves else ""
    named = " and ".join(how.partition(" is ")[0] for how in missing)
    return f"{verify} (this run logs no {named}: {'; '.join(missing)}{instead})"
