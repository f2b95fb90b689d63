"""Gradients of a mapped train step are not averaged over the devices.

Inside `jax.pmap` every device has its own shard of the batch and its own copy of the parameters. Without
`jax.lax.pmean(grads, axis_name)` before the update each copy follows its own shard: the replicas drift apart, and what
is saved or evaluated is one of them, trained on a fraction of the data.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.mapped_gradients import Alone, applied_alone
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.rules import Rule

RULE = Rule(
    id="C510",
    name="mapped-gradients-not-averaged",
    title="Gradients under pmap are not averaged",
    severity=Severity.HIGH,
    sees="A function under pmap (or shard_map without its check) that differentiates and updates, without pmean, psum "
         "or all_gather of the gradients.",
    matters="Replicas diverge; the effective batch is smaller by the number of devices.",
    alike=("different seeds on devices",),
    confirm=("compare a parameter across devices after ten steps",),
)

_UPDATES = frozenset({"apply_updates", "apply_gradients"})
_COLLECTIVES = frozenset({"pmean", "psum", "all_gather", "psum_scatter", "cross_replica_mean", "sync_batch_stats"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that is mapped over devices."""
    if not any("pmap" in f.text or "shard_map" in f.text for f in project.files):
        return
    seen: set[int] = set()
    told: set[tuple[str, str]] = set()
    for block in project.blocks:
        info = block.function
        if block.kind not in ("root", "call") or info is None or "jax.pmap" not in info.wrappers or id(info) in seen:
            continue
        if _UPDATES & block.methods and {"grad", "value_and_grad"} & block.methods and not _COLLECTIVES & block.methods:
            seen.add(id(info))
            event = next(_update(block))
            told.add((event.file.path, info.name))
            yield RULE.finding(
                f"{event.file.segment(event.node)} at {event.file.path}:{event.line} applies the gradients of one "
                f"device inside {info.name}, which runs under pmap: they are not averaged with lax.pmean",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "pmap", "function": info.name},
            )
    for file in project.files:
        if "pmap" in file.text or "shard_map" in file.text:
            yield from (_alone(one) for one in applied_alone(syntax(file))
                        if (file.path, one.function.name) not in told)  # fmt: skip


def _alone(one: Alone) -> Finding:
    """Gradients that go from the differentiation to the update, beside a loss that is averaged or not."""
    code = one.code
    return RULE.finding(
        f"{code.file.segment(one.node)} at {code.at(one.node)} applies the gradients of one device inside "
        f"{one.function.name}, which runs under {one.how}: nothing averages them (lax.pmean) on their way",
        code.place(one.node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": one.how, "function": one.function.name},
    )


def _update(block: Block) -> Iterator[Event]:
    for item in block.body:
        if isinstance(item, Event):
            if item.method in _UPDATES:
                yield item
        elif _UPDATES & item.methods:
            yield from _update(item)
