"""On which data the values of a file were measured, where its name and that of another file say so together.

Writers of summaries keep a folder for each: `logs/train/` and `logs/validation/`, with the same tags in both
(Keras, `add_scalars`), `learn_error.tsv` beside `test_error.tsv` (CatBoost). What is told of one file alone is no
convention; a name that says its own group keeps it, and a file with a learning rate or a gradient is one of a training
whatever it is called.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from traindx_tools.on_logs.readers.names import GROUPS, TRAIN, identify
from traindx_tools.on_logs.run import Run
from traindx_tools.on_logs.stores import STORED

_WORDS = {**GROUPS, "learn": TRAIN}
_OF_TRAINING = frozenset({"learning_rate", "grad_norm", "loss_scale"})
_PARTS = re.compile(r"[a-z]+")

_Place = tuple[str, str, str, str]
"""A path with its word left out: files of one place belong together."""


def with_groups(parts: Sequence[Run]) -> tuple[Run, ...]:
    """The parts with the group of their series where files that are called alike but for it make it known."""
    together: defaultdict[_Place, dict[int, str]] = defaultdict(dict)
    for i, part in enumerate(parts):
        if part.series and part.artifacts and part.artifacts[0].format not in STORED:
            for place, group in _places(part.artifacts[0].path, summaries=part.artifacts[0].format == "tensorboard"):
                together[place][i] = group
    told: dict[int, str] = {}
    for files in together.values():
        training = {s.name for i, g in files.items() if g == TRAIN for s in parts[i].series}
        told.update({i: g for i, g in files.items() if g != TRAIN and _silent(parts[i])
                     and training & {s.name for s in parts[i].series}})
    return tuple(_of_group(p, told[i]) if i in told else p for i, p in enumerate(parts))


def with_groups_of(part: Run, whole: Run) -> Run:
    """What a part of a file told, in the groups that the whole file's name has given to its series."""
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    for s in whole.series:
        groups[s.name, s.original].add(s.group)
    told = {key: next(iter(found)) for key, found in groups.items() if len(found) == 1}
    return replace(part, series=tuple(replace(s, group=told.get((s.name, s.original), s.group)) for s in part.series))


def by_itself(part: Run) -> Run:
    """A file as if no other one told its group: as one of a training, where it says nothing of its own."""
    own = all(identify(s.original).group is None for s in part.series)
    return _of_group(part, TRAIN) if own and part.series and all(s.group != TRAIN for s in part.series) else part


def _places(path: str, *, summaries: bool) -> list[tuple[_Place, str]]:
    """What a path says by its file's name, and by its folder's: then files with any name belong to it.

    `summaries`: a folder like `test-small` holds summaries; of another kind it may be a run that tests something.
    """
    pure = PurePath(path)
    found = []
    for home, name, end in ((pure.parent, pure.stem, pure.suffix), (pure.parent.parent, pure.parent.name, "/")):
        words = [m for m in _PARTS.finditer(name.lower()) if m.group() in _WORDS]
        if len(words) == 1 and (summaries or end != "/" or words[0].group() == name.lower()):
            at = words[0]
            found.append(((str(home), name[:at.start()], name[at.end():], end), _WORDS[at.group()]))
    return found


def _silent(part: Run) -> bool:
    """Whether nothing in a file says on which data it was measured, or that it is of the training."""
    return all(s.group == TRAIN and identify(s.original).group is None and s.name not in _OF_TRAINING
               for s in part.series)


def _of_group(part: Run, group: str) -> Run:
    return replace(part, series=tuple(replace(s, group=group) for s in part.series))
