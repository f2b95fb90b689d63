"""The sections of a Gate 4 diagnosis, and which texts say nothing. Standard library only, for the plugin's hook."""

from __future__ import annotations

import re

SECTIONS: tuple[tuple[str, str], ...] = (
    ("symptom", "Symptom"),
    ("root_cause", "Root Cause"),
    ("why_this_happens", "Why This Happens"),
    ("proposed_fix", "Proposed Fix"),
    ("will_change", "What This Fix Will Change"),
    ("will_not_fix", "What This Fix Will NOT Fix"),
)
"""The six sections in their order: field of `Diagnosis`, heading."""

_PLACEHOLDER = re.compile(
    r"\W*(tbd|todo|fixme|xxx+|n/?a|none|nothing|unknown|unclear|placeholder|to be (determined|done|decided|filled)"
    r"|not (sure|known|applicable)|see above|same as above|lorem ipsum.*|fill (this )?in|<[^<>]*>"
    r"|\[[^\[\]]*\])?\W*", re.IGNORECASE | re.DOTALL)

_SHORTEST = 8
"""Characters; anything shorter names no cause and no change."""

_LONGEST_PLACEHOLDER = 80


def empty(text: str) -> bool:
    """True for a text that says nothing: blank, a placeholder, or too short to name anything."""
    bare = text.strip()
    if len(bare) < _SHORTEST or not any(c.isalnum() for c in bare):
        return True
    return len(bare) <= _LONGEST_PLACEHOLDER and _PLACEHOLDER.fullmatch(bare) is not None
