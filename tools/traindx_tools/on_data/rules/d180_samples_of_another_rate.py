"""The sounds of one origin hold samples of another rate than their headers say: shorter and higher, or the reverse.

Samples at 8 kHz under a header of 16 kHz last half as long, and all that sounds lies an octave too high. Each of both
may be a speaker's way; both by one ratio, which is that of a usual rate to the header's, while all other origins have
one length and one spectrum, are a header that was written over other samples. So is it where the background of a
recorder hides the spectrum, and the labels of all others hold once what sounds is stretched by that ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.named_runs import looked_of
from traindx_tools.on_data.origins import groups_of
from traindx_tools.on_data.places import number, percent, place
from traindx_tools.on_data.rates_by_labels import Undone, labels_undone
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 96000)
FEWEST, GROUPS, MOST_GROUPS = 8, 4, 200
LABELLED = 3
"""Origins where labels decide: the one, and two whose labels hold for each other."""
NEAR = 0.15
STEADY = 0.35
BETTER, APART = 0.8, 1.5
LEAST = 1.2
_GRID = np.exp(np.linspace(-math.log(4.5), math.log(4.5), 61))

RULE = Rule(
    id="D180",
    name="samples-of-another-rate",
    title="Sounds of one origin hold samples of another rate than their headers say",
    severity=Severity.HIGH,
    sees="lengths in seconds and mean spectra of wave files, by name, folder and manifest",
    matters="Speech is twice as fast and an octave too high there: the model hears other sounds; no reader objects.",
    alike=(
        "A speaker who is quick, or whose voice is high: only one of both, or by no ratio of rates.",
        "Sounds that were cut or padded to one length: nothing is told of them.",
        "Origins of different sounds, such as words or species: their lengths differ all.",
    ),
    confirm=("Play one of the named files at the named rate.",
             "Write the named rate into the header of a copy, and compare length and spectrum again."),
    thresholds={
        "fewest": Threshold(FEWEST, "sounds", "of an origin"),
        "groups": Threshold(GROUPS, "origins", "fewer have no usual length, unless labels decide"),
        "near": Threshold(NEAR, "of the ratio", "that lengths and spectra may be off"),
        "steady": Threshold(STEADY, "of the ratio's logarithm", "that the lengths of all others differ by, at most"),
        "better": Threshold(BETTER, "of the distance to the others' spectrum", "that is left after undoing the ratio"),
        "apart": Threshold(APART, "times that of the other origins", "the distance as it is, at least"),
        "least": Threshold(LEAST, "the ratio", "a smaller one is a way of speaking"),
    },
)


@dataclass(frozen=True, eq=False)
class _Sounds:
    shard: Shard
    names: list[str]
    seconds: Array
    spectra: Array
    """float64 shape (sounds, bands): mean logarithm of the power in bands of equal width up to half the rate."""
    rate: int


@dataclass(frozen=True, eq=False)
class _Odd:
    """By what an origin is told, which, its sounds, the ratio of rates and that of lengths, and what labels say."""

    by: str
    which: str
    inside: Array
    ratio: float
    lasts: float
    undone: Undone | None


def check(view: View) -> Iterator[Finding]:
    """At most one finding for each set."""
    for data in view.sets:
        sounds = _sounds(data)
        found = _odd(sounds, view, data) if sounds is not None and len(sounds.names) >= LABELLED * FEWEST else None
        if sounds is not None and found is not None:
            yield _finding(sounds, found)


def _sounds(data: DataSet) -> _Sounds | None:
    """The sounds of the most frequent rate that were looked at."""
    shards = [s for s in data.shards if s.contents is not None and s.contents.sounds and len(s.row_names) == s.rows
              and "frames" in s.columns and "rate" in s.columns]
    if not shards:
        return None
    rates, frames, names, spectra = [], [], [], []
    for shard in shards:
        looks = shard.contents
        assert looks is not None
        rates.append(np.asarray(shard.columns["rate"].values, np.float64)[looks.rows])
        frames.append(np.asarray(shard.columns["frames"].values, np.float64)[looks.rows])
        names += [shard.row_names[int(r)] for r in looks.rows]
        spectra.append(looks.images.astype(np.float64).mean(axis=2))
    rate, every = np.concatenate(rates), np.concatenate(frames)
    kinds, counts = np.unique(rate[np.isfinite(rate)], return_counts=True)
    if not len(kinds) or kinds[counts.argmax()] <= 0:
        return None
    usual = float(kinds[counts.argmax()])
    kept = (rate == usual) & (every > 0)
    return _Sounds(shards[0], [n for n, k in zip(names, kept, strict=True) if k], every[kept] / usual,
                   np.concatenate(spectra)[kept], int(usual))


def _odd(sounds: _Sounds, view: View, data: DataSet) -> _Odd | None:
    """The one origin that is odd, by the first thing that tells it."""
    told = list(groups_of(sounds.names, view))
    for by, values in sorted(told, key=lambda g: g[0].startswith("word")):  # a table names an origin in full
        kinds, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        large = np.flatnonzero(counts >= FEWEST)
        if not LABELLED <= len(large) <= MOST_GROUPS:
            continue
        codes = codes.reshape(-1)
        lengths = np.array([math.log(float(np.median(sounds.seconds[codes == g]))) for g in large])
        spectra = np.stack([sounds.spectra[codes == g].mean(axis=0) for g in large])
        at = int(np.argmax(np.abs(lengths - np.median(lengths))))
        others = np.arange(len(large)) != at
        usual = float(np.median(lengths[others]))
        shorter = usual - float(lengths[at])
        if abs(shorter) < math.log(LEAST) or float(
                np.abs(lengths[others] - usual).max()) > STEADY * abs(shorter):
            continue
        ratio = _of_rates(shorter, sounds.rate)
        if ratio is None:
            continue
        stretched = len(large) >= GROUPS and _is_stretched(spectra, at, ratio)
        undone = None if stretched else _by_labels(sounds, data, view, values, kinds[large], at, ratio)
        if undone is not None or stretched:
            return _Odd(by, str(kinds[large[at]]), codes == large[at], ratio, math.exp(-shorter), undone)
    return None


def _by_labels(sounds: _Sounds, data: DataSet, view: View, values: Array, large: Array, at: int, ratio: float
               ) -> Undone | None:
    """What labels say of it: those of all other origins hold in this one after the ratio is undone."""
    of = dict(zip(sounds.names, values.tolist(), strict=True))
    place_of = {v: k for k, v in enumerate(large.tolist())}
    for looked in looked_of(data, view.listings):
        origin = np.array([place_of.get(of.get(n), -1) for n in looked.names])
        found = labels_undone(looked, origin, at, ratio)
        if found is not None:
            return found
    return None


def _of_rates(shorter: float, rate: int) -> float | None:
    """The ratio of the headers' rate to a usual one that is next to this one, by its logarithm."""
    best = min((rate / r for r in RATES if r != rate), key=lambda r: abs(math.log(r) - shorter))
    return best if abs(math.log(best) - shorter) <= NEAR else None


def _is_stretched(spectra: Array, at: int, ratio: float) -> bool:
    """Whether the spectrum of one is that of the others, stretched by the ratio; theirs fit as they are."""
    whole = spectra.sum(axis=0)
    count = len(spectra)
    as_is = np.array([_distance(s, (whole - s) / (count - 1), 1.0) for s in spectra])
    mine, rest = spectra[at], (whole - spectra[at]) / (count - 1)
    undone = _distance(mine, rest, ratio)
    if undone > BETTER * as_is[at] or as_is[at] < APART * float(np.median(np.delete(as_is, at))):
        return False
    same_way = [g for g in _GRID if (math.log(g) > 0) == (math.log(ratio) > 0)]
    best = min(same_way, key=lambda g: _distance(mine, rest, g))
    other_way = min(_distance(mine, rest, g) for g in _GRID if g not in same_way)
    return undone < other_way and (abs(math.log(best / ratio)) <= 2 * NEAR
                                   or undone <= 1.1 * _distance(mine, rest, best))


def _distance(mine: Array, others: Array, ratio: float) -> float:
    """How far a spectrum is from that of the others, stretched: the spread of the difference of logarithms."""
    centres = (np.arange(len(mine)) + 0.5) / ratio
    there = centres <= len(mine) - 0.5
    if there.sum() < 6:
        return math.inf
    return float(np.std(mine[there] - np.interp(centres[there] - 0.5, np.arange(len(mine)), others)))


def _finding(sounds: _Sounds, odd: _Odd) -> Finding:
    names = [n for n, i in zip(sounds.names, odd.inside, strict=True) if i]
    true = sounds.rate / odd.ratio
    if odd.undone is None:
        told = f"their spectrum is that of the others stretched by {number(odd.ratio)}"
    else:
        told = (f"a simple model of the others agrees with {percent(odd.undone.before)} of their {odd.undone.label} as "
                f"they are and with {percent(odd.undone.after)} once what sounds is stretched by "
                f"{number(1 / odd.ratio)} ({percent(odd.undone.elsewhere)} elsewhere)")
    return RULE.finding(
        f"{len(names)} sounds with {odd.which} as {odd.by} last {number(odd.lasts)} times as long as all others "
        f"(median), and {told}: their samples are of {true:,.0f} Hz under headers of {sounds.rate:,} Hz, such as "
        f"{names[0]}",
        place(sounds.shard),
        sounds.shard.name,
        bearing=Bearing.CAUSE,
        measured={"by": odd.by, "value": odd.which, "count": len(names), "ratio": odd.ratio, "lasts": odd.lasts,
                  "rate": sounds.rate, "true_rate": true, "kind": "rate", "field": "frames",
                  "fields": ("frames", "bytes")},
    )
