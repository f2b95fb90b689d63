"""What makes a series of a log, and the canonical names of several beside each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.readers.growing import Growing
from traindx_tools.on_logs.readers.names import GROUPS, Name, identify, words


@dataclass(frozen=True)
class Key:
    """What makes a series: its name as written, its group and its rank."""

    original: str
    group: str
    rank: int | None = None
    metric: str | None = None
    """The canonical name where something other than the name decides it (a unit, a tag)."""
    counter: str = ""
    """What counts its records, where several counters do in one log (see `one_counter.py`)."""

    @property
    def name(self) -> Name:
        """What the original name stands for."""
        return identify(self.original)


def canonical_names(index: dict[Key, Growing]) -> dict[Key, str]:
    """Canonical names, such that no two metrics of one record share one.

    Of "loss" and "total_loss" in the same record the one that stands earlier in the table keeps the name; the other is
    called by its own. Perplexity beside a codebook is the codebook's.
    """
    vector_quantized = any(k.name.canonical in ("loss/commit", "loss/vq", "codebook_used", "codebook_utilization",
                                                "codebook_size") for k in index)
    names: dict[Key, str] = {}
    taken: dict[tuple[str, str, int | None], list[Key]] = {}
    for key in sorted(index, key=lambda k: k.name.preference):
        name = key.metric or key.name.canonical
        if name == "perplexity" and vector_quantized:
            name = "codebook_perplexity"
        rivals = taken.setdefault((name, key.group, key.rank), [])
        meets = any(_meet(index[key], index[k]) for k in rivals)
        names[key] = own_name(key.original) if meets else name
        if not meets:
            rivals.append(key)
    return names


def _meet(one: Growing, other: Growing) -> bool:
    """Whether two series have a value in the same record."""
    return bool(np.isin(one.told(), other.told(), assume_unique=True).any())


def own_name(original: str) -> str:
    """The name as written, in lower snake case and without its group; a term of the loss keeps saying so."""
    stem = [w for w in words(original) if w not in GROUPS] or ["value"]
    rest = [w for w in stem if w not in ("loss", "losses")]
    if identify(original).canonical in ("loss", "mse", "nll") and rest:
        return "loss/" + "_".join(rest)
    if identify(original).canonical.startswith("memory"):
        return "memory/" + "_".join(w for w in stem if w not in ("mem", "memory"))
    return "_".join(stem)
