"""One shard has another dtype, another shape of its rows or other fields than its siblings.

A file of tokens has no header: whether its numbers are of 16 or 32 bits is told by its bytes (of small numbers of 32
bits every second word is nearly constant), and laid against its siblings and the dtype that settings or code name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import THUMBNAIL, Column
from traindx_tools.on_data.declared import tells_shard
from traindx_tools.on_data.places import of, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.token_widths import WIDTHS, OtherWidth, other_widths
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule

RULE = Rule(
    id="D105",
    name="other-form",
    title="A shard has another form than its siblings",
    severity=Severity.MEDIUM,
    sees="names, dtypes and shapes of the fields, by shard; the width of tokens in files without a header",
    matters="What reads the others fails on it, or reads it as something else: bytes as fractions, channels as height.",
    alike=("int32 beside int64: the same values.", "Sequences of their own length: not compared."),
    confirm=("Look how the file was made.",),
)


_TEXT = frozenset({"csv", "json lines", "json"})


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard that differs from what at least two thirds of three or more have."""
    for data in view.sets:
        shards = [s for s in data.shards if s.columns]
        if len(shards) >= 3:
            for name in (n for n in data.fields if not n.endswith(THUMBNAIL)):  # decoded while time was left
                yield from _missing(data, shards, name)
                yield from _differs(view, shards, name)
    yield from map(_width, other_widths(view))


def _missing(data: DataSet, shards: Sequence[Shard], name: str) -> Iterator[Finding]:
    if any(name in s.sizes or name.removesuffix(".content") in s.sizes for s in shards):
        return  # arrays of one length are a field, of several they may be none
    lacking = [s for s in shards if name not in s.columns]
    if 0 < len(lacking) <= len(shards) // 3:
        if len({s.split for s in shards}) > 1 and all(s.split != "train" for s in lacking):
            return  # held-out data without labels are common
        for shard in (s for s in lacking if name not in s.left_out):  # of another length: D107 tells that
            yield RULE.finding(
                f"{short(shard)} has no field {name}, which {len(shards) - len(lacking)} of its siblings have",
                place(shard),
                shard.name,
                bearing=Bearing.SIGN,
                measured={"field": name, "kind": "field"},
            )


def _form(column: Column) -> tuple[str, str, tuple[int, ...]]:
    """Kind, kind of number ("f", "i", "u1") and shape: widths of one kind are no difference, bytes are."""
    if column.kind != "number":
        return (column.kind, "", ())
    dtype = column.values.dtype
    family = "u1" if dtype.itemsize == 1 and dtype.kind in "iu" else "i" if dtype.kind in "iu" else dtype.kind
    return (column.kind, family, column.row_shape)


def _differs(view: View, shards: Sequence[Shard], name: str) -> Iterator[Finding]:
    having = [s for s in shards if name in s.columns]
    forms = Counter(_form(s.columns[name]) for s in having)
    if len(forms) < 2 or len(having) < 3:
        return
    common, count = forms.most_common(1)[0]
    if count < 2 * len(having) / 3 or len({f[0] for f in forms}) > 1:
        return
    for shard in having:
        kind, family, shape = _form(shard.columns[name])
        if (kind, family, shape) == common:
            continue
        typical = next(s for s in having if _form(s.columns[name]) == common).columns[name]
        if shape != common[2]:
            what, how = "shape", f"rows of shape {list(shape)}, its siblings {list(common[2])}"
        else:
            what, how = "dtype", f"dtype {shard.columns[name].values.dtype}, its siblings {typical.values.dtype}"
            if {family, common[1]} <= {"i", "u1"} or shard.format in _TEXT:
                continue  # the same numbers in a narrower type, or whole numbers that a text writes without a point
        declared = tells_shard(view, having, having.index(shard), name) if what == "dtype" else ""
        yield RULE.finding(
            f"{of(name, shard)} has {how}{f'; {declared}' if declared else ''}",
            place(shard, name),
            shard.name,
            bearing=Bearing.COMPANION if declared else Bearing.CAUSE,
            severity=Severity.INFO if declared else None,
            measured={"field": name, "kind": what},
        )


def _width(odd: OtherWidth) -> Finding:
    tokens = odd.shard.total
    factor = WIDTHS[odd.dtype] / WIDTHS[odd.expected]
    if factor > 1:
        every = "second value is"
        if factor > 2 or odd.dtype != "uint32":
            every = "token is cut in parts, of which some are"
        read = f"every {every} a small constant, and its {tokens:,} tokens become {int(factor * tokens):,}"
    else:
        several = "two" if factor == 0.5 else "four"
        read = f"{several} tokens become one number, and its {tokens:,} tokens become {int(factor * tokens):,}"
    files = f"{short(odd.shard)} and {odd.others} more hold" if odd.others else f"{short(odd.shard)} holds"
    theirs = [f"its {odd.siblings} sibling{'s' * (odd.siblings != 1)} as {odd.expected}"] if odd.siblings else []
    said = [f"{odd.declared_by} says {odd.expected}"] if odd.declared_by else []
    return RULE.finding(
        f"{files} tokens as {odd.dtype}, {' and '.join(theirs + said)}: read so, {read}",
        place(odd.shard),
        odd.shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH,
        measured={"field": "tokens", "kind": "width", "dtype": odd.dtype, "expected": odd.expected,
                  "shard": short(odd.shard), "tokens": tokens},
    )
