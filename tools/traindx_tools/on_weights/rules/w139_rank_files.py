"""Files of the ranks of one checkpoint of which two hold the same, or whose parts are not those of the model.

Each rank writes its own part: a slice of the float32 weights and of the moments (ZeRO, FSDP), or its share of each
matrix. Two files that are the same to the bit while all others differ mean that one rank's part was overwritten, and
lost. The parts of all ranks behind each other are the weights of the model, unrounded: a weight that stands nowhere in
them, while the others stand there in order, is of another step or of another rank. All ranks step together: one that
counts fewer steps than the others kept the file of an earlier save; and what each rank keeps whole (the scales and
biases of a tensor parallel model) is the same in all of them: the rank that holds other values is of another save.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.rank_files import (
    RankFile,
    are_equal,
    digest_of,
    partitions,
    rank_files,
    rounded,
    steps_of_rank,
    stored_bits,
)
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_FEWEST, _ALL, _FOUND, _ODD = 3, 0.999, 0.5, 0.9
_WHOLE = 3

RULE = Rule(
    id="W139",
    name="rank-files",
    title="The files of the ranks are not the parts of one model",
    severity=Severity.HIGH,
    sees="tensors of the files of all ranks, bit by bit: those that all should share, those that none should, and flat "
         "float32 parts beside the weights that they round to",
    matters="What the overwritten rank held is lost: a resumed run goes on with another rank's weights in its place.",
    alike=("ranks that are copies of each other by design, in pairs or all", "a model that is written a step later",
           "running statistics that each rank keeps for itself: all ranks differ there, not one",
           "an average that the first rank alone keeps: what it is made from is alike in all"),
    confirm=("compare both files tensor by tensor", "join the parts and compare them with the model's weights"),
    thresholds={
        "files": Threshold(_FEWEST, "files", "of ranks: of two equal ones either may be right"),
        "found": Threshold(_FOUND, "of the weights", "that stand in the joined parts, at least"),
        "whole": Threshold(_WHOLE, "tensors", "that one rank holds otherwise, and more of them than all hold alike"),
        "all": Threshold(_ALL, "of the values of a weight", "that are the rounded ones, where it stands there"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Once a checkpoint."""
    if not seen.main:
        return
    for files in rank_files(seen.checkpoint):
        yield from _copies(seen, files)
        yield from _shared(seen, files)
        yield from _masters(seen, files)
        yield from _steps(seen, files)


def _copies(seen: Seen, files: Sequence[RankFile]) -> Iterator[Finding]:
    """Two files, or few, that are the same, where every other one differs from all."""
    if len(files) < _FEWEST:
        return
    marks = [{n: d for n, t in f.tensors.items() if (d := digest_of(t))} for f in files]
    telling = [n for n in marks[0] if len({m.get(n) for m in marks}) > 1]  # what all ranks have is no rank's part
    groups: dict[tuple[bytes | None, ...], list[int]] = {}
    for i, m in enumerate(marks):
        groups.setdefault(tuple(m.get(n) for n in telling), []).append(i)
    several = [g for g in groups.values() if len(g) > 1]
    if not telling or len(several) != 1 or len(groups) < len(files) - len(several[0]) + 1 or (
            2 * len(several[0]) > len(files) + 1):
        return
    first, *others = (files[i] for i in several[0])
    if not all(are_equal(first.tensors[n], o.tensors[n]) for o in others for n in telling):
        return
    values = sum(first.tensors[n].size for n in telling)
    names = [first.name, *(o.name for o in others)]
    yield RULE.finding(
        f"{' and '.join(names)} of {seen.path} hold the same {len(telling)} tensors to the bit ({values:,} values: "
        f"{', '.join(telling[:3])}), and the files of the other {len(files) - len(names)} ranks differ: the part of "
        "one rank was overwritten", Location(file=others[-1].tensors[telling[0]].file), seen.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "copies", "files": tuple(names), "tensors": len(telling), "of": len(files),
                  "name": names[-1]})


def _shared(seen: Seen, files: Sequence[RankFile]) -> Iterator[Finding]:
    """One rank that holds otherwise whatever all the others hold alike."""
    if len(files) < _FEWEST:
        return
    odd, alike = dict[str, int](), 0
    for name in (n for n in files[0].tensors if all(n in f.tensors for f in files)):
        marks = [digest_of(f.tensors[name]) for f in files]
        usual, times = Counter(marks).most_common(1)[0]
        alike += bool(usual) and times == len(files)
        if times == len(files) - 1 and usual:
            odd[name] = next(i for i, m in enumerate(marks) if m != usual)
    if len(odd) < max(_WHOLE, alike + 1) or len(set(odd.values())) != 1:  # an average that one rank alone keeps
        return
    rank = files[next(iter(odd.values()))]
    names = list(odd)
    yield RULE.finding(
        f"{rank.name} of {seen.path} holds other values of {len(names)} tensors that the other {len(files) - 1} ranks "
        f"hold alike to the bit ({', '.join(names[:3])}): each rank keeps these whole, so its file is of another save",
        Location(file=rank.tensors[names[0]].file), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "shared", "name": rank.name, "files": (rank.name,), "tensors": len(names),
                  "of": len(files)})


def _masters(seen: Seen, files: Sequence[RankFile]) -> Iterator[Finding]:
    """Weights that stand nowhere in the joined parts of the ranks."""
    weights = [t for p in seen.checkpoint.parts if not p.auxiliary for t in p.tensors.values()
               if t.dtype in ("float16", "bfloat16", "float32") and t.file.rpartition("/")[2] not in {
                   f.name for f in files}]
    parts = list(partitions(list(files)))
    lost = list(_nowhere(seen, [w for w in weights if w.size >= 256], parts))
    yield from lost
    if not lost and len(parts) == 1:
        yield from _behind_each_other(seen, weights, parts[0])


def _nowhere(seen: Seen, weights: Sequence[Tensor], parts: Sequence[Sequence[Tensor]]) -> Iterator[Finding]:
    """Each weight is looked for in the joined parts, wherever it stands."""
    if len(weights) < 4 or not parts:
        return
    flat = [t for one in parts for t in one]
    joined = np.concatenate([t.load().reshape(-1).astype(np.float32) for t in flat])
    ends = np.cumsum([t.size for t in flat])
    kinds: dict[str, NDArray[np.generic]] = {}
    places: dict[str, tuple[int, float]] = {}
    for weight in weights:
        if weight.dtype not in kinds:
            kinds[weight.dtype] = joined.view(np.uint32) if weight.dtype == "float32" else rounded(joined, weight.dtype)
        bits = stored_bits(weight)
        places[weight.name] = _place(kinds[weight.dtype], bits.view(f"u{bits.dtype.itemsize}"))
    yield from _lost(seen, weights, places, flat, ends)


def _behind_each_other(seen: Seen, weights: Sequence[Tensor], flat: Sequence[Tensor]) -> Iterator[Finding]:
    """Ranks whose part is not what the weights round to, laid behind each other, where those of the others are."""
    ends = np.cumsum([t.size for t in flat])
    if len({w.dtype for w in weights}) != 1 or not 0 < (total := sum(w.size for w in weights)) <= ends[-1]:
        return
    bits = np.concatenate([stored_bits(w).view(f"u{w.itemsize}") for w in weights])
    shares = []
    for end, part in zip(ends, flat, strict=True):
        values = part.load().reshape(-1).astype(np.float32)[:max(0, total - (end - part.size))]
        made = values.view(np.uint32) if weights[0].dtype == "float32" else rounded(values, weights[0].dtype)
        shares.append(float((made == bits[end - part.size:end][:len(made)]).mean()) if len(made) else 1.0)
    odd = [i for i, share in enumerate(shares) if share < _ODD]
    sound = sum(share >= _ALL for share in shares)
    if odd and sound >= max(2, len(flat) - len(flat) // 3):
        names = [flat[i].file.rpartition("/")[2] for i in odd]
        yield RULE.finding(
            f"the float32 part in {', '.join(names)} is not what the weights of {seen.path} were rounded from "
            f"({shares[odd[0]]:.0%} of {flat[odd[0]].size:,} values agree), and those of the other {sound} ranks are, "
            "to the bit: it is of another step", Location(file=flat[odd[0]].file), seen.path, bearing=Bearing.CAUSE,
            measured={"kind": "part", "name": names[0], "file": names[0], "tensors": len(odd), "of": len(flat)})


def _place(joined: NDArray[np.generic], bits: NDArray[np.generic]) -> tuple[int, float]:
    """Where a weight stands in the joined parts, -1 for nowhere, and how many of its values are those there."""
    size = len(bits)
    for begin in (0, size // 2, max(0, size - 8)):  # a weight that lies over the end of a rank is found by its rest
        some = bits[begin:begin + 8]
        found = np.flatnonzero(joined[:len(joined) - 7] == some[0])
        for k in range(1, len(some)):
            found = found[joined[found + k] == some[k]]
        starts = [int(f) - begin for f in found if f >= begin and f - begin + size <= len(joined)]
        if 0 < len(starts) <= 64:
            shares = [float((joined[s:s + size] == bits).mean()) for s in starts]
            best = int(np.argmax(shares))
            return starts[best], shares[best]
    return -1, 0.0


def _lost(seen: Seen, weights: Sequence[Tensor], places: dict[str, tuple[int, float]], flat: Sequence[Tensor],
          ends: NDArray[np.int64]) -> Iterator[Finding]:
    sound = [w for w in weights if places[w.name][1] >= _ALL]
    odd = [w for w in weights if places[w.name][1] < _ODD]
    if not odd or len(sound) < 4:
        return
    spans = sorted((places[w.name][0], places[w.name][0] + w.size) for w in sound)
    covered = np.zeros(len(flat))
    begin = ends - [t.size for t in flat]
    for lo, hi in spans:
        covered += np.clip(np.minimum(hi, ends) - np.maximum(lo, begin), 0, None)
    shares = covered / [t.size for t in flat]
    if len(sound) < _FOUND * len(weights) and shares.max() < _ODD:  # one whole rank that fits is of this step
        return
    bare = int(np.argmin(shares))
    name = flat[bare].file.rpartition("/")[2]
    yield RULE.finding(
        f"{len(odd)} of {len(weights)} weights of {seen.path} stand nowhere in the float32 parts of its ranks "
        f"({', '.join(w.name for w in odd[:3])}), and {len(sound)} stand there to the bit, rounded; of the part in "
        f"{name} only {covered[bare] / flat[bare].size:.0%} are weights of this model", Location(file=flat[bare].file),
        seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "master", "name": odd[0].name, "tensors": len(odd), "of": len(weights), "file": name})


def _steps(seen: Seen, files: Sequence[RankFile]) -> Iterator[Finding]:
    """Ranks whose optimizer has made another number of steps: all of them step together."""
    counts = {f.name: n for f in files if (n := steps_of_rank(seen.checkpoint, f)) is not None}
    if len(counts) < max(_FEWEST, len(files)):
        return
    (usual, times), *_ = Counter(counts.values()).most_common()
    odd = [n for n, c in counts.items() if c != usual]
    if odd and times > len(counts) / 2:
        yield RULE.finding(
            f"{', '.join(odd[:3])} of {seen.path} {'has' if len(odd) == 1 else 'have'} made {counts[odd[0]]:,} steps, "
            f"and the other {times} ranks {usual:,}: its part is of another step", Location(file=next(
                t.file for f in files if f.name == odd[0] for t in f.tensors.values())), seen.path,
            bearing=Bearing.CAUSE, measured={"kind": "steps", "name": odd[0], "files": tuple(odd),
                                             "steps": counts[odd[0]], "usual": usual, "of": len(files)})
