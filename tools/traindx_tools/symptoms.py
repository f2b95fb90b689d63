"""What a person saw, as kinds of the catalog; and what the artifacts leave unjudged.

The words are read in `symptom/`; this is the short form for callers that ask for kinds alone.
"""

from __future__ import annotations

from traindx_tools.symptom.parse import parse


def observed_symptoms(text: str) -> frozenset[str]:
    """The symptoms (see `catalog.SYMPTOMS`) that the words name. Reads at most 4,000 characters."""
    return frozenset(kind for symptom in parse(text) for kind in symptom.kinds)


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
