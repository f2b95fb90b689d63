"""Ranks go through different numbers of batches.

Each batch brings its collectives. A rank with one batch fewer leaves the loop while the others wait for its gradients,
in the step after its last one. Compared are the numbers of batches, iterations and steps that ranks print in the same
sentence, and the rank that went on to what follows the loop (an evaluation, the end of the epoch, a checkpoint) while
all others wait in a collective. Numbers of samples may differ by one without harm and are not judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_ranks.logs.failing import failed_first
from traindx_tools.on_ranks.logs.job import Job, Start, named, ranges
from traindx_tools.on_ranks.logs.parting import FEW, parted
from traindx_tools.on_ranks.rules.r202_collectives_part import met_words, place_of
from traindx_tools.rules import Rule, Threshold

NOUNS = ("batches", "iterations", "steps", "num_batches", "n_batches", "steps_per_epoch")

RULE = Rule(
    id="R203",
    name="batches-differ",
    title="Ranks have different numbers of batches",
    severity=Severity.CRITICAL,
    sees="Counts of batches, iterations and steps that the ranks print alike, and which rank left the loop first.",
    matters="The others wait in a collective that this rank never enters, until the timeout.",
    alike=("Counts that are each rank's own by nature: no value is that of most ranks.",),
    confirm=("print(rank, len(loader)) on every rank before the first epoch.",),
    thresholds={"few": Threshold(FEW, "share of the ranks", "where more differ, no number is the usual one")},
)


def check(job: Job) -> Iterator[Finding]:
    """At most one finding, of the last start."""
    start = job.last
    counted = _counted(start)
    if counted is not None:
        yield counted
        return
    found = parted(start)
    if found is None or found.kind != "left-loop" or failed_first(start):
        return
    odd = start.ranks[found.ranks[0]]
    others = "1 other rank waits" if found.agreeing == 1 else f"{found.agreeing:,} other ranks wait"
    usual = f"{found.usual}" + (f" (sequence number {found.number:,})" if found.number is not None else "")
    went_on = f"while {others} for another batch in {usual}{place_of(odd)}" if found.usual is not None else (
        f"while the others went on with another batch{place_of(odd)}; its next collective met theirs{met_words(start)}")
    yield RULE.finding(
        f"{named(found.ranks)} left the loop {went_on}", odd.at(odd.told.last[0], odd.told.last[1], odd.step),
        odd.source,
        bearing=Bearing.SIGN,
        measured={"kind": "left-loop", "ranks": found.ranks[:64], "rank": odd.rank, "host": odd.host,
                  "operation": str(found.usual or ""), "sequence": found.number, "step": odd.step,
                  "waiting": found.agreeing, "world_size": start.world, "seen": len(start.ranks)})


def _counted(start: Start) -> Finding | None:
    told: dict[tuple[str, int], dict[int, tuple[float, int]]] = defaultdict(dict)
    for r in start.ranks.values():
        for sentence, values in r.told.counts.items():
            if sentence.partition("|")[0] in NOUNS:
                for at, value in enumerate(values):
                    told[sentence, at][r.rank] = value
    for (sentence, _), by_rank in sorted(told.items(), key=lambda t: t[0][1]):
        counts = Counter(v for v, _ in by_rank.values())
        usual, _ = counts.most_common(1)[0]
        odd = tuple(r for r, (v, _) in by_rank.items() if v != usual)
        if odd and len(by_rank) > 2 and 2 * len(by_rank) >= len(start.ranks) and len(odd) <= max(1, FEW * len(by_rank)):
            return _of_counts(start, sentence.partition("|")[0].replace("_", " "), by_rank, usual, odd)
    return None


def _of_counts(start: Start, noun: str, by_rank: dict[int, tuple[float, int]], usual: float,
               odd: tuple[int, ...]) -> Finding:
    value, line = by_rank[odd[0]]
    rank = start.ranks[odd[0]]
    waiting = [r for r in start.ranks.values() if r.wait is not None]
    operation = Counter(str(w.operation) for r in waiting if (w := r.wait)).most_common(1)
    stopped = f"; {len(waiting):,} ranks waited in {operation[0][0]}" if operation else ""
    same = {by_rank[r][0] for r in odd} == {value}
    more = f"; {ranges(odd[1:])} differ as well" if not same else ""
    return RULE.finding(
        f"{named(odd if same else odd[:1])} has {value:g} {noun} where the other {len(by_rank) - len(odd):,} ranks "
        f"have "
        f"{usual:g}{more}{stopped}", rank.at(line, step=rank.step), rank.source,
        bearing=Bearing.CAUSE if waiting else Bearing.SIGN, severity=None if waiting else Severity.MEDIUM,
        measured={"kind": "count", "metric": noun, "ranks": odd[:64], "rank": odd[0], "host": rank.host, "value": value,
                  "usual": usual, "difference": value - usual, "operation": operation[0][0] if operation else "",
                  "step": rank.step, "world_size": start.world, "seen": len(start.ranks)})
