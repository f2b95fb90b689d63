"""A manifest and the files beside it do not agree: listed and not there, listed twice, or there and never listed.

A file that some rows name again is design (boxes of a picture, segments of a recording), unless the rows are equal in
all fields; a file that training and held-out rows name is a leak, unless a row is a pair of files, each of which stands
beside many others: what is new then is the pair, and D116 compares pairs. Files that no manifest names may be left out
on purpose; a block of them without a gap, in the order of their names, is a manifest that was cut.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.listings import Listing, pairings_of
from traindx_tools.on_data.places import listed, percent, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.summary import mixed
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

OFTEN = 0.05
BLOCK = 4

RULE = Rule(
    id="D134",
    name="listed-files",
    title="A manifest and its files do not agree",
    severity=Severity.MEDIUM,
    sees="names of files in the columns of tables, and the files that are there",
    matters="What is not there ends the loader; what is listed twice counts twice, or is in two splits.",
    alike=(
        "Several rows of one file: boxes, segments, annotators.",
        "Pairs of one pool of files, as a comparison of faces has: the pairs are others.",
        "Files that were left out on purpose: here and there.",
        "A manifest of files that lie elsewhere.",
    ),
    confirm=("List the named files.", "Count the manifest's rows and the files of its folders."),
    thresholds={
        "often": Threshold(OFTEN, "share of the files", "listed twice: above, several rows a file are design"),
        "block": Threshold(BLOCK, "files", "in the order of names, without a gap, that no manifest lists"),
        "level": Threshold(LEVEL, "probability", "that so many left out one by one stand together"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """What is wrong in each list, and in all together."""
    for listing in view.listings:
        yield from _missing(listing)
        yield from _twice(listing)
    yield from _in_two_splits(view.listings)
    yield from _never_listed(view.listings)


def _missing(listing: Listing) -> Iterator[Finding]:
    gone = np.flatnonzero(listing.at == -1)
    if len(gone):
        texts = listing.shard.columns[listing.field].texts
        yield _finding(
            listing.shard, listing.field, "missing", gone,
            f"{short(listing.shard)} lists {len(gone):,} files that are not there: "
            f"{listed([texts[i] for i in gone])} ({rows(listing.shard, gone)})",
        )


def _twice(listing: Listing) -> Iterator[Finding]:
    """Rows that are equal in all fields, of a table that names nearly every file once."""
    known = np.flatnonzero(listing.at >= 0)
    files, first, inverse = np.unique(listing.at[known], return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse.reshape(-1)] < np.arange(len(known)))
    if not len(again) or len(np.unique(listing.at[known[again]])) > OFTEN * len(files):
        return
    marks = _marks(listing.shard)
    equal = known[again][marks[known[again]] == marks[known[first[inverse.reshape(-1)[again]]]]]
    if len(equal):
        names = [os.path.basename(listing.files[listing.at[i]]) for i in equal]
        yield _finding(
            listing.shard, listing.field, "twice", equal,
            f"{short(listing.shard)} lists {len(equal):,} files again, in rows equal in all fields: {listed(names)} "
            f"({rows(listing.shard, equal)})", Severity.LOW, Bearing.SIGN,
        )


def _marks(shard: Shard) -> Array:
    """uint64 shape (rows,): a hash of all fields of each row but for its number."""
    out = np.zeros(shard.rows, np.uint64)
    for name, column in shard.columns.items():
        digests = shard.summaries[name].digests
        single = column.is_integer and column.offsets is None and not column.row_shape and shard.rows > 1
        counts = single and bool((np.diff(column.values.astype(np.int64)) == 1).all())
        if len(digests) == shard.rows and not counts:
            out = mixed(out + digests)
    return out


def _in_two_splits(listings: Sequence[Listing]) -> Iterator[Finding]:
    """Files that training and held-out rows name."""
    paired = pairings_of(listings)
    single = [x for x in listings if (id(x.shard), x.field) not in paired]
    train = [x.at[(x.splits == "train") & (x.at >= 0)] for x in single]
    known = np.unique(np.concatenate(train)) if train else np.zeros(0, np.int64)
    for listing in single if len(known) else ():
        held = ~np.isin(listing.splits, ("", "train")) & (listing.at >= 0)
        both = np.flatnonzero(held & np.isin(listing.at, known))
        if len(both):
            names = [os.path.basename(listing.files[listing.at[i]]) for i in both]
            yield _finding(
                listing.shard, listing.field, "two-splits", both,
                f"{len(both):,} of the {int(held.sum()):,} held-out rows of {short(listing.shard)} "
                f"({percent(len(both) / held.sum())}) name files that training rows name too: {listed(names)} "
                f"({rows(listing.shard, both)})", Severity.HIGH,
            )


def _never_listed(listings: Sequence[Listing]) -> Iterator[Finding]:
    """A block of files of the lists' folders and endings that is in no list."""
    if not listings:
        return
    files = listings[0].files
    named = np.unique(np.concatenate([x.at[x.at >= 0] for x in listings]))
    kinds = {_kind(files[i]) for i in named}
    for kind in sorted(kinds):
        there = sorted((i for i, f in enumerate(files) if _kind(f) == kind), key=lambda i: _natural(files[i]))
        left = ~np.isin(there, named)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], left, [False]]).astype(np.int8)))
        if len(edges) != 2 or edges[1] - edges[0] < BLOCK or 2 * left.sum() > len(there):
            continue
        count = int(left.sum())
        ways = math.lgamma(len(there) + 1) - math.lgamma(count + 1) - math.lgamma(len(there) - count + 1)
        if math.log(len(there) * len(kinds)) - ways < math.log(LEVEL):
            names = [os.path.basename(files[there[i]]) for i in np.flatnonzero(left)]
            shard = listings[0].shard
            yield _finding(
                shard, listings[0].field, "unlisted", np.zeros(0, np.int64),
                f"{count:,} of {len(there):,} files of {os.path.basename(kind[0])} are in no list, {names[0]} to "
                f"{names[-1]} without a gap; {short(shard)} lists the others", None, Bearing.SIGN,
            )


def _kind(file: str) -> tuple[str, str]:
    return os.path.dirname(file), os.path.splitext(file)[1].lower()


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(t), "") if t.isdigit() else (-1, t) for t in re.findall(r"\d+|\D+", name))


def _finding(shard: Shard, field: str, kind: str, index: Array, said: str, severity: Severity | None = None,
             bearing: Bearing = Bearing.CAUSE) -> Finding:
    numbers = index if shard.numbers is None else shard.numbers[index]
    return RULE.finding(
        said, place(shard, field), shard.name, bearing=bearing, severity=severity,
        measured={"field": field, "kind": kind, "rows": tuple(int(i) for i in numbers[:20]), "shard": short(shard)},
    )
