"""Every process builds its model from another seed, and nobody makes them equal.

Where the seed depends on the rank, the replicas start from different weights. DistributedDataParallel, FSDP,
accelerate and Lightning broadcast the parameters of rank 0; a loop that only averages gradients by hand does not:
each replica then gets gradients that belong partly to other weights. Seed the model equally on every rank and the
data by rank.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.breach import pages
from traindx_tools.on_code.containers import depends_on_rank
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Block, Place, walk
from traindx_tools.on_code.values import Instance, Thing, Value

(RULE,) = pages("ranks", ("C116",))
_SEEDS = frozenset({"manual_seed", "set_seed", "seed_everything", "manual_seed_all"})
_EQUALISING = frozenset({"DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "prepare", "setup",
                         "broadcast", "broadcast_object_list", "_broadcast_coalesced", "broadcast_coalesced",
                         "initialize", "DataParallel", "broadcast_parameters", "_sync_module_states", "fit",
                         "from_pretrained", "setup_module", "prepare_model"})  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every entry in which gradients are exchanged by hand."""
    if any(True for _ in project.calls("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard")):
        return  # wrapped somewhere, by a way that may not be followed from here
    for root in project.roots:
        if {"all_reduce", "backward"} <= root.methods and not _EQUALISING & root.methods:
            yield from _findings(root)


def _findings(root: Block) -> Iterator[Finding]:
    seed: Place | None = None
    for place in walk(root):
        event = place.event
        if event.kind != "call":
            continue
        if (event.method in _SEEDS and event.args
                and event.name.startswith(("torch.", "transformers.", "lightning.", "accelerate."))):
            seed = place if depends_on_rank(event.args[0]) else None
        elif (seed is not None and _has_parameters(event.result)
                and event.method in ("__new__", "Linear", "Conv2d", "Sequential", "Embedding")):
            at = seed.event
            yield RULE.finding(
                f"{at.file.segment(at.node)} at {at.file.path}:{at.line} seeds each rank differently before the "
                "model is built at "
                f"line {event.line}; gradients are averaged by hand and the parameters are never made equal over "
                "the ranks",
                location(at),
                at.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "seed", "model_line": event.line},
            )
            return


def _has_parameters(value: Value | None) -> bool:
    if isinstance(value, Thing):
        return value.type.startswith("torch.nn.")
    return isinstance(value, Instance) and value.klass.info.is_module
