"""One finding for one fault: of what several observations tell of the same rows and fields, the most telling stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.odd_groups import TELLING
from traindx_tools.on_data.used_by_code import HARMFUL

GENERAL, MAPPED, PAIRING, MIX, SCALE = "D142", "D108", "D109", "D106", "D104"
"""That a part is otherwise; its labels renumbered; its labels and inputs; its values mixed; its scale."""
HEADER = "D163"
AS_GOOD = 0.8
"""Of the labels that agree after undoing a permutation, from which on they were exchanged whatever else is odd."""
OF_INPUTS = frozenset({"D195", "D200", "D201", "D202"})
"""What says how the inputs of a file were changed: what a model of the others makes of them then is no fault of labels.
"""
_VAGUE = frozenset({MIX, "D111", "D113", "D117", GENERAL})
SLACK = 0.05
"""Of a distance of distribution functions, for what sampling adds."""


@dataclass(frozen=True)
class Told:
    """Observations (`odd`) are told by others (`by`; None: any) where both are of the `same`: fields, unless said.

    `why` is for who reads the table. `remark`: it stays as one, as it may tell a fault of its own.
    """

    odd: str
    by: str | None
    why: str
    same: Callable[[Finding, Finding], bool] | None = None
    remark: bool = False

    def tells(self, other: Finding, odd: Finding) -> bool:
        """Whether the other finding tells this one, which is of the row's `odd`."""
        return (self.by is None or other.rule in self.by.split()) and (self.same or _same_fields)(other, odd)


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
    for row in TOLD:
        if odd.rule in row.odd.split() and any(row.tells(other, odd) for other in others):
            return replace(odd, severity=Severity.INFO) if row.remark else None
    return _kept_part(odd, others) if odd.rule == GENERAL else odd


def _kept_part(odd: Finding, others: Sequence[Finding]) -> Finding | None:
    """An odd part without what the mix of a field in it makes, and with the weight of the labels that it explains."""
    mixes = [o for o in others if o.rule == MIX and not _is_exact(odd) and _is_from_mix(odd, o)]
    if any(_same_fields(o, odd) for o in mixes):
        return None
    if mixes:
        said = f"{odd.statement}; the mix of {mixes[0].measured['field']} in it may make that"
        return replace(odd, severity=Severity.INFO, statement=said)
    harm = [o.severity for o in others if o.rule == PAIRING and _undoes(odd, o)]
    return replace(odd, severity=max([odd.severity, *harm], key=lambda s: s.rank)) if harm else odd


def _names_the_fault(other: Finding, odd: Finding) -> bool:
    return (other.rule not in _VAGUE or (other.rule == GENERAL and _is_exact(other))) and _same_fields(other, odd)


def _names_the_part(other: Finding, odd: Finding) -> bool:
    if other.rule in _VAGUE or (other.rule == "D213" and _is_turned(odd, other)):
        return False
    return _same_fields(other, odd) or (_same_source(other, odd) and _same_rows(other, odd))


def _is_turned(part: Finding, sign: Finding) -> bool:
    """Whether a part of the same field is like all others once all of it is negated."""
    return part.measured.get("repair") == "negate" and part.severity is not Severity.INFO and bool(
        {part.measured.get("field"), *_tuple(part, "fields")} & {sign.measured["field"]})


def _same_source(other: Finding, odd: Finding) -> bool:
    return other.source == odd.source


def _of_that_input(other: Finding, odd: Finding) -> bool:
    """Whether a relation is of the training or held-out file, and of columns of either equation of the input."""
    fields = {odd.measured.get("field"), *_tuple(odd, "fields")}
    own = {other.measured["field"], other.measured["target"], *_tuple(other, "terms"), *_tuple(other, "others")}
    return odd.source in (other.source, other.measured["held_out"]) and bool(fields & own)


def _same_set(other: Finding, odd: Finding) -> bool:
    """Whether both are of one folder, or one of a folder in that of the other."""
    return odd.source is not None and other.source is not None and (odd.source + "/").startswith(other.source + "/")


def _same_cells(other: Finding, odd: Finding) -> bool:
    return _same_fields(other, odd) and _same_rows(other, odd)


def _same_header(other: Finding, odd: Finding) -> bool:
    return other.measured["field"] == odd.measured["field"]


def _is_of_one_file(other: Finding, odd: Finding) -> bool:
    return odd.measured["count"] == 1 and _same_fields(other, odd)


def _is_named_by_the_numbers(other: Finding, odd: Finding) -> bool:
    return _same_source(other, odd) and other.measured["field"] == odd.measured.get("told_by")


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
    if "apart" not in part.measured:  # of a group within files, not of a file
        return False
    apart, effect = part.measured["apart"], mix.measured["effect"]
    return isinstance(apart, float) and isinstance(effect, float) and apart <= effect + SLACK


def _is_shift(mapped: Finding, odd: Finding) -> bool:
    return bool(mapped.measured.get("shift")) and _same_fields(mapped, odd)


def _is_exact_there(part: Finding, odd: Finding) -> bool:
    return _is_exact(part) and _same_fields(part, odd)


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
    whole = part.source == mapped.source and part.measured.get("kind") == "shard"
    if mapped.measured.get("how") != "permuted" or not whole or _same_fields(part, mapped):
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

TOLD = (
    Told("D194", None, "That a number is otherwise related to its row is said by whatever names the fault by itself.",
         _names_the_fault),
    Told("D146", "D126 D152 D160", "Two exchanged columns, labels of a group and misread numbers say what it is."),
    Told("D190", "D152", "Labels of a group that is named are told by that."),
    Told("D208", "D108 D109 D123 D152 D153", "How a number is off as a label or as a column says more."),
    Told("D207", "D114", "Turned copies come nearer to all others by some turn, which need not be theirs."),
    Told("D153", "D109 D123 D152", "A column that is shifted is told by what predicts it as a label."),
    Told("D188", "D109 D123 D152 D153", "Of one file that is shifted those say it; this one of several and of groups.",
         _is_of_one_file),
    Told("D203", "D114", "Copies under other words are copies.", _same_source),
    Told("D143", "D114", "As of turned pictures.", _same_cells),
    Told(SCALE, "D189 D136", "A length that is stated in another unit, and channels in another order, have other "
         "scales."),
    Told("D104 D106", "D159 D225", "An axis that stands otherwise, and running sums, have other levels and values."),
    Told(PAIRING, "D136", "Labels follow from channels in another order otherwise.", _same_source, remark=True),
    Told(HEADER, "D131 D154", "Headers that are wrong are told as such, and not as headers that differ.", _same_header),
    Told("D108 D109 D123 D152 D191", "D180", "What a model makes of stretched sounds is no fault of their labels.",
         _same_set),
    Told("D129 D104 D106", "D221 D224", "What a column is made of says why it tells the target, and has other levels."),
    Told("D170 D146 D194", "D221", "An input that contains the target in training obeys another equation there.",
         _of_that_input),
    Told("D106 D165", MAPPED, "Shifted labels have another mix and other counts.", _is_shift),
    Told("D165 D106 D146", "D178", "Numbers that a time of their row contradicts are told as that."),
    Told("D187", "D108 D165 D147 D162", "Those tell which other numbers ids have."),
    Told("D178", "D187", "The time is told by the numbers that are wrong.", _is_named_by_the_numbers),
    Told(MIX, "D164 D165 D187", "Misread texts have other lengths and classes, labels other numbers."),
    Told(MIX, GENERAL, "A part that is named by its rows or by what undoes it.", _is_exact_there),
    Told(MAPPED, GENERAL, "A model of the others takes one class for another in changed inputs.", _bends, remark=True),
    Told("D213", GENERAL, "A file that is negated as a whole is told as that, and not by one of its features.",
         lambda part, sign: _same_source(part, sign) and _is_turned(part, sign)),
    Told(PAIRING, GENERAL, "What undoes an odd shard is why its labels follow otherwise.", _undoes, remark=True),
    Told("D109 D108", f"{' '.join(sorted(OF_INPUTS))} {SCALE}", "An input that was changed makes its labels odd.",
         _changes_inputs, remark=True),
    Told("D104 D106", " ".join(sorted(OF_INPUTS)), "How the inputs were changed says why they have another scale."),
    Told(GENERAL, None, "A more telling observation of the same fields, or of the same rows.", _names_the_part),
)
"""From the first to the last: the first row that holds decides."""
