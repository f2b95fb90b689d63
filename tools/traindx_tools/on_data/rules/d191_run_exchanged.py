"""The labels of one run of pictures or sounds are exchanged, as their names tell runs apart.

A simple model of the other runs is right there about most files; about this one it is steadily wrong, one class for
another. Its labels were written with another map (left for right), or its pictures are mirrored: a camera that was
mounted the other way round, an augmentation that was stored without its label.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.label_maps import AS_GOOD, GAIN
from traindx_tools.on_data.named_runs import ROWS, RUNS, Looked, looked_at, runs_of
from traindx_tools.on_data.places import listed, percent, short
from traindx_tools.on_data.run_maps import FEW, SKILL, RunMap, mapped_runs
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MIRROR = 0.8
"""Of the labels that agree after the exchange, those that agree with the mirrored pictures."""

RULE = Rule(
    id="D191",
    name="run-exchanged",
    title="The labels of one run of files are exchanged",
    severity=Severity.HIGH,
    sees="what a simple model of the other runs, as names tell them (run04_0012), says of each run's files",
    matters="The run teaches the contrary of all others; held out, it makes a good model look bad.",
    alike=("A harder run: the model errs, and not in one way.", "Names without runs: nothing is said.",
           "A model that is hardly right anywhere: nothing is said.",
           "Inputs of another kind than in all other runs (another rate, another device): nothing is said of labels."),
    confirm=("Look at ten files of the run beside their labels.",
             "Exchange the labels, or mirror the pictures, in a copy and train again."),
    thresholds={
        "rows": Threshold(ROWS, "files", "of a run"),
        "runs": Threshold(RUNS, "runs", "of that size"),
        "skill": Threshold(SKILL, "of the way from guessing to perfect", "of the model in the typical run"),
        "gain": Threshold(GAIN, "share of the files", "of the moved labels that agree only after the exchange"),
        "as_good": Threshold(AS_GOOD, "of the typical skill", "after the exchange"),
        "few": Threshold(FEW, "share of the runs", "that may be exchanged"),
        "mirror": Threshold(MIRROR, "of what agrees after the exchange", "that mirrored pictures agree with"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all runs, labels and permutations"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each run; of several words of the names the first that tells it."""
    for data in view.sets:
        for looked in looked_at(data, view):
            for by, runs in runs_of(looked):
                found = mapped_runs(looked, runs, view.comparisons)
                yield from (_finding(looked, by, len(runs), one) for one in found
                            if not one.changed or _is_mirror(looked, one))
                if found:
                    break


def _is_mirror(looked: Looked, found: RunMap) -> bool:
    """Whether the mirrored pictures fit the labels as they are: of sounds nothing is mirrored."""
    sounds = looked.shard.contents is not None and looked.shard.contents.sounds
    return not sounds and found.mirrored >= MIRROR * found.after


def _finding(looked: Looked, by: str, runs: int, found: RunMap) -> Finding:
    pairs = [f"{looked.kinds[k]} for {looked.kinds[int(found.best[k])]}" for k in found.moved]
    mirror = _is_mirror(looked, found)
    said = (
        f"{looked.label} of the files of {found.run} in {short(looked.shard)} says {listed(pairs)}: a simple model of "
        f"the {runs - 1} other runs agrees with {percent(found.before)} of its labels as they are and with "
        f"{percent(found.after)} after undoing that ({percent(found.elsewhere)} in the typical run)"
    )
    if mirror:
        said += f"; mirrored left to right its pictures fit the labels as they are ({percent(found.mirrored)})"
        said += (", and they look mirrored beside all others" if found.looks_mirrored else
                 ", though they look like all others")
    return RULE.finding(
        said,
        Location(file=looked.source),
        looked.shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": looked.label, "run": found.run, "by": by, "before": found.before, "after": found.after,
                  "mirrored": found.mirrored, "looks_mirrored": found.looks_mirrored, "elsewhere": found.elsewhere,
                  "map": tuple((looked.kinds[k], looked.kinds[int(found.best[k])]) for k in found.moved),
                  "log_p": found.log_chance, "shard": short(looked.shard),
                  "kind": "mirrored" if mirror and found.looks_mirrored else "exchanged"},
    )
