"""A part of the model is in no optimizer.

The loss is computed through two modules, an encoder and a decoder say, and the optimizer was built over one of them.
The other gets gradients in every step and stays at its random initialisation. Modules that are frozen, put into eval
mode (a perceptual loss), loaded from a file or called a teacher, reference or target are left alone, and so is every
module that any optimizer of the project holds, or that is replaced later by an assignment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.held import modules_of
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import optimizers
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import is_optimizer, sent_backward, sites_of, stepped, text_of
from traindx_tools.on_code.values import Bag, Instance, Tensor, Thing, Value, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C163",
    name="part-in-no-optimizer",
    title="A part of the model is in no optimizer",
    severity=Severity.HIGH,
    sees="A module of the project that the loss is computed by and that no optimizer was built over.",
    matters="This part stays as it was initialised; the rest learns to live with random features.",
    alike=("a part that is frozen on purpose, which says requires_grad_(False)", "a part whose output is detached",
           "a teacher or reference model, loaded from a file and only read"),
    confirm=(
        "{id(p) for p in model.parameters()} - {id(p) for g in optimizer.param_groups for p in g['params']}",
        "compare a weight of the part before and after optimizer.step()",
    ),
)
MOST_SITES = 55
_READ_ONLY = re.compile(r"teacher|(^|[_.])ref(erence)?(_|$|\.)|(^|[_.])target|frozen|(^|[_.])ema(_|$|\.)|oracle"
                        r"|perceptual|pretrained|momentum", re.IGNORECASE)  # fmt: skip
"""What a network is called that is read and not trained."""
_WITH_PARAMETERS = ("Linear", "LazyLinear", "Bilinear", "Conv", "Embedding", "LSTM", "GRU", "RNN", "Transformer",
                    "MultiheadAttention", "Parameter")  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop whose losses and optimizers are known."""
    owned = _owned(project)
    if owned is None:
        return
    owned |= _replaced(project)
    settled, loaded = _receivers(project, "eval", owned), _receivers(project, "load_state_dict", owned)
    seen: set[int] = set()
    for loop in project.training_loops:
        if not any(stepped(p.event) is not None for p in loop.of("step")):
            continue
        losses = [sent_backward(p.event) for p in loop.backwards]
        if not losses or not all(isinstance(v, Tensor) and v.grad and len(v.parents) < MOST_SITES for v in losses):
            continue
        reached = frozenset().union(*(sites_of(v) for v in losses))
        yield from _left_out(project, loop, reached, owned, settled, loaded, seen)


def _receivers(project: Project, method: str, owned: set[int]) -> set[int]:
    """What a method is called on; with all its parts where no optimizer holds any of them: a teacher, an oracle."""
    found: set[int] = set()
    for event in project.calls(method):
        module = unwrap(event.receiver) if event.receiver is not None else None
        parts = {id(p) for p in submodules(module)} if isinstance(module, (Thing, Instance)) else set()
        found |= {id(module)} if module is None or parts & owned else {id(module), *parts}
    return found


def _owned(project: Project) -> set[int] | None:
    """Everything that any optimizer holds; None where that is not known of one of them."""
    owned: set[int] = set()
    for event in project.events:
        made = event.result
        if event.kind == "call" and event.method == "add_param_group":
            return None
        if event.kind != "call" or not isinstance(made, (Thing, Instance)) or not is_optimizer(made):
            continue
        if isinstance(made, Thing) and made.state.get("annotation"):
            return None
        modules = modules_of(made)
        if modules is None or not all(isinstance(m, (Thing, Instance)) for m in modules):
            return None
        owned |= {id(part) for m in modules for part in submodules(m) or [m]}
    return owned


def _replaced(project: Project) -> set[int]:
    """What another module took the place of: an optimizer may have held it until then (C108 tells of the new one)."""
    old = [e.args[1] for e in project.events if e.kind == "store" and e.name.startswith("attribute.")
           and len(e.args) > 1 and e.args[0] is not e.args[1]]  # fmt: skip
    return {id(part) for value in map(unwrap, old) for part in submodules(value) or [value]}


def _left_out(
    project: Project, loop: TrainingLoop, reached: frozenset[object], owned: set[int], settled: set[int],
    loaded: set[int], seen: set[int],
) -> Iterator[Finding]:
    calls = [p.event for p in loop.of("__call__") if p.event.grad is not False]
    inner: set[int] = set()
    found: list[tuple[Event, Thing | Instance]] = []
    for event in calls:
        module = unwrap(event.receiver) if event.receiver is not None else None
        if not isinstance(module, (Thing, Instance)) or id(module) in inner | seen | owned | settled:
            continue
        parts = submodules(module) or [module]
        inner |= {id(p) for p in parts if p is not module}
        if id(module) in loaded or _READ_ONLY.search(text_of(event, "callee")):
            continue
        if not any(_learns(p) for p in parts) or any(_excused(p) or id(p) in owned | settled for p in parts):
            continue
        outputs = event.result.items if isinstance(event.result, Bag) else [event.result]
        arrives = any(isinstance(o, Tensor) and o.site in reached for o in outputs)
        if arrives and loop.block not in module.born_in:
            seen.add(id(module))
            found.append((event, module))
    patch = () if _held_in_part(calls, owned) else _patch(project, found)
    yield from (_finding(event, module, patch) for event, module in found)


def _held_in_part(calls: Sequence[Event], owned: set[int]) -> bool:
    """Whether an optimizer holds some layers of a module and not others: what is to be trained is not known then."""
    for event in calls:
        parts = submodules(unwrap(event.receiver)) if event.receiver is not None else []
        learning = [p for p in parts if _learns(p) and not _excused(p)]
        if len({id(p) in owned for p in learning}) == 2:
            return True
    return False


def _learns(part: Value) -> bool:
    return isinstance(part, Thing) and part.type.startswith("torch.nn.") and part.short.startswith(_WITH_PARAMETERS)


def _excused(part: Value) -> bool:
    return isinstance(part, (Thing, Instance)) and bool(part.state.get("frozen", False) is not False
                                                        or part.state.get("pretrained"))  # fmt: skip


def _finding(event: Event, module: Thing | Instance, patch: tuple[Patch, ...]) -> Finding:
    name = text_of(event, "callee")
    kind = module.klass.info.name if isinstance(module, Instance) else module.short
    learns = sorted({p.short for p in submodules(module) if _learns(p) and isinstance(p, Thing)} - {kind})
    about = f"{kind} with {' and '.join(learns[:3])}" if learns else kind
    return RULE.finding(
        f"{name or 'The module'} ({about}, made at {module.site}) takes part in the loss (called at "
        f"{event.file.path}:{event.line}), and no optimizer was built over its parameters: it stays at its "
        "initialisation",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": f"left out: {name}", "made_at": str(module.site)},
        patch=patch,
    )


def _patch(project: Project, found: Sequence[tuple[Event, Thing | Instance]]) -> tuple[Patch, ...]:
    """The parameters of all that is left out in the one optimizer, where they stand in one function with it."""
    made = _optimizers(project) if found else []
    if len({id(e.node) for e in made}) != 1:
        return ()
    for event, module in found:
        if made[0].file is not event.file or made[0].function is not event.function:
            return ()
        if module.site.path != event.file.path or module.site.line >= made[0].line:
            return ()
    return optimizers.holding_too(made[0].file, made[0].node, [text_of(event, "callee") for event, _ in found])


def _optimizers(project: Project) -> list[Event]:
    """Where optimizers are made; looked for once."""
    known: list[Event] | None = project.__dict__.get("_optimizers_made")
    if known is None:
        known = project.__dict__["_optimizers_made"] = [
            e for e in project.events if e.kind == "call" and isinstance(e.result, Thing) and is_optimizer(e.result)
            and e.name == e.result.type]  # fmt: skip
    return known
