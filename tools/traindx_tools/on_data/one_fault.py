"""One finding for one fault: of what several observations tell of the same rows and fields, the most telling stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.odd_groups import TELLING
from traindx_tools.on_data.used_by_code import HARMFUL

GENERAL = "D142"
"""The observation that a part is otherwise: where another one says what it is, that one is enough."""
NOISY = "D190"
"""Labels of a group that D152 names are told by that."""
EXCHANGED, RELATION, LABELS, THOUSANDS = "D126", "D146", "D152", "D160"
"""Of two exchanged columns of a file, of the labels of a group, and of misread numbers those say what it is."""
SHIFTED, PAIRED = "D153", frozenset({"D109", "D123", "D152"})
"""A column that is shifted is told of once: by what predicts it as a label where that sees it."""
STREAMS = "D188"
"""Of one file that is shifted those say it, of several files and of groups this one."""
COPIES, TURNED, REWORDED = "D114", "D143", "D203"
"""Turned copies of training pictures come nearer to all others by some turn, which need not be theirs."""
HEADER, WRONG_HEADERS = "D163", frozenset({"D131", "D154"})
"""Headers that are wrong are told as such, and not as headers that differ."""
REORDERED = "D136"
"""Channels in another order have other scales, and their labels follow from other inputs."""
SCALE, STATED = "D104", "D189"
"""A length that is stated in another unit has another scale."""
MIX, PAIRING, MAPPED = "D106", "D109", "D108"
COUNTED, TOLD, RENUMBERED = "D165", "D178", "D187"
"""Numbers that a time of their row contradicts are told as that."""
MIXES = frozenset({"D164", COUNTED, RENUMBERED})
"""What makes another mix by itself: texts that were misread have other lengths and classes, labels other numbers."""
AS_GOOD = 0.8
"""Of the labels that agree after undoing a permutation, from which on they were exchanged whatever else is odd."""
BY_MAP = frozenset({MAPPED, COUNTED, "D147", "D162"})
"""What tells which other numbers ids have."""
OF_INPUTS = frozenset({"D195", "D200", "D201", "D202"})
"""What says how the inputs of a file were changed: what a model of the others makes of them then is no fault of labels.
"""
_VAGUE = frozenset({MIX, "D111", "D113", "D117", GENERAL})
RELATED = "D194"
"""That a number is otherwise related to its row is said by whatever names the fault by itself."""
APART, REARRANGED = "D208", "D207"
"""A number that does not go along with its row is told by what says how it is off as a label or as a column."""
SLACK = 0.05
"""Of a distance of distribution functions, for what sampling adds."""


def once(found: list[Finding]) -> list[Finding]:
    """One finding for one fault: of those that one fault explains stays the one that names it most exactly.

    Headers that tell pictures and sounds apart explain what is odd of them, though without code they are a remark.
    The others go; they become remarks where they may tell a fault of their own.
    """
    alarms = [f for f in found if f.severity is not Severity.INFO
              or (f.rule == HEADER and f.measured["field"] in HARMFUL)]
    return [kept for f in found if (kept := _kept(f, [o for o in alarms if o is not f])) is not None]


def _kept(odd: Finding, others: Sequence[Finding]) -> Finding | None:
    """The finding, as a remark or with the weight of what it explains; None where another one tells the same."""
    if odd.rule == RELATED and any((o.rule not in _VAGUE or (o.rule == GENERAL and _is_exact(o)))
                                   and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == RELATION and any(o.rule in (EXCHANGED, LABELS, THOUSANDS) and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == NOISY and any(o.rule == LABELS and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == APART and any(o.rule in PAIRED | {SHIFTED} and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == REARRANGED and any(o.rule == COPIES and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == SHIFTED and any(o.rule in PAIRED and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == STREAMS and odd.measured["count"] == 1 and any(
            o.rule in PAIRED | {SHIFTED} and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == REWORDED and any(o.rule == COPIES and o.source == odd.source for o in others):
        return None
    if odd.rule == TURNED and any(o.rule == COPIES and _same_fields(o, odd) and _same_rows(o, odd) for o in others):
        return None
    if odd.rule == SCALE and any(o.rule == STATED and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == SCALE and any(o.rule == REORDERED and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == PAIRING and any(o.rule == REORDERED and o.source == odd.source for o in others):
        return replace(odd, severity=Severity.INFO)
    if odd.rule == HEADER and any(o.rule in WRONG_HEADERS and o.measured["field"] == odd.measured["field"]
                                  for o in others):
        return None
    if odd.rule in (MIX, COUNTED) and any(_is_shift(o) and _same_fields(o, odd) for o in others):
        return None
    if odd.rule in (COUNTED, MIX, RELATION) and any(o.rule == TOLD and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == RENUMBERED and any(o.rule in BY_MAP and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == TOLD and any(o.rule == RENUMBERED and o.source == odd.source
                                and o.measured["field"] == odd.measured.get("told_by") for o in others):
        return None
    if odd.rule == MIX and any(o.rule in MIXES and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == MIX and any(o.rule == GENERAL and _is_exact(o) and _same_fields(o, odd) for o in others):
        return None
    if odd.rule == MAPPED and odd.measured.get("how") == "permuted" and any(_bends(o, odd) for o in others):
        return replace(odd, severity=Severity.INFO)
    if odd.rule == PAIRING and any(_undoes(o, odd) for o in others):
        return replace(odd, severity=Severity.INFO)
    if odd.rule in (PAIRING, MAPPED) and any(_changes_inputs(o, odd) for o in others):
        return replace(odd, severity=Severity.INFO)
    if odd.rule in (SCALE, MIX) and any(o.rule in OF_INPUTS and _same_fields(o, odd) for o in others):
        return None
    return _kept_part(odd, others) if odd.rule == GENERAL else odd


def _kept_part(odd: Finding, others: Sequence[Finding]) -> Finding | None:
    """Without odd parts that a more telling observation of the same file and field, or of the same rows, explains."""
    if any(_same_fields(o, odd) or (o.source == odd.source and _same_rows(o, odd))
           for o in others if o.rule not in _VAGUE):
        return None
    mixes = [o for o in others if o.rule == MIX and not _is_exact(odd) and _is_from_mix(odd, o)]
    if any(_same_fields(o, odd) for o in mixes):
        return None
    if mixes:
        said = f"{odd.statement}; the mix of {mixes[0].measured['field']} in it may make that"
        return replace(odd, severity=Severity.INFO, statement=said)
    harm = [o.severity for o in others if o.rule == PAIRING and _undoes(odd, o)]
    return replace(odd, severity=max([odd.severity, *harm], key=lambda s: s.rank)) if harm else odd


def _is_exact(part: Finding) -> bool:
    """Whether an odd part is named by its rows, or by the operation that undoes it."""
    return bool(part.measured.get("repair")) or part.measured.get("kind") == "stretch"


def _is_from_mix(part: Finding, mix: Finding) -> bool:
    """Whether another mix of values makes all of the difference of an odd shard.

    Where rows of one value are as everywhere, no field is further apart than the values are.
    """
    if mix.source != part.source:
        return False
    if _same_fields(mix, part) and mix.measured["kind"] == "lengths" and "length" in str(part.measured["statistic"]):
        return True
    apart, effect = part.measured["apart"], mix.measured["effect"]
    return isinstance(apart, float) and isinstance(effect, float) and apart <= effect + SLACK


def _is_shift(mapped: Finding) -> bool:
    return mapped.rule == MAPPED and bool(mapped.measured.get("shift"))


def _undoes(part: Finding, pairing: Finding) -> bool:
    """Whether the operation that makes an odd shard like all others is why its labels follow otherwise."""
    return (part.rule == GENERAL and part.severity is not Severity.INFO and part.source == pairing.source
            and part.measured.get("kind") == "shard" and str(part.measured.get("repair")).startswith(TELLING)
            and pairing.measured.get("kind") == "other-relation")


def _changes_inputs(part: Finding, labels: Finding) -> bool:
    """Whether an input of the labels, and not they themselves, is told to be changed in the same file."""
    fields = {part.measured.get("field"), *_tuple(part, "fields")}
    of_inputs = part.rule in OF_INPUTS or (part.rule == SCALE and labels.rule == PAIRING)
    return of_inputs and part.source == labels.source and part.severity.rank >= labels.severity.rank and (
        labels.measured.get("field") not in fields and bool(fields & set(_tuple(labels, "inputs"))))


def _bends(part: Finding, mapped: Finding) -> bool:
    """Whether the inputs of a shard are otherwise, so that a model of the others takes one class for another there.

    Labels that were exchanged leave the inputs as they are.
    """
    whole = part.rule == GENERAL and part.source == mapped.source and part.measured.get("kind") == "shard"
    if not whole or _same_fields(part, mapped):
        return False
    after = mapped.measured.get("after")
    return str(part.measured.get("repair")).startswith(TELLING) or (isinstance(after, float) and after < AS_GOOD)


def _same_fields(other: Finding, odd: Finding) -> bool:
    """Whether both are of one file, and of one field at least."""
    mine = {odd.measured.get("field"), *_tuple(odd, "fields")}
    return other.source == odd.source and bool({other.measured.get("field"), *_tuple(other, "fields")} & mine)


def _tuple(finding: Finding, name: str) -> tuple[object, ...]:
    said = finding.measured.get(name)
    return said if isinstance(said, tuple) else ()


def _same_rows(other: Finding, odd: Finding) -> bool:
    """Whether the rows of one, from the first to the last, are mostly those of the other."""
    spans = [[n for n in _tuple(f, "run") or _tuple(f, "rows") if isinstance(n, int)] for f in (other, odd)]
    if not all(spans):
        return False
    both = min(map(max, spans)) - max(map(min, spans)) + 1
    return both > 0.5 * (max(map(max, spans)) - min(map(min, spans)) + 1)
