"""Which files of very many are looked at: some of every kind of name, so that none is hidden behind another one.

A kind is a path in which numbers, and what else only counts or tells apart, are left out: `part-000123.log` and
`part-000124.log` are of one. Small kinds are kept whole, the others have equally many each.
"""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence

SPREAD = "of each kind of name the first, the last and some between, the newest, and those that name a rank"
_COUNTS = re.compile(r"(?<![0-9A-Za-z])(?=[0-9a-f]*\d)[0-9a-fA-F]{6,}(?![0-9A-Za-z])|\d+")
"""A number, or a hash, in a path."""
_RANK = re.compile(r"(?:^|[^a-zA-Z])(?:rank|worker|node|host)[-_.]?\d", re.IGNORECASE)
NEWEST = 20
_MOST_OF_RANKS = 0.75
"""Of all places, those that files of ranks may take."""


def spread_of_names(paths: Sequence[str], most: int) -> list[int]:
    """Places of at most `most` paths in their order: small kinds of names whole, and of the others equally many each.

    Of a kind: its first, its last, and others by a number made of the stem of the name, so that files that belong
    together (`images/7.png`, `labels/7.txt`) are taken together. A path that is gone is not among the newest, no more.

    >>> spread_of_names(["a/1", "a/2", "a/3", "b/1", "c/1", "c/2"], 4)
    [0, 3, 4, 5]
    """
    if len(paths) <= most:
        return list(range(len(paths)))
    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for i, path in enumerate(paths):
        by_kind[_COUNTS.sub("#", path)].append(i)
    newest = _newest(paths, min(NEWEST, most // 10))
    ranks = _some([i for some in by_kind.values() if _RANK.search(os.path.basename(paths[some[0]])) for i in some],
                  paths, int(_MOST_OF_RANKS * most))
    taken = {*newest, *ranks}
    left = [[i for i in some if i not in taken] for some in by_kind.values()]
    for some, share in zip(left, _shares([len(k) for k in left], most - len(taken)), strict=True):
        taken.update(_some(some, paths, share))
    return sorted(taken)


def _shares(sizes: Sequence[int], places: int) -> list[int]:
    """How many of each: all of small ones, of the others equally many; in a stable order where not all get one."""
    out = [0] * len(sizes)
    waiting = sorted(range(len(sizes)), key=lambda k: sizes[k])
    for turn, k in enumerate(waiting):
        out[k] = min(sizes[k], -(-places // (len(waiting) - turn)))
        places -= out[k]
    return out


def _some(places: Sequence[int], paths: Sequence[str], count: int) -> list[int]:
    """So many of some places: the first of each folder as far as that goes, the last, and others by their stem."""
    if len(places) <= count:
        return list(places)
    folders = Counter(os.path.dirname(paths[i]) for i in places)
    if 1 < len(folders) <= count:
        inside: defaultdict[str, list[int]] = defaultdict(list)
        for i in places:
            inside[os.path.dirname(paths[i])].append(i)
        shares = _shares([len(some) for some in inside.values()], count)
        return [i for some, share in zip(inside.values(), shares, strict=True) for i in _some(some, paths, share)]
    ends = [places[0], places[-1]][:count]
    between = sorted(places[1:-1], key=lambda i: (_of_stem(paths[i]), i))[: max(0, count - len(ends))]
    return [*ends, *between]


def _of_stem(path: str) -> int:
    """A number of the name without its endings and of what counts in the path: the same for files of the same place in
    folders beside each other, and as good as chance."""
    what = os.path.basename(path).split(".", 1)[0] + "".join(_COUNTS.findall(path))
    return zlib.crc32(what.encode("utf-8", "surrogateescape"))


def _newest(paths: Sequence[str], count: int) -> list[int]:
    times = []
    for i, path in enumerate(paths):
        try:
            times.append((os.stat(path).st_mtime_ns, i))
        except OSError:
            continue
    return [i for _, i in sorted(times, reverse=True)[:count]]
