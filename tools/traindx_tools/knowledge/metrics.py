"""Which way a metric is better, by its name; read from `metrics.toml`."""

from __future__ import annotations

import re
from functools import cache

from traindx_tools.knowledge.tables import table


@cache
def better(name: str) -> str:
    """"min", "max"; "" where the name does not say, or says two things."""
    written = table("metrics.toml")
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    words = {w for w in re.split(r"[^a-z0-9]+", spaced.lower()) if w}
    words |= {w.removeprefix(p) for w in words for p in written["prefixes"]}
    falls, rises = bool(words & set(written["falls"])), bool(words & set(written["rises"]))
    if falls == rises or words & set(written["unclear"]):
        return ""
    return "min" if falls else "max"
