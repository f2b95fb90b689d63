"""Folders that hold files of two kinds, pictures and their label images: each kind is a set of its own.

What a header says of one kind is no property that tells it from the other: nothing is learnt from that, and a folder of
masks is no class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from traindx_tools.on_data.readers.folders import FEWEST
from traindx_tools.on_data.readers.label_pictures import label_image

PAIRED = 0.8
"""Share of the files of each kind whose name the other kind has as well, but for the words that name the kind."""
FEW_VALUES, LOOKED_AT = 8, 12
"""Distinct values of a mask, and grey pictures of each folder that are looked at."""
_HEAD = 33
_WORDS = re.compile(r"[A-Za-z]+|\d+")

Files = Sequence[tuple[Path, str]]


def kinds_of(files: Files) -> Mapping[str, Files]:
    """The files by kind, named by what only its paths have; one kind without a name where they are no pairs.

    Label images have one channel or a palette and no losses; what they belong to has three channels or losses, or grey
    values by the dozen. Classes
    in folders whose files are numbered alike are pairs by name as well, and seldom of two such kinds throughout.
    """
    forms = [_is_label_form(path) for path, _ in files]
    if None in forms:
        return {"": files}
    sides = [[f for f, form in zip(files, forms, strict=True) if form is kind] for kind in (False, True)]
    if all(forms):
        sides = _by_values(files)
    if min(map(len, sides)) < FEWEST:
        return {"": files}
    words = [[_WORDS.findall(Path(below).with_suffix("").as_posix().lower()) for _, below in side] for side in sides]
    common = [set.intersection(*map(set, w)) for w in words]
    own = [c - o for c, o in zip(common, reversed(common), strict=True)]
    names = [{tuple(w for w in some if w not in mine) for some in w} for w, mine in zip(words, own, strict=True)]
    both = len(names[0] & names[1])
    if both < PAIRED * max(map(len, sides)):
        return {"": files}
    called = ["_".join(w for w in some[0] if w in mine) for some, mine in zip(words, own, strict=True)]
    return dict(zip((called[0] or "pictures", called[1] or "label images"), sides, strict=True))


def _by_values(files: Files) -> list[list[tuple[Path, str]]]:
    """Of two folders of grey pictures the one whose pictures have few values, as masks do, comes second."""
    folders: dict[str, list[tuple[Path, str]]] = {}
    for file in files:
        folders.setdefault(Path(file[1]).parts[0], []).append(file)
    if len(folders) != 2 or min(map(len, folders.values())) < FEWEST:
        return [[], []]
    sides = sorted(folders.values(), key=_most_values, reverse=True)
    return sides if _most_values(sides[1]) <= FEW_VALUES < _most_values(sides[0]) / 2 else [[], []]


def _most_values(side: Files) -> int:
    """Distinct values of the richest of some pictures; 0 where they cannot be read."""
    most = 0
    for path, _ in side[::max(1, len(side) // LOOKED_AT)][:LOOKED_AT]:
        try:
            image = label_image(path.read_bytes())
        except (OSError, ImportError):
            return 0
        most = max(most, len(np.unique(image)) if image is not None else 0)
    return most


def _is_label_form(path: Path) -> bool | None:
    """Whether a picture may hold classes: a PNG of one channel or a palette. None of what cannot be opened."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return None
    return head.startswith(b"\x89PNG") and len(head) > 25 and head[25] in (0, 3) and head[24] <= 8
