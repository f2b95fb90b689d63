"""The stated distance of one group's clock has the wrong sign.

Local hours of all other groups lie at one part of the day once their stated distances are added; those of one group lie
elsewhere, and where the others' do with the sign turned. Whatever is made of local hours is wrong for its rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.places import percent, short
from traindx_tools.on_data.stated_offsets import ALIKE, APART, FEWEST, GROUPS, Turned, turned
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D211",
    name="offset-turned",
    title="The stated distance of one group's clock has the wrong sign",
    severity=Severity.HIGH,
    sees="distances from one clock that a JSON or YAML file gives to groups, and the hours at which each has rows",
    matters="Rush hours, nights and weekdays of this group's rows are those of another time of day.",
    alike=("A group that is busy at other hours by habit: turning the sign does not make it like the others.",
           "Groups that are busy all day: nothing is told."),
    confirm=("Print the local hours of ten rows of the group and of another one.",
             "Look the zone up: places west of Greenwich are behind it."),
    thresholds={
        "groups": Threshold(GROUPS, "groups", "with a distance, two of the others with different ones"),
        "fewest": Threshold(FEWEST, "rows", "of each group"),
        "alike": Threshold(ALIKE, "of the day's rows", "in common among the others, and with the sign turned"),
        "apart": Threshold(APART, "of the day's rows", "in common as stated, at most"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each property of groups."""
    for data in view.sets:
        for found in turned(data, view.hints.by_name):
            yield _finding(found)


def _finding(found: Turned) -> Finding:
    return RULE.finding(
        f"{found.stated.name} of {found.part} in {found.stated.file} is {found.hours:+g} hours: with it {found.time} "
        f"of its rows in {short(found.shard)} falls at other hours of the day than in the {found.groups - 1} others "
        f"({percent(found.as_is)} in common, {percent(found.others)} among these), with {-found.hours:+g} hours at "
        f"theirs ({percent(found.turned)})",
        Location(file=found.stated.path),
        found.stated.path,
        bearing=Bearing.CAUSE,
        measured={"field": found.stated.name, "by": found.by, "part": found.part, "hours": found.hours,
                  "as_is": found.as_is, "turned": found.turned, "kind": "sign", "shard": short(found.shard)},
    )
