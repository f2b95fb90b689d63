"""A loader gives the loop what it needs: mixed rows to training, every row to evaluation, in time, in a new order.

Rows that lie class by class and are not shuffled make batches of one class: the model forgets all but the current one.
A DistributedSampler that is never told the epoch gives the same order in each. A loader of held-out data that leaves
out its last batch measures fewer samples. A data set whose samples wait for a file keeps a loop without workers idle.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.loading import Loader
from traindx_tools.program.program import Program

RULES = pages("data", ("C121", "C129", "C140", "C302"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every loader."""
    for loader in program.loaders:
        if loader.trains is not None:
            yield from _unshuffled(loader)
            yield from _same_order(loader)
        elif loader.evaluates is not None and loader.drop_last and not loader.single and not loader.shuffles:
            yield Breach(
                "C302",
                f"The loader at {loader.at}, which the loop at {loader.evaluates} evaluates, leaves out the last batch "
                "(drop_last=True): up to a batch of samples is never evaluated",
                loader.at, Known.GUESSED, {"kind": "fewer"})
        if loader.fetch.slow is not None and loader.workers is False:
            yield _waiting(loader)


def _unshuffled(loader: Loader) -> Iterator[Breach]:
    if loader.shuffles is not False or loader.sampler:
        return
    if loader.ordered and loader.labels_unread:
        return
    if loader.ordered:
        yield Breach(
            "C121",
            f"The training loader at {loader.at} does not shuffle, and {loader.ordered}: each batch holds one or two "
            "classes",
            loader.at, Known.DERIVED, {"kind": "ordered", "made_at": loader.ordered_at, "buffer": loader.through})
    elif loader.known and not loader.is_stream:
        yield Breach(
            "C121", f"The training loader at {loader.at} does not shuffle: batches come in the order of the data in "
            "every epoch", loader.at, Known.GUESSED, {"kind": "no shuffle"}, Severity.LOW)


def _same_order(loader: Loader) -> Iterator[Breach]:
    if loader.sampler == "DistributedSampler" and loader.sampler_at is not None and not loader.told_the_epoch and (
            loader.epochs and loader.shuffles):
        yield Breach(
            "C140",
            f"The {loader.sampler} made at {loader.sampler_at} is read again in every epoch at {loader.trains} and "
            "set_epoch() is never called: every epoch has the same order",
            loader.sampler_at, Known.DERIVED, {"kind": "set_epoch", "loop_line": loader.trains.line})


def _waiting(loader: Loader) -> Breach:
    assert loader.fetch.slow is not None
    call, what, idle, at = loader.fetch.slow
    return Breach(
        "C129",
        f"The loader at {loader.at} has no workers, and each sample {what} ({call} at {at}): samples are fetched one "
        "after "
        "the other between steps",
        loader.at, Known.DERIVED, {"kind": "fetch", "call": call, "call_line": at.line},
        None if idle else Severity.INFO)
