"""The answer of an isolation for a person: what it is, how sure, what it cost, and what could not be tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx.isolation.equal import EqualAnswer
from traindx.isolation.search import Answer, Level
from traindx_tools.experiments.isolating.isolate import Isolated
from traindx_tools.experiments.isolating.outcomes import Shown
from traindx_tools.experiments.isolating.parting.equal_runs import Arm

MOST_NAMED = 12


def lines_of(answer: Answer) -> list[str]:
    """The whole text, line by line."""
    lines = [f"symptom: {answer.symptom}"]
    for level in answer.levels:
        lines += _level(level)
    return [*lines, f"outcomes are kept in {answer.folder}: the same command goes on from there"]


def _level(level: Level) -> Iterator[str]:
    result = level.result
    yield f"{level.over}: {_headline(result)}"
    for cause in result.named[:MOST_NAMED]:
        yield f"  {_joined(cause)}"
    if len(result.named) > MOST_NAMED:
        yield f"  ... and {len(result.named) - MOST_NAMED} more"
    if result.status == "found" and result.without is not None:
        yield f"  {_without(result)}"
    if result.status == "unfinished" and result.left:
        yield f"  left: {_joined([result.labels[i] for i in result.left])}"
    yield f"  {_cost(result)}"
    yield from (f"  note: {n}" for n in level.notes)


def _headline(result: Isolated) -> str:
    count = len(result.labels)
    if result.status == "found":
        several = len(result.causes)
        if several > 1:
            return f"found: {several} of {count:,} differences, each of which alone makes the symptom come"
        size = len(result.causes[0])
        together = "" if size == 1 else f", {size} together: with any one of them left out it does not come"
        return f"found: what makes the symptom come among {count:,} differences{together}"
    if result.status == "range":
        return f"found up to those that cannot be tested: it came with one of these ({result.problem})"
    return f"{result.status.replace('-', ' ')}: {result.problem}"


def _without(result: Isolated) -> str:
    which = "them" if sum(map(len, result.causes)) > 1 else "it"
    if result.without is Shown.PASS:
        return f"the bad run without {which} does not show the symptom"
    if result.without is Shown.FAIL:
        return f"the bad run without {which} still shows the symptom: there are more causes"
    return f"whether the bad run without {which} shows the symptom could not be told"


def _cost(result: Isolated) -> str:
    known = f", {result.known:,} kept from before" if result.known else ""
    least = f"; {result.bound} are the fewest that a search among {len(result.labels):,} can take" if (
        result.bound) else ""
    noisy = "; the symptom comes in some runs only, so each question took several" if (
        result.controls is not None and result.controls.noisy) else ""
    return f"{result.runs:,} runs{known}, controls and repeats included{least}{noisy}"


def _joined(labels: Sequence[str]) -> str:
    told = "; ".join(labels[:MOST_NAMED])
    return told + (f"; ... and {len(labels) - MOST_NAMED:,} more" if len(labels) > MOST_NAMED else "")


def lines_of_runs(answer: EqualAnswer) -> list[str]:
    """Where runs part and what removes it, line by line."""
    result = answer.result
    lines = [_runs_headline(answer)]
    if result.parting is not None:
        lines += [f"  {result.parting.said}"]
        lines += [f"  loss: {' / '.join(result.parting.losses)}"] if result.parting.losses else []
        lines += [f"  around them differs: {x}" for x in result.parting.surroundings]
    lines += [f"  with {' and '.join(arm.remedies)}: {_arm(arm)}" for arm in result.arms if arm.remedies]
    if result.parting is not None and result.status == "parts":
        lines.append(f"  {_removing(answer)}")
    lines += [f"  note: {result.problem}"] if result.problem and result.status == "parts" else []
    return [*lines, f"  {result.runs} runs; what they recorded is kept in {answer.folder}"]


def _runs_headline(answer: EqualAnswer) -> str:
    result = answer.result
    if result.status == "equal":
        what = f"bit for bit in {result.steps} steps" if result.steps else "in what they print; no step of torch or JAX"
        return f"equal: {result.runs} runs of the command are equal {what}" + ("" if result.steps else " was recorded")
    if result.status == "parts":
        return "runs of the same command differ"
    return f"{result.status}: {result.problem}"


def _arm(arm: Arm) -> str:
    if arm.problem:
        return f"undecided, {arm.problem}"
    if arm.parting is None:
        return f"{arm.runs} runs are equal"
    return f"they part after {arm.parting.step} steps in {arm.parting.name}"


def _removing(answer: EqualAnswer) -> str:
    removing = answer.result.removing
    if not removing:
        return ("none of them makes the runs equal, nor do all together: what differs comes from outside (time, files, "
                "other processes), or from a generator with a seed of its own")
    if len(removing[0]) > 1:
        return f"equal with {' and '.join(removing[0])} together, with none of them alone"
    return f"equal with {' or '.join(r[0] for r in removing)}"
