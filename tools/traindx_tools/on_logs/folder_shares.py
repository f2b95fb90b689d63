"""Which files of many are looked at: the first of each folder, so that no folder is left out for another one's sake."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence


def first_of_folders(paths: Sequence[str], most: int) -> list[int]:
    """Places of at most `most` paths in their order: all of small folders, and of the others equally many each.

    >>> first_of_folders(["a/1", "a/2", "a/3", "b/1", "c/1", "c/2"], 4)
    [0, 1, 3, 4]
    """
    folders = [os.path.dirname(p) for p in paths]
    left, taken = most, dict.fromkeys(folders, 0)
    waiting = sorted(Counter(folders).items(), key=lambda f: f[1])  # a stable order: the first folders of equal ones
    for k, (folder, files) in enumerate(waiting):
        taken[folder] = min(files, -(-left // (len(waiting) - k)))
        left -= taken[folder]
    out = []
    for i, folder in enumerate(folders):
        if taken[folder]:
            taken[folder] -= 1
            out.append(i)
    return out
