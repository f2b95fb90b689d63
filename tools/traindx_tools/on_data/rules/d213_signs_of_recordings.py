"""In a few recordings a feature of a stream has its sign turned against the other streams.

Demonstrations of a mirrored arm, a sensor that was mounted the other way, a controller whose axis points down: each
number is stored, and what the other streams of a row say of it is its negative. Told by recordings, groups of one file
or files of one set, of which most agree and each of the named ones fits as well as they do once the sign is turned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.recordings import FEWEST, Recording, families
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.stream_lags import AS_GOOD
from traindx_tools.on_data.stream_signs import LEFT, MOST_ODD, TOLD, USUAL, Turned, turned_in
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D213",
    name="signs-of-recordings",
    title="In some recordings the sign of a feature is turned",
    severity=Severity.HIGH,
    sees="what the other streams of a recording say of each feature of a stream, as stored and with its sign turned",
    matters="The same state asks for contrary actions there; a mean over all recordings hides it.",
    alike=("A side of its own in each recording: both signs are common, and nothing is said.",
           "A recording that goes another way: what is said of it goes the same way.",
           "Recordings whose streams do not tell each other."),
    confirm=("Plot the feature of a named recording beside what it goes along with.",
             "Turn the sign in a copy and compare the error of a linear model on that recording."),
    thresholds={
        "recordings": Threshold(FEWEST, "recordings", "with the same streams"),
        "told": Threshold(TOLD, "share of the squares", "that the other streams tell in the typical recording"),
        "usual": Threshold(USUAL, "share of the recordings", "whose sign is the usual one, at least"),
        "odd": Threshold(MOST_ODD, "share of the recordings", "that are turned, at most"),
        "as_good": Threshold(AS_GOOD, "of the typical share", "that is told after turning, at least"),
        "left": Threshold(LEFT, "of the squared errors as stored", "that are left after turning, at most"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all recordings and features"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each feature of a family of recordings."""
    for data in view.sets:
        for family in families(data):
            yield from (_finding(family, found) for found in turned_in(family))


def _finding(family: Sequence[Recording], found: Sequence[Turned]) -> Finding:
    worst = min(found, key=lambda one: one.log_chance)
    shard = worst.recording.shard
    one_file = len({r.shard.name for r in family}) == 1
    width = worst.recording.streams[worst.stream].shape[1]
    field = worst.stream if width == 1 else f"feature {worst.feature} of {worst.stream}"
    rest = [n for n in worst.recording.streams if n != worst.stream]
    names = listed([one.recording.name if one_file else short(one.recording.shard) for one in found])
    return RULE.finding(
        f"{field} has its sign turned in {len(found)} of {len(family)} recordings"
        f"{f' of {short(shard)}' if one_file else ''} ({names}): what {listed(rest, 3)} "
        f"{'say' if len(rest) > 1 else 'says'} of it there is {percent(max(0.0, worst.after))} right once it is turned "
        f"back and {percent(max(0.0, worst.before))} as stored; in the typical recording {percent(worst.typical)} as "
        "stored",
        place(shard, worst.stream),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": worst.stream, "feature": worst.feature, "fields": (worst.stream, *rest[:3]),
                  "recordings": tuple(one.recording.name for one in found[:20]), "count": len(found),
                  "of": len(family), "before": worst.before, "after": worst.after, "typical": worst.typical,
                  "repair": "the opposite sign", "shard": short(shard), "kind": "groups" if one_file else "files"},
    )
