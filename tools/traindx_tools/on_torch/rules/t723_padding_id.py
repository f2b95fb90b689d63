"""The id that stands for padding also stands for something real, and the loss ignores it there too.

`kind`: "between": the ignored id stands between other ids of a row, in the inputs and in the targets, where padding
never is: an item, a word or a class has got its number. "no-end": rows end in many different ids, the id that fills
them up is ignored from the first place on, so no place ever asks for an end: the end token serves as padding, or texts
have none. "class": the targets are classes, the ignored one fills them up where the inputs are padding, and it stands
at real places of the inputs too, between classes that are learned: one class has the number of the padding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "ids and targets of the running program"
BETWEEN, SAMPLES = 0.005, 3
ROWS, ENDS, TOP, ALWAYS = 32, 8, 0.3, 0.95
MOST = 0.5
"""Of the real places: a class of more is what is everywhere (outside of all spans), and may be left out on purpose."""

RULE = Rule(
    id="T723",
    name="padding-id-is-real",
    title="The padding id stands for something real",
    severity=Severity.HIGH,
    sees="ids that go into the model and targets of the cross entropy at the same places, in measured steps",
    matters="what has that id is never learned, never predicted, and its row of the embedding may stay zero",
    alike=("padding before or behind a row: on purpose", "masked language models: ignored where inputs are real",
           "a grid of times in which 0 is no event and is ignored on purpose",
           "a class that is left out of the loss on purpose and serves as padding too: its metric is not reported"),
    confirm=("count the id in rows before they are padded: it must not occur",
             "print(tokenizer.pad_token_id, tokenizer.eos_token_id)"),
    thresholds={
        "between": Threshold(BETWEEN, "of the real ids, in inputs and targets", "one in 200: no slip of a batch"),
        "most": Threshold(MOST, "of the real places", "a class of more is what is outside of all spans"),
        "ends": Threshold(ENDS, "different last ids, none in three of ten rows", "an end token would be the last"),
    },
)


@dataclass
class PaddingSeen:
    """Sums over the measured steps."""

    ignored: int | None = None
    """The index that the loss ignores, of the last step in which there was one."""
    step: int = 0
    samples: int = 0
    """Measured steps in which it stood between other ids."""
    between: int = 0
    real: int = 0
    targets_between: int = 0
    targets: int = 0
    rows: int = 0
    """Rows that are filled up behind their last id, in steps whose targets are ids of their inputs."""
    filled: Counter[int] = field(default_factory=Counter)
    """What they are filled up with."""
    last: Counter[int] = field(default_factory=Counter)
    unasked: int = 0
    """Such rows whose first place behind the last id is ignored."""
    rows_filled: int = 0
    """Rows of classes whose filled-up places are all of the ignored class."""
    places: int = 0
    """Their real places."""
    meant: int = 0
    """Those of the ignored class among them."""
    steps_meant: int = 0
    classes: set[int] = field(default_factory=set)
    """At real places."""


def check(seen: Sequence[PaddingSeen], rank: int = 0) -> Iterator[Finding]:
    """At most one finding of each kind."""
    for s in seen:
        where = Location(step=s.step, rank=rank)
        if (s.samples >= SAMPLES and s.between >= BETWEEN * max(1, s.real)
                and s.targets_between >= BETWEEN * max(1, s.targets)):
            yield RULE.finding(
                f"id {s.ignored}, which the loss ignores, stands between other ids in {s.between:,} of {s.real:,} "
                f"places of the inputs and {s.targets_between:,} of {s.targets:,} of the targets that were looked at: "
                f"it stands for something real, and is never learned",
                where, SOURCE, bearing=Bearing.CAUSE,
                measured={"kind": "between", "id": s.ignored or 0, "share": s.between / max(1, s.real)})
        elif (s.rows_filled >= ROWS and s.steps_meant >= SAMPLES and BETWEEN <= s.meant / max(1, s.places) <= MOST
              and len(s.classes) > 2):
            yield RULE.finding(
                f"class {s.ignored}, which the loss ignores, fills up the targets behind the inputs and is the target "
                f"of {s.meant:,} of {s.places:,} real places that were looked at too: what has that class is never "
                "learned",
                where, SOURCE, bearing=Bearing.SIGN,
                measured={"kind": "class", "id": s.ignored or 0, "share": s.meant / max(1, s.places)})
        elif s.rows >= ROWS and s.filled and s.unasked >= ALWAYS * s.rows:
            (filler, count), = s.filled.most_common(1)
            top = s.last.most_common(1)[0][1]
            if count >= ALWAYS * s.rows and len(s.last) >= ENDS and top < TOP * s.rows:
                yield RULE.finding(
                    f"{s.rows:,} rows that were looked at end in {len(s.last)} different ids and are filled up with id "
                    f"{filler}, which the loss ignores from its first place on: no place asks for an end",
                    where, SOURCE, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
                    measured={"kind": "no-end", "id": filler, "rows": s.rows, "last": len(s.last)})
