"""A list of parameter groups that was written by hand leaves a part of the model out.

`AdamW([{"params": net.trunk.parameters()}, {"params": net.neck.parameters(), "lr": 1e-4}])` holds what is named in it
and nothing else: a head that was forgotten, or added to the model later, gets gradients and is never updated. The same
with groups that are chosen by name (`if "enc" in n`, `if "dec" in n`) where a third part matches neither. The other
parts learn around the random features of the one that is left out, so that the loss falls and stops too high.

Left alone: what is frozen, tied to another weight, detached, called without gradients, loaded from a file, or held by
another optimizer; `add_param_group`; groups whose making cannot be followed; choices for adapters, prompts or biases
alone; and one group over the last layers (a probe on fixed features).
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.held import modules_of, one_by_one
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.named_parts import (
    Choice,
    affine,
    choice_of,
    constants_of,
    learns,
    leaves,
    named_parts,
    parameter_names,
)
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import optimizers
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import is_optimizer, sent_backward, sites_of, stepped
from traindx_tools.on_code.values import Instance, Parameters, Tensor, Thing, Value, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C276",
    name="group-list-incomplete",
    title="A part of the model is in no parameter group",
    severity=Severity.HIGH,
    sees="The modules that an optimizer's groups name, against those of the model that is called.",
    matters="This part stays at its initialisation; the rest learns around it, and the loss stops too high.",
    alike=("a part that is frozen on purpose, which says requires_grad_(False)", "a probe on fixed features",
           "a part that a second optimizer holds"),
    confirm=(
        "[n for n, p in model.named_parameters() if id(p) not in {id(q) for g in optimizer.param_groups "
        "for q in g['params']}]",
        "compare a weight of the part before and after optimizer.step()",
    ),
)
MOST_SITES = 55
_ON_PURPOSE = re.compile(r"lora|adapter|prompt|prefix|ia3|bias|norm", re.IGNORECASE)
"""Pieces of names that choose few parameters on purpose."""
_READ_ONLY = re.compile(r"teacher|(^|[_.])ref(erence)?(_|$|\.)|(^|[_.])target|frozen|(^|[_.])ema(_|$|\.)|oracle"
                        r"|perceptual|pretrained|momentum|fixed|(^|[_.])lpips|(^|[_.])vgg", re.IGNORECASE)  # fmt: skip
_WRAPPED_BY = re.compile(r"DataParallel|\bDDP\b|\.prepare\(|fully_shard")


@dataclass
class _Held:
    """What the optimizers of a project hold."""

    event: Event
    """Where the one optimizer is made that the finding is about."""
    owned: set[int]
    choices: list[tuple[Choice, Syntax]] = field(default_factory=list)
    whole: Value | None = None
    """The model that is chosen from by name."""
    groups: int = 1


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop whose losses and optimizers are known."""
    held = _held(project)
    if held is None or (held.groups < 2 and not held.choices):
        return  # parameters of one module alone: C163 tells what is called and not held
    seen: set[int] = set()
    for loop in project.training_loops:
        if not any(stepped(p.event) is held.event.result for p in loop.of("step")):
            continue  # another program's
        losses = [sent_backward(p.event) for p in loop.backwards]
        if not losses or not all(isinstance(v, Tensor) and v.grad and len(v.parents) < MOST_SITES for v in losses):
            continue
        reached = frozenset().union(*(sites_of(v) for v in losses))
        for event in (p.event for p in loop.of("__call__")):
            whole = unwrap(event.receiver) if event.receiver is not None else None
            if isinstance(whole, Instance) and whole.klass.info.is_module and id(whole) not in seen:
                seen.add(id(whole))
                yield from _judged(project, loop, held, whole, reached)


def _held(project: Project) -> _Held | None:
    """What all optimizers hold together; None where that is not known of one of them, or where groups are added."""
    made = [e for e in project.events if e.kind == "call" and isinstance(e.result, (Thing, Instance))
            and is_optimizer(e.result)]  # fmt: skip
    if any(True for _ in project.calls("add_param_group")):
        return None
    built = [e for e in made if isinstance(e.result, Thing) and e.name == e.result.type]
    told = [e.result for e in built if isinstance(e.result, Thing) and e.result.state.get("annotation")]
    if not built or told or len(built) != len({id(e.result) for e in made}):
        return None
    found: _Held | None = None
    for event in built:
        one = _of(event)
        if one is None:
            return None
        if found is None:
            found = one
        else:
            if one.whole is not None and found.whole is not None and one.whole is not found.whole:
                return None
            found.owned |= one.owned
            found.choices += one.choices
            found.whole = found.whole or one.whole
            found.groups += one.groups
            found.event = event if one.choices or one.groups > 1 else found.event
    return found


def _of(event: Event) -> _Held | None:
    """What one optimizer holds: by module, or by name where its groups are chosen by name."""
    node = event.node
    given = argument(node, 0, "params") if isinstance(node, ast.Call) else None
    code = syntax(event.file)
    parts = leaves(code, given) if given is not None else None
    modules = modules_of(event.result)
    if modules is None or not all(isinstance(m, (Thing, Instance)) for m in modules):
        return None
    choices = [choice_of(code, leaf) for leaf in parts] if parts else []
    if not any(choices):
        chosen = isinstance(event.result, (Thing, Instance)) and one_by_one(event.result)
        owned = {id(part) for m in modules for part in submodules(m) or [m]}
        return None if chosen else _Held(event, owned, groups=len(parts or [None]))
    models = {c.model for c in choices if c is not None}
    if len(models) != 1:
        return None
    model = models.pop()
    whole = next((m for m in modules if isinstance(m, Instance)), None)
    found = _Held(event, set(), groups=len(parts or ()), whole=whole)
    for leaf, choice in zip(parts or (), choices, strict=True):
        if choice is None:
            choice = _all_of(leaf, model)
        if choice is None:
            return None
        found.choices.append((choice, code))
    return found if whole is not None else None


def _all_of(leaf: ast.expr, model: str) -> Choice | None:
    """`net.enc.parameters()` beside choices from `net`: a choice of every name that begins with `enc.`."""
    text = written(leaf)
    if not text.startswith(f"{model}.") or not text.endswith(".parameters()"):
        return None
    prefix = text[len(model) + 1 : -len("parameters()")].removeprefix("module.")
    test = ast.parse(f"n.startswith({prefix!r})", mode="eval").body
    return Choice(model, "n", (test,)) if re.fullmatch(r"(\w+\.)*", prefix) else None


def _judged(project: Project, loop: TrainingLoop, held: _Held, whole: Instance, reached: frozenset[object]
            ) -> Iterator[Finding]:  # fmt: skip
    parts = named_parts(whole)
    inside = {id(part): path for path, part in parts}
    taken = {id(part): _taken(held, whole, path, part) for path, part in parts}
    if not any(taken.values()) or id(whole) in held.owned or _set_apart(project, whole, inside):
        return
    calls = _calls(loop)
    first_held = min((calls[id(p)].order for _, p in parts if id(p) in calls and taken[id(p)]
                      and any(learns(q) for q in submodules(p) or [p])), default=None)  # fmt: skip
    if first_held is None:
        return
    out: list[tuple[str, Value]] = []
    for path, part in parts:
        if any(path.startswith(f"{p}.") for p, _ in out):
            continue
        if _left_out(part, taken, reached, calls, path, whole):
            out.append((path, part))
    if not out:
        return
    upstream = all(id(p) in calls and calls[id(p)].order < first_held for _, p in out)
    loaded = _is_loaded(project, whole)
    if loaded or (upstream and held.groups < 2) or (held.choices and _on_purpose(held)):
        return
    weak = upstream or not any(learns(p) for _, part in out for p in submodules(part) or [part])
    unsure = any(isinstance(p, Thing) and p.short.startswith("Module") and not taken[id(p)] for _, p in parts)
    later = _stored_later(project, held.event, out[0][1]) if len(out) == 1 else None
    patch = () if unsure else _patch(project, held, out) if later is None else _behind(held, later)
    yield _finding(held, whole, out, calls, weak, patch, later)


def _stored_later(project: Project, made: Event, part: Value) -> Event | None:
    """The first store of this part behind the making of the optimizer, which can hold only what was there before."""
    after = itertools.islice(itertools.dropwhile(lambda e: e is not made, project.events), 1, None)
    return next((e for e in after if e.kind == "store" and e.name.startswith("attribute.") and e.args
                 and unwrap(e.args[0]) is unwrap(part)), None)  # fmt: skip


def _behind(held: _Held, later: Event) -> tuple[Patch, ...]:
    """The optimizer built behind the store, where both stand in one block."""
    same = later.file is held.event.file
    return optimizers.built_later(later.file, held.event.node, later.node) if same else ()


def _taken(held: _Held, whole: Instance, path: str, part: Value) -> bool:
    """Whether an optimizer holds a module, or one inside it, or may hold it."""
    if any(id(p) in held.owned for p in submodules(part) or [part]):
        return True
    if held.whole is not whole or not held.choices:
        return False
    inner = [(path, part)] + [(p, x) for p, x in named_parts(whole) if p.startswith(f"{path}.")]
    names = [n for p, x in inner if learns(x) or affine(x) for n in parameter_names(p, x)]
    return any(choice.takes(n, code) for n in names for choice, code in held.choices)


@dataclass
class _Called:
    order: int
    event: Event


def _calls(loop: TrainingLoop) -> dict[int, _Called]:
    """The first call with gradients of each module inside a loop."""
    found: dict[int, _Called] = {}
    for place in loop.of("__call__"):
        module = unwrap(place.event.receiver) if place.event.receiver is not None else None
        if module is not None and place.event.grad is not False:
            found.setdefault(id(module), _Called(place.order, place.event))
    return found


def _left_out(part: Value, taken: dict[int, bool], reached: frozenset[object], calls: dict[int, _Called], path: str,
              whole: Instance) -> bool:  # fmt: skip
    inner = submodules(part) or [part]
    if taken[id(part)] or _READ_ONLY.search(path) or _is_tied(whole, path):
        return False
    if not any(learns(p) or affine(p) for p in inner):
        return False
    if any(isinstance(p, (Thing, Instance)) and (p.state.get("frozen", False) is not False or p.state.get("pretrained"))
           for p in inner):  # fmt: skip
        return False
    if isinstance(part, Thing) and part.short == "Parameter":
        told = part.argument(1, "requires_grad")
        return getattr(told, "value", True) is not False and _is_read(whole, path)
    called = next((calls[id(p)] for p in inner if id(p) in calls), None)
    result = called.event.result if called is not None else None
    return isinstance(result, Tensor) and result.grad is not False and result.site in reached


def _is_tied(whole: Instance, path: str) -> bool:
    """Whether a part shares a weight with another: `self.head.weight = self.embed.weight`, in either direction."""
    leaf = re.escape(path.rpartition(".")[2])
    shared = re.compile(rf"\b{leaf}\.weight\s*=[^=]|=\s*[\w.]*\b{leaf}\.weight\s*(#.*)?$|tie_weights\(", re.MULTILINE)
    return any(shared.search(info.file.text) for info in whole.klass.info.lineage())


def _is_read(whole: Instance, path: str) -> bool:
    """Whether a method of the model reads a parameter of its own that is no layer."""
    if "." in path:
        return False
    for info in whole.klass.info.lineage():
        for name, method in info.methods.items():
            read = [n for n in below(method.info.node)
                    if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)]
            if name != "__init__" and any(n.attr == path for n in read):
                return not any(n.attr == "data" and written(n.value) == f"self.{path}" for n in read)
    return False


def _set_apart(project: Project, whole: Instance, inside: dict[int, str]) -> bool:
    """Whether parameters of the model are frozen one by one, or changed by hand under no_grad."""
    for event in project.events:
        by_hand = event.kind == "store" and event.name in ("attribute.requires_grad", "attribute.data")
        by_hand |= event.kind == "call" and event.method in ("requires_grad_", "copy_", "lerp_", "add_", "sub_", "mul_")
        of = event.receiver.state.get("of") if by_hand and isinstance(event.receiver, Thing) else None
        if isinstance(of, Parameters) and any(unwrap(m) is whole or id(unwrap(m)) in inside for m in of.modules):
            return True
    return False


def _is_loaded(project: Project, whole: Instance) -> bool:
    """Whether the model's weights come from a file; a checkpoint of a run that goes on has an optimizer's state too."""
    loads = list(project.calls("load_state_dict"))
    if any(is_optimizer(e.receiver) for e in loads):
        return False
    parts = {id(p) for p in submodules(whole)}
    return any(id(unwrap(e.receiver)) in parts for e in loads if e.receiver is not None) or bool(
        whole.state.get("pretrained"))  # fmt: skip


def _on_purpose(held: _Held) -> bool:
    pieces = {c for choice, _ in held.choices for c in constants_of(choice)}
    return held.groups < 2 or any(_ON_PURPOSE.search(p) for p in pieces)


def _finding(held: _Held, whole: Instance, out: list[tuple[str, Value]], calls: dict[int, _Called], weak: bool,
             patch: tuple[Patch, ...], later: Event | None = None) -> Finding:  # fmt: skip
    event, names = held.event, [path for path, _ in out]
    listed = ", ".join(f"`{n}`" for n in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    path, part = out[0]
    called = next((calls[id(p)] for p in submodules(part) or [part] if id(p) in calls), None)
    used = f"called at {called.event.file.path}:{called.event.line}" if called is not None else "read in its forward"
    how = "match none of the names that its groups are chosen by" if held.choices else "are in none of its groups"
    if len(names) == 1:
        how = how.replace("match ", "matches ").replace("are in", "is in")
    when = f"{listed} of {whole.klass.info.name} ({used}) {how} (optimizer at {event.file.path}:{event.line})"
    if later is not None:
        was, now = ("replaced", "the new one") if len(later.args) > 1 else ("put there", "it")
        when = (f"{listed} of {whole.klass.info.name} ({used}) was {was} at {later.file.path}:{later.line}, after the "
                f"optimizer was built at {event.file.path}:{event.line}: {now} {how}")
    return RULE.finding(
        f"{when}, no other optimizer holds "
        + ("it: it gets gradients and stays at its initialisation" if len(names) == 1 else
           "them: they get gradients and stay at their initialisation"),
        location(event),
        event.file.path,
        bearing=Bearing.SIGN if weak else Bearing.CAUSE,
        severity=Severity.MEDIUM if weak else RULE.severity,
        measured={"kind": "by name" if held.choices else "groups", "module": path, "modules": len(names),
                  "made_at": str(part.site) if isinstance(part, (Thing, Instance)) else "?"},
        patch=patch,
    )


def _patch(project: Project, held: _Held, out: list[tuple[str, Value]]) -> tuple[Patch, ...]:
    models = {choice.model for choice, _ in held.choices}
    model = _reached(project, held.event, models.pop()) if models else ""
    parts = [optimizers.Part(path, isinstance(p, Thing) and p.short == "Parameter") for path, p in out]
    return () if model is None else optimizers.one_group_more(held.event.file, held.event.node, parts, model)


def _reached(project: Project, event: Event, model: str) -> str | None:
    """How a model's parts are reached: `net`, `net.module` where it is wrapped; None where that is unknown."""
    if not any(f.mentions(_WRAPPED_BY) for f in project.files):
        return model
    used = [n for n in below(event.file.tree) if isinstance(n, ast.Name) and n.id == model]
    made = syntax(event.file).assigned(used[-1]) if used else None
    wrapped = isinstance(made, ast.Call) and last_name(made.func) in ("DistributedDataParallel", "DDP", "DataParallel")
    return f"{model}.module" if wrapped else None
