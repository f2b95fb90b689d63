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
    ("collapse", r"collaps|same (token|output|image)|perplexity|dead codes?|mode"),
    ("resume", r"resum|restart|pre-?empt|checkpoint|continu(e|ing) (from|training)"),
    ("wrong-output", r"garbled|garbage|gibberish|wrong (output|text|prediction|sample)s?|nonsense|generation|exported|"
                     r"sampl(e|es|ing) (is|are|looks?)"),
)  # fmt: skip
_PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _SEEN)


def observed_symptoms(text: str) -> frozenset[str]:
    """The symptoms (see `catalog.SYMPTOMS`) that the words name. Reads at most 4,000 characters."""
    return frozenset(name for name, pattern in _PATTERNS if pattern.search(text[:4000]))
