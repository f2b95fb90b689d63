"""The headers of some files say another rate, depth, size or number of channels than those of the others.

Told where the files have something in common, a beginning of their names, a folder or a value in a manifest beside
them: a recorder, a camera. Of a rate it is asked whether the number of samples follows: a file that was really taken
at half the rate has half the samples of a second and another spectrum. Where samples and spectra are like those of the
other files, the header is wrong, and everything that is computed in seconds or Hz is. Against the configuration's rate
all files are held.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.origins import WITHIN, groups_of, in_common
from traindx_tools.on_data.places import place, rows
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FIELDS = ("rate", "bits", "channels", "width", "height")
FEWEST = 4
USUAL = 0.5
FOLLOWS = 0.25

RULE = Rule(
    id="D131",
    name="other-header",
    title="Some files have another header than the others",
    severity=Severity.MEDIUM,
    sees="rate, depth, channels and size of pictures and sounds, by words of their names, folder and manifest",
    matters="A loader that does not look takes them as the others: at another speed, brightness or layout.",
    alike=("Another rate, and numbers of samples that follow: a remark.", "Pictures of many sizes.",),
    confirm=("Listen to or look at one named file beside another.",),
    thresholds={
        "fewest": Threshold(FEWEST, "files", "fewer may be single exceptions"),
        "within": Threshold(WITHIN, "of the files with something in common", "that have the other value"),
        "follows": Threshold(FOLLOWS, "of the logarithm of the ratio", "nearer to 0: samples do not follow the rate"),
        "level": Threshold(LEVEL, "probability", "that files with another header share their name by chance"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard of files, field and group; one for files against the configuration."""
    for data in view.sets:
        yield from _between_splits([s for s in data.shards if s.format in ("sounds", "pictures") and s.split])
        for shard in (s for s in data.shards if s.format in ("sounds", "pictures") and s.row_names):
            groups = dict(groups_of(shard.row_names, view))
            for name in (f for f in FIELDS if f in shard.columns and shard.columns[f].missing is None):
                yield from _of_field(shard, name, groups, view.comparisons)
            yield from _against_configuration(shard, view)


def _between_splits(shards: Sequence[Shard]) -> Iterator[Finding]:
    """Held-out files all of which have another value than all training files."""
    train = next((s for s in shards if s.split == "train"), None)
    for shard in (s for s in shards if train is not None and s is not train):
        for name in ("rate", "bits", "channels"):
            sides = [np.unique(s.columns[name].values) for s in (train, shard) if s is not None and name in s.columns]
            if len(sides) < 2 or any(len(v) != 1 for v in sides) or sides[0][0] == sides[1][0]:
                continue
            yield RULE.finding(
                f"the header says {name} {sides[1][0]:g} in all {shard.rows:,} files of {shard.name}, and "
                f"{sides[0][0]:g} in all training files",
                place(shard),
                shard.name,
                bearing=Bearing.SIGN,
                title="Held-out files have another header than training files",
                measured={"field": name, "value": float(sides[1][0]), "usual": float(sides[0][0]),
                          "count": shard.rows, "kind": "split", "shard": shard.name},
            )


def _of_field(shard: Shard, name: str, groups: Mapping[str, Array], comparisons: int) -> Iterator[Finding]:
    values = np.asarray(shard.columns[name].values)
    kinds, counts = np.unique(values, return_counts=True)
    usual = kinds[int(counts.argmax())]
    if len(kinds) < 2 or len(kinds) > 6 or counts.max() < USUAL * len(values):
        return
    for value in (k for k in kinds if k != usual):
        odd = values == value
        told = in_common(odd, groups, comparisons)
        if told is not None and odd.sum() >= FEWEST:
            yield _finding(shard, name, float(value), float(usual), odd, *told)


def _finding(shard: Shard, name: str, value: float, usual: float, odd: Array, common: str, p: float) -> Finding:
    where = np.flatnonzero(odd)
    follows, why = _follows(shard, value / usual, odd) if name == "rate" else (False, "")
    remark = follows or name in ("width", "height")
    return RULE.finding(
        f"the header says {name} {value:g} in {len(where):,} of {shard.rows:,} files, and {usual:g} in the others: "
        f"{common}{why}: {rows(shard, where)}",
        place(shard),
        shard.name,
        bearing=Bearing.COMPANION if remark else Bearing.SIGN,
        severity=Severity.INFO if remark else Severity.HIGH if why else Severity.MEDIUM,
        measured={"field": name, "value": value, "usual": usual, "count": len(where), "p": p,
                  "rows": tuple(int(i) for i in where[:20]),
                  "kind": "follows" if remark else "wrong-rate" if why else "differs", "shard": shard.name},
    )


def _follows(shard: Shard, ratio: float, odd: Array) -> tuple[bool, str]:
    """Whether numbers of samples or spectra follow the rate, with a clause; "" where neither tells."""
    frames = np.asarray(shard.columns["frames"].values, np.float64)
    logs = np.log(np.maximum(frames, 1.0))
    size = abs(math.log(ratio))
    error = 1.25 * math.hypot(*(float(np.std(logs[m])) / math.sqrt(m.sum()) for m in (odd, ~odd)))
    moved = (float(np.median(logs[odd])) - float(np.median(logs[~odd]))) / math.log(ratio)
    if 4.0 * error < (1.0 - 2 * FOLLOWS) * size:
        if abs(moved - 1.0) <= FOLLOWS:
            return True, "; their numbers of samples follow: they last as long as the others"
        if abs(moved) <= FOLLOWS:
            return False, (f"; their numbers of samples do not follow (median {np.median(frames[odd]):.0f} against "
                           f"{np.median(frames[~odd]):.0f}): by the header they last {1 / ratio:.2g} times as long")
    return False, ""


def _against_configuration(shard: Shard, view: View) -> Iterator[Finding]:
    if view.hints.rate is None or "rate" not in shard.columns or shard.columns["rate"].missing is not None:
        return
    values = np.asarray(shard.columns["rate"].values)
    other = values != view.hints.rate
    if not other.any() or (not other.all() and other.sum() < FEWEST):
        return
    told = view.hints.told_by.get("rate", "the configuration")
    kinds = ", ".join(f"{v:g}" for v in np.unique(values[other])[:5])
    yield RULE.finding(
        f"{told} says {view.hints.rate} Hz, and the header {kinds} Hz in {int(other.sum()):,} of {shard.rows:,} files: "
        f"{rows(shard, np.flatnonzero(other))}; does the loader resample?",
        place(shard),
        shard.name,
        bearing=Bearing.SIGN,
        title="Files have another rate than the configuration says",
        measured={"field": "rate", "value": float(values[other][0]), "usual": float(view.hints.rate),
                  "count": int(other.sum()), "kind": "configuration", "shard": shard.name},
    )
