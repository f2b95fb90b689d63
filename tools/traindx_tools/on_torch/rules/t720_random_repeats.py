"""Rows that are drawn anew at each visit are the same to the bit in every epoch.

The sampler says which row of the dataset a batch holds, so that its visits in several epochs can be compared. Where
they are the same, the dataset itself is asked twice for one item, in a forked child: one that answers with other values
each time (augmentation, noise, generated samples) was set back to one random state, by a seed in `worker_init_fn`, by
workers that start anew from a copy of the generator, or by a seed at each epoch. One that answers otherwise only after
what the training changed on it (`set_epoch`) is set back to the first epoch gave workers that never saw the change.
`kind`: "seeded-anew", "change-not-seen".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: repeats"
VISITS, SAME = 32, 0.98
"""Later visits from which on it is judged, and the share of them at which a row is what it was: an epoch that ends
early, or rows that augmentation leaves alone by chance, make less."""

RULE = Rule(
    id="T720",
    name="random-repeats",
    title="What is drawn at random is the same in every epoch",
    severity=Severity.HIGH,
    sees="a checksum of each row at its visits in several epochs, and the dataset asked twice for one item",
    matters="augmentation adds nothing and generated data are a small fixed set: the model memorises them",
    alike=("rows without anything random: the dataset answers twice the same", "validation with fixed draws on "
           "purpose: only what is trained on is judged"),
    confirm=("Print a random number of the dataset's item 0 in two epochs.",
             "Train with num_workers=0 and without any seed in worker_init_fn: the epochs differ."),
    thresholds={"same": Threshold(SAME, "of the later visits", "draws of floats never agree to the bit")},
)


@dataclass(frozen=True)
class Repeats:
    """One dataset. `same` of `again` later visits of its rows were as the first one; `anew`: asked twice, an item
    differs; `by`: the attribute with which it changes, that the training changed."""

    dataset: str
    same: int
    again: int
    epochs: int
    anew: bool
    by: str
    step: int = 0
    rank: int = 0


def worth_asking(same: int, again: int) -> bool:
    """Whether rows were the same at nearly all of enough later visits."""
    return again >= VISITS and same >= SAME * again


def check(seen: Repeats) -> Iterator[Finding]:
    """At most one finding."""
    if not worth_asking(seen.same, seen.again) or not (seen.anew or seen.by):
        return
    head = (f"the random augmentation or draw of {seen.dataset} is identical in each of {seen.epochs} epochs: "
            f"{seen.same} of {seen.again} later visits of a row brought the values of its first visit to the bit, "
            "while ")
    if seen.anew:
        kind, why = "seeded-anew", ("the dataset, asked twice for one item, draws other values each time: its random "
                                    "numbers are seeded or copied in the same state at each epoch (worker_init_fn, a "
                                    "generator that each worker copies, a seed in the epoch loop)")
    else:
        kind, why = "change-not-seen", (f"an item of the dataset changes with {seen.by}, which the training sets at "
                                        "each epoch: the workers keep a copy from before and never see it "
                                        "(persistent_workers)")
    yield RULE.finding(head + why, Location(module=seen.dataset, step=float(seen.step), rank=seen.rank), SOURCE,
                       bearing=Bearing.CAUSE,
                       measured={"kind": kind, "dataset": seen.dataset, "epochs": seen.epochs, "visits": seen.again,
                                 "same": seen.same, "attribute": seen.by})
