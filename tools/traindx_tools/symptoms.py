"""What a person saw, taken from their own words.

Only observations count ("NaN", "hangs", "memory grows"): a theory in the same sentence ("I think it is BatchNorm")
changes nothing, since the person may be wrong about it. The text is data and is never obeyed.
"""

from __future__ import annotations

import re

_SEEN: tuple[tuple[str, str], ...] = (
    ("nonfinite", r"\bnan\b|\binf(inity)?\b|not a number|non.?finite"),
    ("divergence", r"diverg|explod|blow(s|n)? up|through the roof|loss (goes|jumps|shoots) up|unstable|spik"),
    ("not-learning", r"(does|do|did|is|are)(n't| not) (learn|train|improv)|not learning|flat|stuck|plateau|chance|"
                     r"never (rises|improves|gets|drops|falls)|barely|stays (at|near)|stalls?\b|stops improving"),
    ("generalization", r"over-?fit|valid|\bval\b|eval(uation)?\b|test (acc|set|score)|generali[sz]"),
    ("schedule", r"learning.?rate|\blr\b|warm-?up|schedul"),
    ("crash", r"crash|error|exception|traceback|die[sd]\b|stops (at|with|after)|abort|assert|segfault|killed|"
              r"fails? with"),
    ("hang", r"\bhangs?\b|hung|stuck at (the )?(barrier|validation)|freez|dead-?lock|time-?out|"
             r"never (returns|finishes)"),
    ("memory", r"\boom\b|out of memory|memory|\bram\b|swap"),
    ("slow", r"\bslow|throughput|it/s|idle|utili[sz]ation|bottleneck|takes (too long|forever)"),
    ("collapse", r"collaps|perplexity|dead codes?|\ball (the )?same\b|"
                 r"\b(same|identical|constant) (token|output|image|class|answer|label|prediction|action|word|response)"
                 r"s?\b|"
                 r"(output|prediction|answer)s? (are|is) (all )?(identical|constant|the same)|"
                 r"only (ever )?(predicts?|outputs?|names?) (one|a single|the majority)|"
                 r"(predicts?|outputs?) (always|only) (one|the|class)"),
    ("resume", r"resum|pre-?empt|(after|since|from) (a |the )?(restart|checkpoint)|continu(e|ing) (from|training)"),
    ("wrong-output", r"garbled|garbage|gibberish|wrong (output|text|prediction|sample)s?|nonsense|generation|exported|"
                     r"sampl(e|es|ing) (is|are|looks?)"),
)  # fmt: skip
_PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _SEEN)


def observed_symptoms(text: str) -> frozenset[str]:
    """The symptoms (see `catalog.SYMPTOMS`) that the words name. Reads at most 4,000 characters."""
    return frozenset(name for name, pattern in _PATTERNS if pattern.search(text[:4000]))


_SHOWN_BY: dict[str, tuple[str, ...]] = {
    "memory": ("memory",),
    "slow": ("throughput", "tokens_per_second", "step_time", "data_time", "mfu"),
    "generalization": ("validation",),
    "schedule": ("learning_rate",),
    "wrong-output": (),
    "hang": (),
    "crash": (),
}
"""Symptoms that only some recordings can show, and the metrics or groups that do. An empty tuple: no metric can."""


def blind_spots(recorded: frozenset[str], code: bool) -> tuple[str, ...]:
    """What the artifacts leave unjudged, in words: the code where none was read, and what no metric shows.

    `recorded`: canonical names and groups of the metrics. A run that only looks healthy looks so in few of them.
    """
    missing = [words for names, words in _SHOWN if not any(r.startswith(names) for r in recorded)]
    told = [] if code else ["the training code (none was read)"]
    return (*told, *([f"{', '.join(missing)} (not in the log)"] if missing else []))


_SHOWN: tuple[tuple[tuple[str, ...], str], ...] = (
    (("validation", "test"), "held-out data"),
    (("learning_rate",), "the learning rate"),
    (("grad_norm",), "the gradients"),
)
"""What a healthy training run shows, and the metrics or groups in which it does."""


def unseen_symptoms(text: str, recorded: frozenset[str]) -> tuple[str, ...]:
    """Symptoms in the words that none of the recorded metrics (canonical names and groups) could show or refute."""
    return tuple(sorted(s for s in observed_symptoms(text)
                        if s in _SHOWN_BY and not any(r.startswith(_SHOWN_BY[s]) for r in recorded)))
