"""Ranks of one job disagree on what must be equal on all of them.

Learning rate, loss scale, weight norm and the gradient norm after the all-reduce are the same number on every rank of
a data-parallel job; so are the numbers of batches a rank goes through, because each batch brings its collectives. One
rank with a batch more enters a collective that the others never join. Losses differ between ranks (each has its own
data) unless one of them is not finite.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.curves.shapes import number
from traindx_tools.on_logs.run import Note, Run, Series
from traindx_tools.rules import Rule, Threshold

EQUAL = {"learning_rate": Severity.HIGH, "loss_scale": Severity.HIGH, "weight_norm": Severity.HIGH,
         "grad_norm": Severity.MEDIUM}
TOLERANCE, GRADIENT_TOLERANCE = 1e-3, 0.02
MOST_TOLD = 4
"""Ranks that a sentence names."""
MOST_COMPARED = 64
"""Series that are all compared with each other; of more, all with the lowest rank."""
COUNTED = r"batch(?:es)?|steps?|iters?|iterations|samples|examples|param(?:eter)?s|shards?|files"

RULE = Rule(
    id="L701",
    name="rank-disagreement",
    title="Ranks disagree on what must be equal",
    severity=Severity.HIGH,
    sees="Values of the same metric at the same step on different ranks, and counts of batches or parameters that "
         "ranks print.",
    matters="Unequal batch counts end in a hang; unequal rates or weights mean that the replicas are different models.",
    alike=("Losses and accuracies: every rank has other data.",
           "Gradient norms taken before the all-reduce, or of a shard of the parameters."),
    confirm=("Print len(loader) on every rank: a sampler without padding gives the remainder to some of them.",
             "Broadcast or hash the parameters of rank 0 and compare on every rank after the first step."),
    thresholds={
        "tolerance": Threshold(TOLERANCE, "relative", "printed digits; exact equality is not asked for"),
        "gradient": Threshold(GRADIENT_TOLERANCE, "relative, gradient norm", "reduction order in half precision"),
    },
)


@dataclass(frozen=True)
class Count:
    """A number with its noun that a rank printed in a certain sentence."""

    template: str
    noun: str
    values: dict[int, float]
    note: Note


def check(run: Run) -> Iterator[Finding]:
    """Findings for counts in sentences, counts and equal-by-design metrics in series, and one-sided NaN."""
    yield from _counts_in_notes(run)
    by_name: dict[tuple[str, str], list[Series]] = defaultdict(list)
    for s in run.series:
        if s.rank is not None and len(s):
            by_name[s.name, s.group].append(s)
    for (name, _), several in sorted(by_name.items()):
        if len({s.rank for s in several}) < 2:
            continue
        if name in EQUAL:
            yield from _unequal(several, EQUAL[name])
        elif re.search(rf"(?:^|_|/)(?:num_|n_|total_)?(?:{COUNTED})$", name) and name not in ("step", "steps"):
            yield from _unequal_counts(several)
        elif name == "loss" or name.endswith("loss"):
            yield from _one_sided(several)


def _counts_in_notes(run: Run) -> Iterator[Finding]:
    seen: dict[tuple[str, int], dict[int, tuple[str, str, Note]]] = defaultdict(dict)
    for note in run.notes:
        if note.rank is None:
            continue
        template = re.sub(r"\[?\brank\W{0,2}\d+\]?", "", note.text, flags=re.I)
        pattern = re.sub(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "#", template, flags=re.I).strip()
        for k, found in enumerate(re.finditer(rf"\b(\d+)\s+(?:\w+\s+)?({COUNTED})\b", template, re.I)):
            seen[pattern, k].setdefault(note.rank, (found[1], found[0], note))
    told: set[str] = set()
    for (_, _k), ranks in seen.items():
        values = {rank: v for rank, (v, _, _) in sorted(ranks.items())}
        phrase, note = next((p, n) for _, p, n in ranks.values())
        noun = re.sub(r"^\d+\s+", "", phrase)
        if len(values) < 2 or len(set(values.values())) < 2 or noun in told:
            continue
        told.add(noun)
        strange = odd_ranks(values)
        odd = ranks[strange[0]][2]
        yield RULE.finding(
            f"ranks have different numbers of {noun} ({told_of(values)})", Location(
                file=note.source, line=odd.line, rank=odd.rank, quote=odd.text[:200]), note.source,
            bearing=Bearing.SIGN,
            measured={"metric": noun, "kind": "count", "values": tuple(float(v) for v in values.values()),
                      "ranks": tuple(values), "odd": strange, "difference": float(max(map(int, values.values()))
                                                                  - min(map(int, values.values())))})


def odd_ranks(values: Mapping[int, object]) -> tuple[int, ...]:
    """The ranks whose value is not what most have, ascending; all of them where no value is that of most."""
    (common, count), = Counter(values.values()).most_common(1)
    return tuple(sorted(r for r, v in values.items() if v != common or 2 * count <= len(values)))


def told_of(values: Mapping[int, object]) -> str:
    """Values by rank for a sentence: the odd ones, then what all others have."""
    odd = odd_ranks(values)
    named = ", ".join(f"rank {r}: {values[r]}" for r in odd[:MOST_TOLD])
    more = f" and {len(odd) - MOST_TOLD} more" if len(odd) > MOST_TOLD else ""
    others = [v for r, v in values.items() if r not in odd]
    return named + more + (f"; the other {len(others)}: {others[0]}" if others else "")


def _aligned(a: Series, b: Series) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.intp]],
                                            np.ndarray[tuple[int, ...], np.dtype[np.intp]]]:
    """Indices of the values of two ranks that stand at the same step (or epoch)."""
    if a.unit != b.unit or a.unit == "line":
        return np.empty(0, np.intp), np.empty(0, np.intp)
    _, i, j = np.intersect1d(a.position, b.position, return_indices=True)
    return i, j


def _unequal(several: list[Series], severity: Severity) -> Iterator[Finding]:
    first = _usual(several)
    limit = GRADIENT_TOLERANCE if first.name == "grad_norm" else TOLERANCE
    for other in several:
        if other.rank == first.rank:
            continue
        i, j = _aligned(first, other)
        if len(i) < 3:
            continue
        a, b = np.clip(first.values[i], -1e150, 1e150), np.clip(other.values[j], -1e150, 1e150)
        ok = np.isfinite(a) & np.isfinite(b)
        off = ok & (np.abs(a - b) > limit * np.maximum(np.abs(a), np.abs(b)))
        if int(off.sum()) < max(2, 0.3 * int(ok.sum())):
            continue
        k = int(np.argmax(off))
        yield RULE.finding(
            f"{first.name} differs between rank {first.rank} ({number(a[k])}) and rank {other.rank} ({number(b[k])}) "
            f"at {first.unit} {first.position[i[k]]:g}, and in {int(off.sum())} of {int(ok.sum())} common records",
            other.at(int(j[k])), other.source, severity=severity,
            bearing=Bearing.COMPANION if first.name == "grad_norm" else Bearing.SIGN,
            measured={"metric": first.name, "kind": "value", "ranks": (first.rank, other.rank),
                      "values": (float(a[k]), float(b[k])), "position": float(first.position[i[k]]),
                      "records": int(off.sum())})
        return


def _usual(several: list[Series]) -> Series:
    """The series of the rank that agrees with most others, the lowest of such: the others are compared with it."""
    ordered = sorted(several, key=lambda s: s.rank if s.rank is not None else 0)
    limit = GRADIENT_TOLERANCE if ordered[0].name == "grad_norm" else TOLERANCE
    if not 2 < len(ordered) <= MOST_COMPARED:
        return ordered[0]
    return max(ordered, key=lambda s: sum(_agree(s, other, limit) for other in ordered))


def _agree(a: Series, b: Series, limit: float) -> bool:
    i, j = _aligned(a, b)
    return len(i) > 0 and float(np.isclose(a.values[i], b.values[j], rtol=limit, atol=0.0, equal_nan=True).mean()) > 0.7


def _unequal_counts(several: list[Series]) -> Iterator[Finding]:
    last = {s.rank: float(s.values[0]) for s in several
            if s.rank is not None and s.finite[0] and float(s.values[0]).is_integer()}
    constant = all(np.ptp(s.values[s.finite]) == 0 for s in several if s.finite.any())
    if len(last) < 2 or len(set(last.values())) < 2 or not constant:
        return
    listed = told_of({r: f"{v:g}" for r, v in last.items()})
    strange = odd_ranks(last)
    s = next(s for s in several if s.rank == strange[0])
    yield RULE.finding(
        f"ranks have different numbers of {s.name.replace('_', ' ')} ({listed})", s.at(0), s.source,
        bearing=Bearing.SIGN,
        measured={"metric": s.name, "kind": "count", "values": tuple(last.values()),
                  "ranks": tuple(last), "odd": strange,
                  "difference": max(last.values()) - min(last.values()), "position": float(s.position[0])})


def _one_sided(several: list[Series]) -> Iterator[Finding]:
    bad = {s.rank for s in several if not s.finite.all()}
    good = {s.rank for s in several} - bad
    if not bad or not good:
        return
    s = next(s for s in several if not s.finite.all())
    i = int(np.argmax(~s.finite))
    yield RULE.finding(
        f"{s.name} is not finite on rank {s.rank} at {s.unit} {s.position[i]:g} while rank "
        f"{min(r for r in good if r is not None)} stays finite", s.at(i), s.source, bearing=Bearing.SIGN,
        measured={"metric": s.name, "kind": "nonfinite", "ranks": tuple(sorted(r for r in bad if r is not None)),
                  "position": float(s.position[i])})
