"""The numbers that calls are given, where a range is known for them, and by which one chains of optax multiply."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.knowledge.ranges import by_call
from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.optimizer_parameters import held
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import is_optimizer
from traindx_tools.on_code.values import Bag, Const, Operation, Symbol, Table, Tensor, Thing, Value, number, truth
from traindx_tools.program.constants import Constants

_PACKAGES = ("torch.", "optax.", "flax.", "transformers.", "trl.")
_ELSEWHERE = re.compile(r"load_state_dict|pretrained|torch\.load|load_weights|update_bn|running_(mean|var)|"
                        r"\.momentum\s*=|weights\s*=\s*[\"'A-Z]|create_model|from_checkpoint|load_file")  # fmt: skip
"""Statistics that come from somewhere else, or a momentum that is set later."""
_WRITES = {"constant_": None, "fill_": None, "zeros_": 0.0, "ones_": 1.0, "zero_": 0.0}

_SMALL_RATE = 0.02
"""A rate above this may be a factor of its own, with a function that gives the rate (Vaswani et al. 2017: 1.0)."""


def constants(project: Project) -> Iterator[Constants]:
    """Every such call, what is written into all layers, and the scores of softmaxes of which the size is known."""
    updates = _updates(project)
    shaped = {id(e.result.argument(0, "optimizer")) for e in project.calls("LambdaLR") if isinstance(e.result, Thing)}
    meant = re.compile("|".join(table("quantities.toml")["words"]["on_purpose"]), re.IGNORECASE)
    always = frozenset({"parts are frozen"} if any("requires_grad" in f.text or "peft" in f.text
                                                   for f in project.files) else ())  # fmt: skip
    always |= frozenset({"gradients are clipped"} if any(project.calls("clip_grad_norm_", "clip_grad_value_")) else ())
    for event in project.events:
        if event.kind != "call" or not event.name.startswith(_PACKAGES):
            continue
        rows = by_call().get(event.name.rpartition(".")[2], ())
        if not rows or (is_optimizer(event.result) and event.name.startswith("torch") and not held(event.result)):
            continue
        numbers, chosen = _numbers(project, event)
        if updates is not None and 0 < numbers.get("momentum", 0.0) <= 1:
            share = (1 - numbers["momentum"]) ** updates
            numbers |= {"initial_share": share, "updates": updates}
        if numbers:
            around = always | frozenset(_circumstances(project, event, shaped, bool(chosen)))
            around |= frozenset({"meant"} if event.file.mentions(meant) else ())
            yield Constants(event.method, event.name.rpartition(".")[2], event.spot, numbers, chosen, around, event)
    yield from _written(project)
    yield from _scores(project)


def _numbers(project: Project, event: Event) -> tuple[dict[str, float], frozenset[str]]:
    found: dict[str, float] = {}
    chosen: set[str] = set()
    for row in by_call()[event.name.rpartition(".")[2]]:
        head, _, item = row.argument.partition(".")
        for name in (head, *row.also):
            position = 0 if event.name.startswith("optax.") and row.position == 1 else row.position
            given = event.argument(position, name)
            parts = given.items if isinstance(given, Bag) and item else [given]
            for i, part in enumerate(parts):
                value = number(part)
                if value is not None:
                    key = f"{head}.{i}" if item and name == head else name
                    found[key] = value
                    if isinstance(part, Const) and not part.fixed:
                        chosen.add(key)
    made = event.result
    turned = factor(project, event) if event.name == "optax.chain" else None
    if turned is not None:
        found["factor"] = turned
    if isinstance(made, Thing) and made.state.get("largest") is not None:
        rate = _rate(made.argument(0, "optimizer"))
        found |= {"largest": made.state["largest"]} | ({"rate": rate} if rate is not None else {})
    first = number(event.kwargs.get("b1"))
    return found | ({"b1": first} if first is not None else {}), frozenset(chosen)


def _rate(optimizer: Value | None) -> float | None:
    """The learning rate of an optimizer, or of its first group."""
    if not isinstance(optimizer, Thing):
        return None
    groups = optimizer.argument(0, "params")
    first = groups.items[0] if isinstance(groups, Bag) and groups.items else None
    return number(optimizer.argument(1, "lr") or (first.items.get("lr") if isinstance(first, Table) else None))


def _circumstances(project: Project, event: Event, shaped: set[int], chosen: bool) -> Iterator[str]:
    made = event.result
    if id(made) in shaped:
        yield "the schedule gives the rate"
    if isinstance(made, Thing) and (_rate(made.argument(0, "optimizer")) or 1.0) <= _SMALL_RATE:
        yield "the optimizer's rate is small"
    if number(event.kwargs.get("momentum")):
        yield "momentum"
    if chosen and any(isinstance(up, (ast.If, ast.IfExp)) for up in syntax(event.file).above(event.node)):
        yield "one of several"
    optim = event.kwargs.get("optim")
    if optim is not None and not (isinstance(optim, Const) and "adam" in str(optim.value)):
        yield "another optimizer"
    if isinstance(made, Thing) and "BatchNorm" in made.short:
        tracked = made.argument(4, "track_running_stats")
        if tracked is not None and truth(tracked) is not True:
            yield "statistics not kept"
        if any(f.mentions(_ELSEWHERE) for f in project.files):
            yield "statistics from elsewhere"


def _updates(project: Project) -> float | None:
    """How many steps the training loops take, where every count is a constant."""
    totals: list[float] = []
    for loop in project.training_loops:
        for place in loop.backwards:
            total = 1.0
            for block in place.loops:
                count = number(block.count) if block.count is not None else None
                if count is None:
                    return None
                total *= count
            totals.append(total)
    return max(totals) if totals else None


# --- what initialisers write

def _written(project: Project) -> Iterator[Constants]:
    """Constants written into the weights or biases of the layers that a loop or an initialiser comes by."""
    relu = any(True for _ in project.calls("relu", "relu_", "ReLU"))
    seen: set[tuple[str, int]] = set()
    for event in project.calls(*_WRITES):
        place = event.file.path, event.line
        initialiser = event.name.startswith("torch.nn.init.")
        target = event.args[0] if initialiser and event.args else event.receiver
        value = _WRITES[event.method]
        if value is None:
            value = number(event.argument(1, "val") if initialiser else event.args[0] if event.args else None)
        part = _part(target)
        if part and value is not None and place not in seen and _of_every_layer(event, initialiser, part):
            seen.add(place)
            yield Constants(f"{part} of every layer", event.text, event.spot, {"value": value},
                            circumstances=frozenset({"relu"} if relu else ()), origin=event)


def _part(target: Value | None) -> str:
    """"weight" or "bias" of `layer.weight`, `layer.bias.data`."""
    if isinstance(target, Symbol) and target.name == "data" and isinstance(target.parent, Symbol):
        target = target.parent
    return target.name if isinstance(target, Symbol) and target.name in ("bias", "weight") else ""


def _of_every_layer(event: Event, initialiser: bool, part: str) -> bool:
    """Whether the layer is a loop's variable or the argument of an initialiser, and no norm or single layer's own."""
    node, code = event.node, syntax(event.file)
    if not isinstance(node, ast.Call) or event.function is None:
        return False
    head: ast.expr = node.args[0] if initialiser and node.args else node.func
    while isinstance(head, (ast.Attribute, ast.Call)):
        head = head.value if isinstance(head, ast.Attribute) else head.func
    ifs = [up for up in code.above(node) if isinstance(up, ast.If)]
    tests = " ".join(ast.unparse(i.test) for i in ifs)
    drawn = any(isinstance(n, ast.Call) and ast.unparse(n.func).endswith("_") for i in ifs for s in i.orelse
                for n in below(s))  # fmt: skip
    dense = "Linear" in tests or "Conv" in tests
    if not isinstance(head, ast.Name) or drawn or not dense or "Norm" in tests or "Embedding" in tests:
        return False
    spec = event.function.node.args
    applied = event.function.name in " ".join(ast.unparse(a) for c in code.calls("apply") for a in c.args)
    argument = applied and head.id in {a.arg for a in (*spec.posonlyargs, *spec.args)}
    looped = any(isinstance(x, ast.For) and head.id in ast.unparse(x.target) and "modules(" in ast.unparse(x.iter)
                 for x in code.loops(node))  # fmt: skip
    return argument or looped


# --- scores

def _scores(project: Project) -> Iterator[Constants]:
    """The interval of what a cross entropy takes, where it is known and lies around 0."""
    for event in project.calls("cross_entropy", "softmax_cross_entropy_with_integer_labels"):
        scores = event.argument(0, "input") or event.kwargs.get("logits")
        if isinstance(scores, Tensor) and scores.high is not None and scores.low == -scores.high and (
                event.grad is not False):  # fmt: skip
            yield Constants("scores of a softmax", event.text, event.spot, {"size": scores.high}, origin=event)


_TURNING = frozenset({"scale_by_learning_rate", "adam", "adamw", "sgd", "rmsprop", "lion", "lamb", "adagrad", "nadam",
                    "radam", "amsgrad", "adafactor", "inject_hyperparams"})
"""Parts that turn the sign themselves."""


def factor(project: Project, chain: Event) -> float | None:
    """The product of the factors of a chain of scale_by_* parts, of a schedule the largest number; None where it is not
    known, or where the updates are not applied as they come."""
    names = [_name(part) for part in chain.args]
    if chain.kwargs or not any("scale_by_" in n for n in names) or _TURNING & {n.rpartition(".")[2] for n in names} or (
            not all(n.startswith("optax.") for n in names) or not _applied(project)):
        return None
    product, known = 1.0, False
    for part, name in zip(chain.args, names, strict=True):
        if name in ("optax.scale", "optax.scale_by_schedule") and isinstance(part, Thing):
            given = part.argument(0, "step_size" if name == "optax.scale" else "step_size_fn")
            value = number(given) if name == "optax.scale" else _peak(project, given)
            if value is None:
                return None
            product, known = product * value, True
    return product if known else None


def _name(part: Value) -> str:
    return part.type if isinstance(part, Thing) else part.name.partition("@")[0] if isinstance(part, Symbol) else ""


def _applied(project: Project) -> bool:
    """Whether what `update` gives is handed to apply_updates as it is."""
    given = [e.argument(1, "updates") for e in project.calls("apply_updates")]
    return any(isinstance(g, Symbol) and g.role == "item" and g.parent is not None
               and getattr(g.parent, "name", "").startswith("update@") for g in given)


def _peak(project: Project, schedule: Value | None) -> float | None:
    """The number of largest size that a schedule of optax is given, or one of those that it joins."""
    if not isinstance(schedule, Tensor):
        return None
    made = [e for e in project.events if e.site == schedule.site and e.name.startswith("optax.")]
    given = [i for e in made for v in (*e.args, *e.kwargs.values()) for i in (v.items if isinstance(v, Bag) else [v])]
    if any(isinstance(v, Operation) and v.op == "-" and len(v.operands) == 1 for v in given):
        return None
    known = [_peak(project, v) if isinstance(v, Tensor) and v.site != schedule.site else number(v) for v in given]
    numbers = [n for n in known if n is not None]
    return min(numbers) if any(n < 0 for n in numbers) else max(numbers, default=None)
