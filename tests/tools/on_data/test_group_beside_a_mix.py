"""A group that is otherwise and a file of another mix are both told: what files have is not asked of a group."""

from __future__ import annotations

from traindx_tools.finding import Bearing, Location
from traindx_tools.on_data.one_fault import once
from traindx_tools.on_data.rules import d106_other_mix, d142_odd_part


def test_a_group_within_files_is_no_part_of_a_mix() -> None:
    place = Location(file="a.csv")
    group = d142_odd_part.RULE.finding("a group", place, "a.csv", bearing=Bearing.SIGN, measured={
        "field": "x", "fields": ("x",), "statistic": "its mean", "by": "site", "part": "3", "repair": "",
        "kind": "group"})
    mix = d106_other_mix.RULE.finding("a mix", place, "a.csv", bearing=Bearing.SIGN, measured={
        "field": "y", "fields": ("y",), "effect": 0.4, "kind": "mix"})

    assert {f.rule for f in once([group, mix])} == {"D106", "D142"}
