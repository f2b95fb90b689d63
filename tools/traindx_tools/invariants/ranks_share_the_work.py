"""Processes of a distributed run share the work: other rows for each, one figure for all, one writer of a file.

A loader without a sampler for ranks gives every process all rows; where all are seeded alike, or the order is that of
the data, they are the same batches, and the mean of equal gradients is the gradient of one process. An evaluation over
a share of the rows measures that share until its counts are reduced. A checkpoint that each process writes under one
name is written several times at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("ranks", ("C381", "C382", "C383"))
_SAYS = {
    "file": ("C381", "every process writes {on}, with no condition on the rank around it: several write one file at "
             "the same time"),
    "share": ("C382", "the loop at {on} measures this rank's own share of a loader that is cut by rank, and the counts "
              "are neither reduced nor gathered: what is reported and decided on is one shard's figure"),
    "batches": ("C383", "the loader has no sampler for ranks, and every process goes through the same batches in the "
                "same order at {on}: all gradients are equal"),
    "copies": ("C383", "the whole batch of the loop at {on} is copied to every device, where it should be cut into one "
               "part for each: all devices compute the same gradient"),
    "gradients": ("C383", "the step that is mapped over devices ({on}) applies gradients of each device's own part: "
                  "nothing takes their mean, and the copies of the parameters drift apart"),
}


def check(program: Program) -> Iterator[Breach]:
    """Look at what each process does for itself."""
    for use in program.rank_uses:
        rule, text = _SAYS[use.kind]
        yield Breach(rule, f"At {use.at} " + text.format(on=use.on), use.at,
                     Known.DERIVED if use.certain else Known.GUESSED, {"kind": use.kind},
                     None if use.certain else Severity.LOW)
