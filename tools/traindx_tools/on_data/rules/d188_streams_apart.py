"""In a few recordings one stream stands some rows too late or too early against the others.

Observations and actions of a demonstration, a sensor and its target, are stored row by row. What one stream says of
another fits row by row in most recordings; in the named ones it fits, as well as elsewhere, only after the stream is
moved: a buffer that was written late, a first frame that was dropped, next states in place of states. Recordings are
groups of one file, arrays of one number in their names, files, or rows whose fields hold all steps of an episode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.recordings import FEWEST, SHORTEST, Recording, alike, families
from traindx_tools.on_data.row_recordings import SAME, rows_as_recordings
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.stream_lags import AS_GOOD, LEFT, REACH, TOLD, USUAL, Lag, lags_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D188",
    name="streams-apart",
    title="In some recordings a stream is shifted against the others",
    severity=Severity.HIGH,
    sees="how well the other streams of a recording tell each stream row by row, as stored and moved up to seven rows",
    matters="Actions are learned for other states than those they were taken in; a mean over all recordings hides it.",
    alike=("A lag by design: it is the same in all recordings, and nothing is said.",
           "Lags that vary from recording to recording: fewer than most fit as stored, and nothing is said.",
           "A recording with more noise, or one that stands still: no move makes it fit as elsewhere."),
    confirm=("Plot both streams of a named recording, as stored and moved back.",
             "Move the stream back in a copy and compare the error of a linear model on that recording."),
    thresholds={
        "recordings": Threshold(FEWEST, "recordings", "with the same streams"),
        "same": Threshold(SAME, "recordings", "with one lag, where a recording is a row"),
        "rows": Threshold(SHORTEST, "rows", "of a recording"),
        "told": Threshold(TOLD, "share of the variance", "that the other streams tell in the typical recording"),
        "usual": Threshold(USUAL, "share of the recordings", "that fit best as stored, at least"),
        "as_good": Threshold(AS_GOOD, "of the typical share", "that is told after moving, at least"),
        "left": Threshold(LEFT, "of that", "that is told as stored, at most"),
        "reach": Threshold(REACH - 1, "rows", "by which a stream is off at most"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all recordings, streams and moves"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each family of recordings."""
    for data in view.sets:
        for family in families(data):
            found = lags_of(family)
            if found:
                yield _finding(family, found)
        for group in data.splits.values():
            for family in alike(rows_as_recordings(group)):
                found = lags_of(family)
                lags = [one.by for one in found]
                kept = [one for one in found if lags.count(one.by) >= SAME]
                if kept:
                    yield _finding(family, kept)


def _finding(family: Sequence[Recording], found: Sequence[Lag]) -> Finding:
    worst = min(found, key=lambda one: one.log_chance)
    shard = worst.recording.shard
    one_file = len({r.shard.name for r in family}) == 1
    within = one_file or worst.recording.of_row
    rest = [n for n in worst.recording.streams if n != worst.stream]
    lags = sorted({one.by for one in found})
    apart = (f"{abs(lags[0])} row{'s' * (abs(lags[0]) != 1)} too {'late' if lags[0] > 0 else 'early'}"
             if len(lags) == 1 else f"{listed([f'{by:+d}' for by in lags])} rows off (positive: too late)")
    names = listed([one.recording.name if within else short(one.recording.shard) for one in found])
    said = (
        f"{worst.stream} stands {apart} against {listed(rest, 3)} in {len(found)} of {len(family)} recordings"
        f"{f' of {short(shard)}' if one_file else ''} ({names}): there the other streams tell "
        f"{percent(max(0.0, worst.before))} of it as stored and {percent(worst.after)} once it is moved back; in the "
        f"typical recording {percent(worst.typical)} as stored"
    )
    said += f" (or {rest[0]} is off the other way)" if len(rest) == 1 else ""
    return RULE.finding(
        said,
        place(shard, worst.stream),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": worst.stream, "fields": (worst.stream, *rest[:3]), "lag": worst.by,
                  "recordings": tuple(one.recording.name for one in found[:20]), "count": len(found),
                  "of": len(family), "before": worst.before, "after": worst.after, "typical": worst.typical,
                  "log_p": float(np.sum([one.log_chance for one in found])), "shard": short(shard),
                  "kind": "groups" if within else "files"},
    )
