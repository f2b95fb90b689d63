"""From files to rows: within the files that a search over files found, the rows that make the symptom come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from traindx_tools.errors import TraindxError
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.spaces.data_files import OneFolder, TwoFolders, digest
from traindx_tools.experiments.isolating.spaces.row_files import ENDINGS, read_rows
from traindx_tools.experiments.isolating.spaces.rows import RowsOfOne, RowsOfTwo
from traindx_tools.experiments.isolating.spaces.space import Space, hashed, over
from traindx_tools.experiments.isolating.spaces.target import Target
from traindx_tools.experiments.place import Prepared


@dataclass(frozen=True)
class Within:
    """See `spaces.space.Space`. The differences of `inner`, in runs that otherwise are as `base`."""

    inner: Space
    base: Prepared

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def identity(self) -> str:
        return self.inner.identity

    @property
    def notes(self) -> tuple[str, ...]:
        return self.inner.notes

    def prepared(self, part: Items) -> Prepared:
        return over(self.base, self.inner.prepared(part))


def rows_of_two(files: TwoFolders, cause: Sequence[int]) -> Space | None:
    """Rows in which the one file of a cause differs; None where it is not in both folders or holds no rows."""
    names = [files.names[i] for i in cause]
    if len(names) != 1 or not names[0].endswith(ENDINGS) or names[0] not in files.good or names[0] not in files.bad:
        return None
    good, bad = files.good[names[0]], files.bad[names[0]]
    target = Target(files.target.command, f"{files.target.path}/{names[0]}")
    try:
        inner = RowsOfTwo(read_rows(good), read_rows(bad), target, hashed(["rows", digest(good), digest(bad)]))
        return Within(inner, files.prepared(frozenset(cause))) if inner.alike else None
    except TraindxError:
        return None


def rows_of_left_out(files: OneFolder, cause: Sequence[int], others: Collection[int]) -> Space | None:
    """Rows of the files of one shard, all other causes left out; None where they hold no rows or not as many."""
    names = [n for i in cause for n in list(files.shards.values())[i]]
    if len(cause) != 1 or not all(n.endswith(ENDINGS) for n in names):
        return None
    try:
        rows = {f"{files.target.path}/{n}": read_rows(files.files[n]) for n in names}
    except TraindxError:
        return None
    if len({r.count for r in rows.values()}) != 1:
        return None
    identity = hashed(["rows left out", *(digest(files.files[n]) for n in names)])
    base = files.prepared(frozenset(range(len(files.labels))) - frozenset(others))
    return Within(RowsOfOne(rows, files.target.command, identity), base)
