"""What runs in the worker processes of a loader can be sent to them, changes with the program, and leaves the GPU
alone.

A spawned worker gets the data set pickled: a lambda, a function inside another one or an open file cannot be. A forked
one that touches CUDA dies with an initialisation error. Persistent workers keep their copy of the data set from the
first epoch: what the main process changes later, a curriculum or an epoch that it sets, never reaches a batch. Reading
a Python object changes its reference count, which is a write to a page that forked workers share: page after page is
copied, up to workers times the data set. Arrays have one reference count for all their rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("data", ("C122", "C197", "C219", "C299"))

SOME, MANY = 5_000, 50_000
"""Objects from which on copies are worth a remark, and a fault: at some 1 kB each, 50 MB in each worker."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every loader with workers."""
    for loader in program.loaders:
        if loader.workers and loader.objects is not None and (loader.objects[2] or SOME) >= SOME:
            name, owner, count, at = loader.objects
            many = f"{count:,.0f} " if count is not None else ""
            large = count is not None and count >= MANY
            yield Breach(
                "C122", f"self.{name} of {owner} holds {many}Python objects and is read by forked workers of the "
                f"loader at {loader.at}: reading changes reference counts, so each worker copies what it touches", at,
                Known.DERIVED if large else Known.GUESSED, {"kind": "objects", "rows": count, "attribute": name},
                Severity.MEDIUM if large else Severity.LOW)
        if loader.workers and loader.fetch.on_device is not None:
            text, at = loader.fetch.on_device
            yield Breach(
                "C197", f"{text} at {at} uses CUDA while a sample is fetched, which happens in a worker process of the "
                f"loader at {loader.at}", at, Known.DERIVED, {"kind": "cuda"})
        if loader.unpicklable is not None:
            name, what, line = loader.unpicklable
            yield Breach(
                "C219", f"{name}, which the spawned workers of the loader at {loader.at} are sent, is {what} (line "
                        f"{line}) "
                "and cannot be pickled", loader.at, Known.DERIVED, {"kind": "pickle", "member": name, "what": what})
        if loader.changed is not None:
            name, text, at = loader.changed
            yield Breach(
                "C299", f"{text} at {at} changes {name} in the main process only: the loader at {loader.at} has "
                "persistent_workers=True, and its workers keep their own copy of the dataset from the first epoch",
                loader.at, Known.DERIVED, {"kind": "copy", "attribute": name})
