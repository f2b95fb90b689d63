"""Random draws for training samples are new each time, and held-out samples are not drawn at all.

`random_split` and `Subset` share the data set that they cut: where fetching a sample draws, validation is augmented as
well, and gives another number at each evaluation of the same weights. A generator that a data set makes in its
constructor is copied into every worker with its state: all workers, and all epochs, draw the same numbers. A random
transform whose result the constructor keeps is drawn once: every epoch sees the same samples.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.loading import Draw, Loader
from traindx_tools.program.program import Program

RULES = pages("data", ("C196", "C228", "C285"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every data set that loaders are given."""
    yield from _same_transforms(program.loaders)
    shared: dict[int, list[Loader]] = {}
    for loader in program.loaders:
        shared.setdefault(loader.data, []).append(loader)
    for same in shared.values():
        yield from _copied(same)
        yield from _once(same)
        train = _training(same)
        held = _held_out(same, train) if train is not None else None
        anew = [d for loader in same for d in loader.fetch.draws]
        if train is not None and held is not None and anew and not any(loader.swapped for loader in same):
            yield _augmented(train, held, anew[0])


def _same_transforms(loaders: list[Loader]) -> Iterator[Breach]:
    """A loader that is only evaluated, whose samples go through the very random transform of the training samples."""
    fed = {d.at: x for x in loaders if x.trains is not None for d in x.fetch.draws if d.by_library}
    for held in (x for x in loaders if x.trains is None and x.evaluates is not None and not x.shuffles):
        draw = next((d for d in held.fetch.draws if d.at in fed and fed[d.at].data != held.data), None)
        if draw is not None:
            yield _augmented(fed[draw.at], held, draw, "two data sets with one transform")


def _training(loaders: list[Loader]) -> Loader | None:
    return next((x for x in loaders if x.trains is not None), None) or next((x for x in loaders if x.shuffles), None)


def _held_out(loaders: list[Loader], train: Loader) -> Loader | None:
    """The loader of the other part, that is only evaluated, or that nothing is known to use and that
    keeps the order."""
    others = [x for x in loaders if x.trains is None and x.cut and x.cut == train.cut and not x.shuffles]
    return next((x for x in others if x.evaluates is not None), None) or (others[0] if others else None)


def _augmented(train: Loader, held: Loader, draw: Draw, what: str = "") -> Breach:
    return Breach(
        "C228",
        f"The loaders at {train.at} and {held.at} share {what or 'one data set'}, made at {held.made}, whose "
        f"{draw.text} at "
        f"{draw.at} "
        "draws at random: the validation part is augmented as well, differently at every evaluation",
        held.at, Known.DERIVED, {"kind": "split", "random": draw.text})


def _copied(same: list[Loader]) -> Iterator[Breach]:
    for loader in same:
        draw = next((d for d in loader.fetch.draws if d.own), None)
        if draw is not None and loader.workers and not loader.seeded:
            yield Breach(
                "C196",
                f"self.{draw.own} at {draw.at} is copied into every worker with its state: all workers, and all "
                "epochs, "
                "draw the same numbers when a sample is fetched",
                draw.at, Known.DERIVED, {"kind": "generator", "name": draw.own})
            return


def _once(same: list[Loader]) -> Iterator[Breach]:
    train = _training(same)
    if train is not None and train.kept is not None and not train.fetch.draws:
        draw, kind = train.kept
        yield Breach(
            "C285",
            f"{draw.text} at {draw.at} applies random augmentation once: {kind}, made at {train.made}, calls it in its "
            "constructor and keeps the result, so every epoch gets the same stored sample, not a fresh draw",
            draw.at, Known.DERIVED, {"kind": "stored", "random": draw.text})
