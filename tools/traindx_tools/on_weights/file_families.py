"""Files of one folder that are parts of one model: their names differ in numbers that count no steps.

Experts, shards of a table and stages of a pipeline are written by many processes, each into a file of its own. Laid
beside each other they are siblings, as the blocks of a stack are.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, Part
from traindx_tools.on_weights.formats.reading import read_checkpoint
from traindx_tools.on_weights.state_tree import same
from traindx_tools.on_weights.tensor import Tensor

FEWEST = 4
"""Files of a family: fewer have no siblings to be compared with."""
MOST_FILES = 256
_OWN = 0.25
"""Share of the names that are in one file alone, where files of ranks are parts and no slices."""
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Family:
    """The files of a family, and the other files of weights in their folder."""

    folder: str
    members: tuple[str, ...]
    beside: tuple[str, ...]


def families(files: Iterable[str], counts_steps: Callable[[str, str], bool]) -> Iterator[Family]:
    """The families of each folder, all of one folder together.

    `counts_steps`: whether a number behind a text is one of steps, as in names of checkpoints of one run.
    """
    held: dict[str, list[str]] = {}
    for file in files:
        if os.path.isfile(file):
            held.setdefault(os.path.dirname(file) or ".", []).append(file)
    for folder, names in held.items():
        members = [f for group in _alike(names) if _is_family(group, counts_steps) for f in group]
        if members and len(names) <= MOST_FILES:
            yield Family(folder, tuple(members), tuple(f for f in names if f not in members))


def _alike(files: Sequence[str]) -> list[list[str]]:
    """Files whose names are the same but for their numbers."""
    groups: dict[str, list[str]] = {}
    for file in files:
        groups.setdefault(_NUMBER.sub("#", os.path.basename(file)), []).append(file)
    return list(groups.values())


def _is_family(files: Sequence[str], counts_steps: Callable[[str, str], bool]) -> bool:
    """Whether so many names differ in numbers of which none counts steps."""
    if len(files) < FEWEST:
        return False
    pieces = [_NUMBER.split(os.path.basename(f)) for f in files]
    changing = [at for at in range(1, len(pieces[0]), 2) if len({p[at] for p in pieces}) > 1]
    return bool(changing) and not any(counts_steps(p[at - 1], p[at]) for p in pieces for at in changing)


def of_ranks(folder: str, files: Sequence[str]) -> Family | None:
    """The files of ranks, where each holds tensors that no other one has: experts, stages; None where they hold slices.
    """
    held = {f: names for f in files[:MOST_FILES] if (names := _names(f))}
    counts = Counter(n for names in held.values() for n in names)
    own = sum(count == 1 for count in counts.values())
    return Family(folder, tuple(held), ()) if own >= max(1, _OWN * sum(counts.values())) else None


def _names(file: str) -> list[str]:
    try:
        return list(read_checkpoint(file).weights.tensors)
    except UnreadableInput:
        return []


def read_family(family: Family) -> Checkpoint:
    """All weights of the folder as one part. A name that several files have stands behind its file's, but for what is
    the same in all of them. Raises UnreadableInput."""
    files = (*family.members, *family.beside)
    read = [(os.path.splitext(os.path.basename(f))[0], read_checkpoint(f)) for f in files]
    held: dict[str, list[tuple[str, Tensor]]] = {}
    for stem, one in read:
        for name, tensor in one.weights.tensors.items():
            held.setdefault(name, []).append((stem, tensor))
    tensors: dict[str, Tensor] = {}
    for name, found in held.items():
        if len(found) > 1 and all(same(found[0][1], t) for _, t in found[1:]) and len(found) == len(read):
            found = [("", found[0][1])]
        for stem, tensor in found:
            told = f"{stem}.{name}" if len(found) > 1 else name
            tensors[told] = replace(tensor, name=told, key=told)
    values = {f"{stem}.{k}": v for stem, one in read for k, v in one.values.items()}
    return Checkpoint(family.folder, "parts of one model", (Part("", tensors),), values=values)
