"""Rows of one table name rows of another by a key, and part of them finds no partner.

A lookup by key gives nothing, or the default, for such rows: features become empty, zero or the mean, and the loss goes
on. Three ways to it are told: the keys are one only after normalising (a leading zero, a capital, "17.0" for "17"), one
file or group has keys that the other table does not know while the others' are all known (another release), and a key
that stands more than once in the table that is to have each once, with different contents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut, cuts_of
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.roles import is_target, is_time, splits_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.used_by_code import UNKNOWN
from traindx_tools.on_data.view import View
from traindx_tools.on_data.written_forms import FORMS
from traindx_tools.rules import Rule, Threshold

FEWEST_KEYS = 10
FEWEST_ROWS = 5
UNIQUE = 0.9
GAIN = 0.02
KNOWN = 0.9
STRANGE = 0.5
FEW = 0.05
MOST_PAIRS = 60
MOST_KEYS = 500_000
_ZEROS, _FRACTION = re.compile(r"^0+(?=\d)"), re.compile(r"^(-?\d+)\.0+$")
_APART = re.compile(r"[\s_\-./:]+")


def _digits(text: str) -> str:
    return _ZEROS.sub("", _FRACTION.sub(r"\1", text))


WRITTEN: Mapping[str, Callable[[str], str]] = {
    "leading zeros and fractions of whole numbers dropped": _digits,
    **FORMS,
    "separators dropped and case folded": lambda t: _APART.sub("", t).casefold(),
}
"""How keys that are one may be written otherwise, the least change first."""

RULE = Rule(
    id="D177",
    name="keys-apart",
    title="Rows find no partner in the table that they name",
    severity=Severity.MEDIUM,
    sees="fields of one name in two tables, one of which has each value once: which values the other knows",
    matters="A lookup gives nothing or the default for these rows, and the loss goes on.",
    alike=("A catalogue that knows more keys than occur: nothing is said.",
           "Some strangers in every part (new users): nothing is said.",
           "Versions of a row with times: a key stands once for each.",
           "Code that normalises keys: a remark."),
    confirm=("Print ten keys without a partner beside the nearest keys of the other table.",
             "Count rows before and after the join, and empty cells behind it."),
    thresholds={"unique": Threshold(UNIQUE, "share of the rows", "with a key of their own: what others name"),
                "gain": Threshold(GAIN, "share of the rows", "that find a partner only after normalising"),
                "strange": Threshold(STRANGE, "share of a part's rows", "without a partner, where others have theirs")},
)


@dataclass(frozen=True, eq=False)
class _Key:
    """A field of a set as texts."""

    data: DataSet
    field: str
    group: tuple[Shard, ...]

    @property
    def is_number(self) -> bool:
        """Whether it holds whole numbers: two tables that number their rows have those in common by chance."""
        return all(s.columns[self.field].kind == "number" for s in self.group)

    @cached_property
    def values(self) -> tuple[list[str], ...]:
        """By shard."""
        return tuple(_texts(s.columns[self.field]) for s in self.group)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each stands there."""
        return Counter(v for part in self.values for v in part)


def check(view: View) -> Iterator[Finding]:
    """A finding for each pair of tables and key, the first of the three ways that is seen."""
    by_name: dict[str, list[_Key]] = {}
    for data in view.sets:
        for key in _keys(data):
            by_name.setdefault(_plain(key.field), []).append(key)
    pairs = ((a, b) for keys in by_name.values() if len(keys) > 1 for b in keys if _is_named(b)
             for a in keys if a is not b and a.data is not b.data and not (_is_named(a) and a.is_number))
    told: set[tuple[str, str]] = set()
    for count, (a, b) in enumerate(pairs):
        if count >= MOST_PAIRS:
            return
        found = _written(a, b) or _strange_part(a, b) or _doubled(a, b)
        if found is not None and (sign := (found.rule, str(found.where) + a.field)) not in told:
            told.add(sign)
            yield found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _keys(data: DataSet) -> Iterator[_Key]:
    for field in data.fields:
        group = tuple(s for s in data.shards if field in s.columns and s.rows and s.numbers is None)
        if not group or is_target(field) or is_time(field) or sum(s.rows for s in group) > MOST_KEYS:
            continue
        if all(_is_key(s.columns[field], s.rows) for s in group):
            yield _Key(data, field, group)


def _is_key(column: Column, rows: int) -> bool:
    """Whether a field may be a key: whole numbers (17.0 as well) or texts, one a row, and no words for splits."""
    if column.kind == "text":
        return len(column.texts) == rows and splits_of(column) is None
    return column.kind == "number" and not column.row_shape and column.missing is None and (
        column.values.dtype.kind in "iu"
        or (column.is_float and bool((column.values == np.floor(column.values)).all())))


def _texts(column: Column) -> list[str]:
    return list(column.texts) if column.kind == "text" else list(map(str, column.values.tolist()))


def _is_named(key: _Key) -> bool:
    """Whether nearly each row of a table has a key of its own: rows of others name it."""
    total = sum(key.counts.values())
    return len(key.counts) >= max(FEWEST_KEYS, UNIQUE * total)


def _known(a: _Key, b: _Key) -> float:
    """The share of the rows of one that find a partner in the other."""
    return sum(n for k, n in a.counts.items() if k in b.counts) / max(1, sum(a.counts.values()))


def _written(a: _Key, b: _Key) -> Finding | None:
    """Keys that are one after normalising: where normalising makes none of the named table's keys one."""
    total, lost = sum(a.counts.values()), [k for k in a.counts if k not in b.counts]
    if sum(a.counts[k] for k in lost) < max(FEWEST_ROWS, GAIN * total):
        return None
    for form, function in WRITTEN.items():
        normal = {function(k): k for k in b.counts}
        if len(normal) < len(b.counts):
            continue
        pairs = {k: normal[f] for k in lost if (f := function(k)) in normal}
        rows = sum(a.counts[k] for k in pairs)
        if rows >= max(FEWEST_ROWS, GAIN * total) and len(pairs) >= min(FEWEST_ROWS, len(lost)) and (
                2 * rows >= sum(a.counts[k] for k in lost)):
            return _of_form(a, b, form, pairs, rows, total)
    return None


def _of_form(a: _Key, b: _Key, form: str, pairs: Mapping[str, str], rows: int, total: int) -> Finding:
    shown = listed([f"{k[:24]!r} for {v[:24]!r}" for k, v in list(pairs.items())[:4]], 4)
    at = next(i for i, part in enumerate(a.values) if any(k in pairs for k in part))
    return RULE.finding(
        f"{rows:,} of {total:,} rows ({percent(rows / total)}) name by {a.field} a row of {short(b.group[0])} that has "
        f"it written otherwise: with {form} they match, as they stand they find no partner ({shown})",
        place(a.group[at], a.field), a.group[at].name, bearing=Bearing.CAUSE,
        measured={"field": a.field, "kind": UNKNOWN, "way": "written", "form": form, "rows": rows,
                  "share": rows / total, "shard": short(a.group[at]), "beside": short(b.group[0])})


def _strange_part(a: _Key, b: _Key) -> Finding | None:
    """A file or group whose keys the other table does not know, where it knows nearly all of the others'."""
    known = tuple(np.array([k in b.counts for k in part], bool) for part in a.values)
    for cut in _cuts(a):
        shares = _by_part(known, cut)
        odd = int(np.argmin([s[0] for s in shares]))
        rest = [s for i, s in enumerate(shares) if i != odd]
        lost = round((1 - shares[odd][0]) * shares[odd][1])
        if len(rest) < 2 or 1 - shares[odd][0] < STRANGE or lost < FEWEST_ROWS or min(s[0] for s in rest) < KNOWN:
            continue
        at = next(i for i, m in enumerate(cut.member) if (m == odd).any())
        strangers = [k for k, ok, m in zip(a.values[at], known[at], cut.member[at], strict=True) if not ok and m == odd]
        return RULE.finding(
            f"{lost:,} of {shares[odd][1]:,} rows of {cut.told(odd)} ({percent(1 - shares[odd][0])}) name by {a.field} "
            f"rows that {short(b.group[0])} does not hold, such as {listed([repr(s[:24]) for s in strangers], 3)}; of "
            f"the other parts it knows at least {percent(min(s[0] for s in rest))}",
            place(a.group[at], a.field), a.group[at].name, bearing=Bearing.CAUSE,
            measured={"field": a.field, "way": "strange part", "part": cut.names[odd], "rows": lost,
                      "share": 1 - shares[odd][0], "shard": short(a.group[at]), "beside": short(b.group[0])})
    return None


def _cuts(a: _Key) -> Sequence[Cut]:
    return [c for c in cuts_of(a.group, a.data.labels) if c.by != a.field and len(c.names) > 2]


def _by_part(known: Sequence[Array], cut: Cut) -> list[tuple[float, int]]:
    """For each part, the share of its rows that are known, and how many it has."""
    out = []
    for part in range(len(cut.names)):
        here = np.concatenate([k[m == part] for k, m in zip(known, cut.member, strict=True)])
        out.append((float(here.mean()) if len(here) else 1.0, len(here)))
    return out


def _doubled(a: _Key, b: _Key) -> Finding | None:
    """Few keys that stand more than once in the table that is named, with different contents."""
    twice = [k for k, n in b.counts.items() if n > 1 and k in a.counts]
    total = sum(b.counts.values())
    if not twice or total - len(b.counts) > FEW * total or any(is_time(f) for s in b.group for f in s.columns):
        return None
    if _known(a, b) < KNOWN or _is_named(a):
        return None
    apart = [k for k in twice if len({_row(s, i) for s, part in zip(b.group, b.values, strict=True)
                                      for i, v in enumerate(part) if v == k}) > 1]
    rows = sum(a.counts[k] for k in apart)
    if not apart or rows < FEWEST_ROWS:
        return None
    return RULE.finding(
        f"{len(apart):,} values of {b.field} stand more than once in {short(b.group[0])} with different contents, "
        f"{listed([repr(k[:24]) for k in apart], 3)} among them, and {rows:,} rows of {short(a.group[0])} name them: a "
        "join makes several rows of each, a lookup takes one of them",
        place(b.group[0], b.field), b.group[0].name, bearing=Bearing.CAUSE, severity=Severity.LOW,
        measured={"field": b.field, "way": "doubled", "keys": len(apart), "rows": rows, "shard": short(b.group[0]),
                  "beside": short(a.group[0])})


def _row(shard: Shard, index: int) -> tuple[object, ...]:
    """The contents of a row, as far as they are single."""
    return tuple(c.texts[index] if c.kind == "text" and len(c.texts) == shard.rows else
                 c.values[index].tobytes() if c.kind == "number" else "" for c in shard.columns.values())
