"""The same names stand in two files in another order, where the order is their index.

A list of classes, labels, tokens or features is an index wherever a number is looked up in it. Two lists of one set of
names that disagree give one number two meanings: labels are written with one and read with the other, or the outputs
of a checkpoint are named by a list that is not its own. Lists are compared by the numbers they give, not by how they
are written: an object whose keys are sorted and whose numbers agree is the same list, and so is one that begins with 1.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.name_lists import FEWEST
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

WEIGHTS = (".safetensors", "config.json", "tokenizer.json", "vocab.json")
"""Ends of files that lie with weights and say what these were trained with."""
SHOWN = 3

RULE = Rule(
    id="D161",
    name="order-of-names",
    title="The same names stand in another order in two files",
    severity=Severity.MEDIUM,
    sees="lists of names and their numbers in txt, JSON, YAML, npy and the metadata of safetensors; columns of CSV",
    matters="A number that is written by one list and read by the other means another class, token or feature.",
    alike=("Sorted keys whose numbers agree: the same list.", "A report sorted by score: a remark.",
           "Columns in another order, read by their names: a remark."),
    confirm=("Print the name that each of both lists gives to the number of one labelled row.",),
    thresholds={"fewest": Threshold(FEWEST, "names", "two are in another order by chance half the time")},
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each set of names with two orders, and for each set of tables."""
    by_names: dict[frozenset[str], list[NameList]] = {}
    for found in view.name_lists:
        by_names.setdefault(frozenset(found.names), []).append(found)
    for lists in by_names.values():
        if len({n.names for n in lists}) > 1:
            yield from _of_lists(lists, view.hints.named)
    for data in view.sets:
        yield from _of_columns(data)


def _of_lists(lists: Sequence[NameList], settings: Collection[str]) -> Iterator[Finding]:
    """One finding of one set of names: the list that most agree with beside the first that is otherwise."""
    index = [n for n in lists if n.is_index]
    harmful = len({n.names for n in index}) > 1
    judged = index if harmful else lists
    votes = Counter(n.names for n in judged)
    usual = max(judged, key=lambda n: (n.is_index, votes[n.names], n.numbered))
    others = [n for n in judged if n.names != usual.names]
    odd, moved = others[0], [i for i, n in enumerate(usual.names) if others[0].names[i] != n]
    shown = ", ".join(f"{i} is {_quoted(usual.names[i])} in the first and {_quoted(odd.names[i])} in the second"
                      for i in moved[:SHOWN])
    more = f"; {len(others) - 1} more lists are otherwise" if len(others) > 1 else ""
    own = [n for n in (usual, odd) if n.beside_weights]
    taken = _taken(usual if own == [odd] else odd, own[0], settings) if harmful and len(own) == 1 else ""
    both = f"{_where(usual, odd)} and {_where(odd, usual)}"
    yield RULE.finding(
        f"{both} hold the same {len(odd.names):,} names in another order: {shown}; "
        f"{len(moved):,} names have another place{more}" + ("" if harmful else "; one of both is no index by its name")
        + (f"; {_where(own[0], usual if own[0] is odd else odd)} lies with weights, and the settings name {taken}"
           if taken else ""),
        Location(file=odd.file),
        odd.file,
        bearing=Bearing.CAUSE if taken else Bearing.SIGN,
        severity=Severity.HIGH if taken else None if harmful else Severity.INFO,
        measured={"field": odd.field, "files": (usual.file, odd.file), "names": len(odd.names), "moved": len(moved),
                  "first": odd.names[moved[0]], "kind": _kind(harmful, taken, (usual, odd))},
    )


def _kind(harmful: bool, taken: str, both: Sequence[NameList]) -> str:
    with_weights = any(n.file.endswith(WEIGHTS) for n in both) or sum(n.beside_weights for n in both) == 1
    return "taken" if taken else "remark" if not harmful else "weights" if with_weights else "files"


def _taken(other: NameList, own: NameList, settings: Collection[str]) -> str:
    """What the settings name of two lists: that of another folder than the weights', and not theirs. "" for neither."""
    named = {n.file: [s for s in settings if _is_path_of(s, n.file)] for n in (other, own)}
    more = [s for s in named[own.file] if s not in named[other.file]]
    return "" if more or not named[other.file] or len(other.file) > len(own.file) else named[other.file][0]


def _is_path_of(said: str, file: str) -> bool:
    ends = os.path.normpath(said).lstrip(os.sep)
    return os.path.normpath(file) == ends or os.path.normpath(file).endswith(os.sep + ends)


def _of_columns(data: DataSet) -> Iterator[Finding]:
    """Tables whose columns stand in another order: a remark, as most readers go by names."""
    orders = {s.name: tuple(s.columns) for s in data.shards if s.format == "csv" and len(s.columns) >= FEWEST}
    usual = Counter(orders.values()).most_common(1)
    odd = [s for s in data.shards if s.name in orders and orders[s.name] != usual[0][0]
           and set(orders[s.name]) == set(usual[0][0])]
    if odd:
        moved = [i for i, n in enumerate(usual[0][0]) if orders[odd[0].name][i] != n]
        at = moved[0]
        yield RULE.finding(
            f"the columns of {short(odd[0])} are those of its siblings in another order: column {at} is "
            f"{_quoted(orders[odd[0].name][at])}, and {_quoted(usual[0][0][at])} elsewhere; {len(moved):,} "
            "columns have another place, which a reader by number drops",
            place(odd[0]),
            odd[0].name,
            bearing=Bearing.SIGN,
            severity=Severity.INFO,
            measured={"field": "", "fields": tuple(orders[odd[0].name][i] for i in moved[:20]),
                      "names": len(usual[0][0]), "moved": len(moved), "count": len(odd), "kind": "columns",
                      "shard": short(odd[0])},
        )


def _where(found: NameList, other: NameList) -> str:
    name = os.path.basename(found.file)
    if name == os.path.basename(other.file) and found.file != other.file:
        name = os.path.join(os.path.basename(os.path.dirname(os.path.abspath(found.file))), name)
    return f"{found.field} of {name}" if found.field else name


def _quoted(name: str) -> str:
    return repr(name[:40])
