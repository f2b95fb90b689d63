"""What was looked at for a stated symptom that nothing explains: what its metric did, what its values rule out.

"No fault was found" answers nobody. Each explanation below is one that the recording itself can rule out, by values
that are told beside it; where they do not rule it out, that is said as well, and so is what no value shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.on_logs.curves.learning import held_out_loss, main_loss
from traindx_tools.on_logs.curves.shapes import Track, number, track
from traindx_tools.on_logs.readers.live_records import FORMAT as LIVE
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.symptom import measure
from traindx_tools.symptom.answer import Explanation, LookedAt, SymptomAnswer
from traindx_tools.symptom.resolve import HELD_OUT, series_of

FEWEST = 5
"""Records from which on a series rules something out."""

_NEAR = 0.1
"""Share by which two values of one metric differ at most that are alike on both sides."""

_BREAKS = frozenset({"nonfinite", "divergence"})
NONFINITE = "a NaN or an infinity"
_OF_LEARNING = frozenset({"not-learning", "generalization", "divergence", "collapse", "wrong-output", "nonfinite"})


def looked_at(answer: SymptomAnswer, run: Run, code: bool, watched: bool = False) -> LookedAt | None:
    """What was looked at for an answer; None where a cause explains it or nothing says what is meant.

    `code`: whether the training code was read. `watched`: whether instruments watched a new run of it.
    """
    symptom = answer.symptom
    if answer.explained_by is not None or answer.expected or not symptom.understood:
        return None
    found = [s for s in series_of(symptom.subject, run) if track(s) is not None]
    meant = next((s for s in found if answer.where.startswith(s.source)), found[0] if found else None)
    if meant is None or not symptom.kinds & _OF_LEARNING:
        return LookedAt(_course(meant))
    made = tuple(_explanations(meant, run))
    if symptom.kinds <= _BREAKS:  # how it learned until then, and whether it was long enough, explains no NaN or rise
        return LookedAt(_course(meant), tuple(e for e in made if e.what == NONFINITE and e.ruled_out))
    return LookedAt(_course(meant), made, tuple(_unseen(run, code, watched, meant)))


def _course(series: Series | None) -> str:
    t = track(series)
    if series is None or t is None:
        return ""
    low, high = int(t.y.argmin()), int(t.y.argmax())
    ends = f"{_name(series)} is {_at(t, 0)}" + (f" and {_at(t, len(t) - 1)}" if len(t) > 1 else "")
    if len(t) < 3 or t.y[low] == t.y[high]:
        return ends
    return f"{ends}; lowest {_at(t, low)}, highest {_at(t, high)}, in {len(t)} records"


def _at(t: Track, i: int) -> str:
    return f"{number(float(t.y[i]))} at {measure.at(t, i)}"


def _name(series: Series) -> str:
    own = series.original
    return own if series.group == "train" or series.group[:3] in own.lower() else f"{series.group} {own}"


def _explanations(meant: Series, run: Run) -> Iterator[Explanation]:
    held_out = meant.group in HELD_OUT
    train = main_loss(run)
    yield from _whole([s for s in (train, held_out_loss(run) if held_out else None) if s is not None], run)
    yield from _moves(train)
    if held_out:
        yield from _alike(meant, run)
        yield from _overfits(held_out_loss(run))
    yield from _too_short(held_out_loss(run) if held_out else train)
    yield from _above_zero(run.first("learning_rate"), "a learning rate of 0")
    yield from _above_zero(run.first("grad_norm"), "gradients that vanish")


def _long(series: Series | None) -> Track | None:
    t = track(series)
    return t if t is not None and len(t) >= FEWEST else None


def _whole(losses: Sequence[Series], run: Run) -> Iterator[Explanation]:
    long = [s for s in losses if len(s) >= FEWEST]
    broken = [s for s in long if not s.finite.all()]
    if broken:
        yield Explanation(NONFINITE, "; ".join(
            f"{int((~s.finite).sum())} of {len(s)} values of {_name(s)} are not finite" for s in broken), False)
    elif long and not run.errors:
        yield Explanation(NONFINITE, " and ".join(map(_name, long))
                          + f" {'is' if len(long) == 1 else 'are'} finite in every record", True)


def _moves(loss: Series | None) -> Iterator[Explanation]:
    t = _long(loss)
    if t is None or loss is None:
        return
    first, last, noise = measure.ends(t.y)
    falls = first - last > max(measure.SIGMAS * noise, measure.LEAST * abs(first))
    word = "falls" if falls else "goes"
    yield Explanation("a training that does not move or diverges",
                      f"{_name(loss)} {word} from {_at(t, 0)} to {_at(t, len(t) - 1)}", bool(falls))


def _alike(meant: Series, run: Run) -> Iterator[Explanation]:
    """The same metric on both sides: what evaluates otherwise, or learns by heart, parts them."""
    own = run.first(meant.name, group="train")
    a, b = _long(own), _long(meant)
    if own is None or a is None or b is None:
        return
    there, here = float(a.y[-1]), float(b.y[-1])
    alike = abs(there - here) <= _NEAR * max(abs(there), abs(here))
    yield Explanation("an evaluation that differs from the training",
                      f"{_name(own)} ends at {number(there)}, {_name(meant)} at {number(here)}", alike)


def _overfits(loss: Series | None) -> Iterator[Explanation]:
    t = _long(loss)
    if t is None or loss is None:
        return
    low, noise = int(t.y.argmin()), measure.ends(t.y)[2]
    rest = abs(float(t.y[-1] - t.y[low])) <= max(measure.SIGMAS * noise, measure.LEAST * abs(float(t.y[low])))
    yield Explanation("overfitting", f"{_name(loss)} ends at {number(float(t.y[-1]))}, its lowest {_at(t, low)}", rest)


def _too_short(loss: Series | None) -> Iterator[Explanation]:
    t = _long(loss)
    if t is None or loss is None:
        return
    half = len(t) // 2
    falls = float(t.y[half] - t.y[-1]) > measure.LEAST * abs(float(t.y[half]))
    yield Explanation("a run that is too short", f"{_name(loss)} is {_at(t, half)} and {_at(t, len(t) - 1)}", not falls)


def _above_zero(series: Series | None, what: str) -> Iterator[Explanation]:
    t = _long(series)
    if t is not None and series is not None and float(t.y.min()) > 0:
        low, high = number(float(t.y.min())), number(float(t.y.max()))
        yield Explanation(what, f"{_name(series)} is {low if low == high else f'{low} to {high}'}", True)


def _unseen(run: Run, code: bool, watched: bool, meant: Series) -> Iterator[str]:
    if not code:
        yield "the training code"
    if watched or any(a.format == LIVE for a in run.artifacts):
        return
    missing = [words for name, words in (("learning_rate", "the learning rate"), ("grad_norm", "the gradients"))
               if run.first(name) is None]
    yield from missing
    if meant.group in HELD_OUT and run.first(meant.name, group="train") is None:
        yield "the same metric on training data"
    yield "whether inputs and targets belong together"
