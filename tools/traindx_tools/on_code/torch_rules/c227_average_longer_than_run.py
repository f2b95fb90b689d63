"""The moving average of the weights is longer than the run.

`ema = d * ema + (1 - d) * p` still holds a share d^n of the weights it began with after n updates. 0.9999 averages over
10,000 steps: after 1,200 of them 89 % of the average is the random initialisation, and whatever is sampled or evaluated
with it looks untrained although the loss is fine. Published values belong to runs of 10^5 steps and more; shorter runs
take a smaller d, or let it grow (min(d, (1 + n) / (10 + n))). The rule knows d and the number of updates from the code
and its configuration, and asks that the average is what is used. Target networks and averages with a warm-up or a bias
correction are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.literals import literal
from traindx_tools.on_code.project import BACKWARD, Project, location
from traindx_tools.on_code.repairs.written import in_configuration
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import Const, Tensor, Thing, Value, number, whole
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C227",
    name="average-longer-than-run",
    title="The average of the weights is longer than the run",
    severity=Severity.HIGH,
    sees="The decay of a moving average of weights beside the number of its updates, where the program fixes both.",
    matters="What is sampled or evaluated is mostly the initial weights, however well the model was trained.",
    alike=("a sampler that is wrong", "an average whose two factors are swapped"),
    confirm=("evaluate the trained weights and their average side by side", "print(decay ** updates)"),
    thresholds={
        "initial share left": Threshold(
            0.3679, "of the average", "decay^updates = 1/e: the run is as long as the average, 1 / (1 - decay) updates"
        )
    },
)
_MOST = 0.3679
_AVERAGE = re.compile(r"(^|[^a-z])(ema|avg|swa)|ema([^a-z]|$)|averag|shadow|polyak|smooth(ed)?_|_slow", re.IGNORECASE)
_OTHER = re.compile(
    r"target|tgt|teacher|momentum_enc|key_enc|codebook|cluster|usage|embed_avg|running_|loss|metric|grad", re.IGNORECASE
)
_WEIGHTS = re.compile(r"param|state_dict|weight|\.values\(\)|\.items\(\)|modules|_foreach_", re.IGNORECASE)
_GROWS = re.compile(r"min\(|warm|bias|n(um)?_updates|update_after|\*\*|pow\(|ramp|start|burn_in", re.IGNORECASE)
_SET = re.compile(r"if .*:\s+[^\n]*(copy_\(|load_state)")
"""The average is set to the weights under a condition."""
_NAMES = r"\b(?:(?:\w*_)?(?:ema|avg)(?:_\w*)?|\w*(?:E[mM][aA]|[aA]verag|shadow|polyak)\w*)\b"
_CALLED = (
    r"\b(?!(?:update|step|get|set|make|apply|create|build|init)_)(?:\w+_)?(?:ema|avg|averaged|average_?(?=model|net))"
    r"_?(?:model|net|network|unet|denoiser|generator|encoder|policy)?\("
)
_USED = re.compile(
    rf"load_state_dict\([^)\n]*{_NAMES}|(eval|sampl|generat|valid|predict|test|render|infer|visuali)\w*\([^)\n]*{_NAMES}"
    rf"|{_NAMES}(\.module|\.model|\.net)?\.(eval|apply\w*|store|copy_to|swap\w*|sample\w*|generate|predict)\(|{_CALLED}"
)
_PRETRAINED = re.compile(r"from_pretrained\(|pretrained\s*=\s*True|weights\s*=\s*[\"'A-Z]")
_USUAL = ("0.9999", "0.9998", "0.9995", "0.999", "0.998", "0.995", "0.99", "0.98", "0.95", "0.9")
_SETTLED = 1e-3
"""The share of the initial weights that a fitting decay leaves at the end of the run."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every update of an average in the loops that train."""
    found = list(_of_loops(project))
    if found and any(f.mentions(_USED) for f in project.files):
        pretrained = any(f.mentions(_PRETRAINED) for f in project.files)
        for place, decay, updates in found:
            yield _finding(project, place, decay, updates, pretrained)


def _of_loops(project: Project) -> Iterator[tuple[Place, float, float]]:
    """Updates of averages that outlast their run: their place, decay and number."""
    seen: set[int] = set()
    for loop in project.training_loops:
        for place in loop.places:
            decay = _decay(project, place.event)
            if decay is None or id(place.event) in seen:
                continue
            seen.add(id(place.event))
            updates = _updates(place)
            if updates is not None and 0.5 < decay < 1 and decay**updates > _MOST and not _grows(place):
                yield place, decay, updates


def _decay(project: Project, event: Event) -> float | None:
    """The share that an average keeps at one update, where an event is one of an average of weights."""
    if event.kind == "call" and event.method in ("update", "update_parameters"):
        return _of_library(event)
    if event.kind == "store" and isinstance(event.node, (ast.Subscript, ast.Attribute)):
        up = syntax(event.file).parent(event.node)
        value = up.value if isinstance(up, ast.Assign) else None
        return _of_sum(project, event, value) if _is_average_of_weights(event) else None
    form = _FORMS.get(event.method)
    if event.kind != "call" or not isinstance(event.node, ast.Call) or not _is_average_of_weights(event):
        return None
    if event.method == "copy_" and event.node.args:
        return _of_sum(project, event, event.node.args[0])
    return form(event) if form is not None else None


def _of_library(event: Event) -> float | None:
    """torch's AveragedModel with an exponential average; timm's ModelEma."""
    made = event.receiver
    if not isinstance(made, Thing) or not isinstance(made.node, ast.Call):
        return None
    if made.short == "AveragedModel":
        function = argument(made.node, 2, "avg_fn") or argument(made.node, 3, "multi_avg_fn")
        return _of_function(syntax(event.file), function) if made.site.path == event.file.path else None
    if made.short in ("ModelEma", "ModelEmaV2", "ModelEmaV3") and "use_warmup" not in made.kwargs:
        given = made.argument(1, "decay")
        return 0.9999 if given is None else number(given)
    return None


def _of_function(code: Syntax, function: ast.expr | None) -> float | None:
    function = code.origin(function) if isinstance(function, ast.Name) else function
    if isinstance(function, ast.Call) and last_name(function.func) in ("get_ema_avg_fn", "get_ema_multi_avg_fn"):
        given = argument(function, 0, "decay")
        return 0.999 if given is None else code.number(given)
    if isinstance(function, ast.Lambda):
        for product in (n for n in below(function.body) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)):
            shares = [code.number(side) for side in (product.left, product.right)]
            known = [s for s in shares if s is not None and s > 0.5]
            if known:
                return known[0]
    return None


def _complement(value: Value | None) -> float | None:
    weight = number(value)
    return None if weight is None else 1 - weight


_FORMS = {
    "lerp_": lambda e: _complement(e.argument(1, "weight")),
    "lerp": lambda e: _complement(e.argument(1, "weight")),
    "_foreach_lerp_": lambda e: _complement(e.argument(2, "weight")),
    "mul_": lambda e: number(e.argument(0, "other")) if "add_(" in _around(e) else None,
    "_foreach_mul_": lambda e: number(e.argument(1, "scalar")),
}
"""What each form of an update says of the share that is kept."""


def _of_sum(project: Project, event: Event, value: ast.expr | None) -> float | None:
    """`d * ema + (1 - d) * p`, bound to a name first or not."""
    code = syntax(event.file)
    while isinstance(value, ast.Call) and last_name(value.func) in ("clone", "detach") and not value.args:
        value = value.func.value if isinstance(value.func, ast.Attribute) else None
    value = code.origin(value) if isinstance(value, ast.Name) else value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    factors = [_factors(side) for side in (value.left, value.right)]
    for kept, new in (factors, factors[::-1]):
        for factor in kept:
            if any(_is_rest(other, factor) for other in new):
                return _number(project, event, code, factor)
    return None


def _factors(node: ast.expr) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else []


def _is_rest(node: ast.expr, share: ast.expr) -> bool:
    """Whether one factor is 1 minus the other."""
    if isinstance(node, ast.Constant) and isinstance(share, ast.Constant):
        known = isinstance(node.value, float) and isinstance(share.value, float)
        return known and abs(node.value + share.value - 1) < 1e-9 and share.value > 0.5  # type: ignore[operator]
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and written(node.right) == written(share)


def _number(project: Project, event: Event, code: Syntax, node: ast.expr) -> float | None:
    """A number of the program: an attribute as the objects of the class were made with it, else as it is written."""
    owner = event.function.owner if event.function else None
    if isinstance(node, ast.Attribute) and written(node.value) == "self" and owner is not None:
        made = {number(i.attrs.get(node.attr)) for i in project.instances if i.klass.info is owner}
        return made.pop() if len(made) == 1 else None
    return code.number(node)


def _around(event: Event) -> str:
    """The text of the function, or of the innermost loop, in which an event is."""
    code = syntax(event.file)
    if event.function is not None:
        return written(event.function.node)
    loops = code.loops(event.node)
    return written(loops[0]) if loops else written(code.statement(event.node))


def _is_average_of_weights(event: Event) -> bool:
    owner = event.function.qualified if event.function else ""
    node = event.node
    target = written(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    target = target or written(node if isinstance(node, (ast.Subscript, ast.Attribute)) else None)
    names = f"{owner} {target} {_walked(event, target)} {written(node) if event.method.startswith('_foreach') else ''}"
    return bool(_AVERAGE.search(names)) and not _OTHER.search(names) and bool(_WEIGHTS.search(_around(event)))


def _walked(event: Event, target: str) -> str:
    """What the loop that binds the target walks over: `ema.parameters()` in `zip(ema.parameters(), ...)`."""
    name = re.split(r"[.\[(]", target)[0]
    for loop in syntax(event.file).loops(event.node):
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call):
            bound = [written(t) for t in loop.target.elts]
            if name in bound and last_name(loop.iter.func) == "zip" and len(loop.iter.args) == len(bound):
                return written(loop.iter.args[bound.index(name)])
    return ""


def _updates(place: Place) -> float | None:
    """How often the update runs at most: the product of the counts of the training loops around it."""
    total, known = 1.0, False
    for block in place.loops:
        if BACKWARD & block.methods:
            count = number(block.count) or _batches(block.subject) or _turns(block)
            if count is None:
                return None
            total, known = total * count, True
    return total if known and total >= 1 else None


def _batches(loader: Value | None) -> float | None:
    """The number of batches of a loader over tensors whose length is known."""
    if not isinstance(loader, Thing) or loader.short != "DataLoader":
        return None
    data, size = loader.argument(0, "dataset"), whole(number(loader.argument(1, "batch_size") or Const(1)))
    first = data.args[0] if isinstance(data, Thing) and data.short == "TensorDataset" and data.args else None
    shape = first.shape if isinstance(first, Tensor) else None
    rows = shape.dims[0] if shape is not None and shape.exact and shape.dims else None
    return None if rows is None or not size else float(-(-rows // size))  # the last batch counts as well


def _turns(block: Block) -> float | None:
    """How often `while step < total` runs, where the counter goes up by one."""
    loop = block.node
    test = loop.test if isinstance(loop, ast.While) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Lt, ast.LtE)):
        return None
    steps = [n for n in below(loop) if isinstance(n, ast.AugAssign) and written(n.target) == written(test.left)]
    ones = len(steps) == 1 and isinstance(steps[0].value, ast.Constant) and steps[0].value.value == 1
    return syntax(block.file).number(test.comparators[0]) if ones else None


def _grows(place: Place) -> bool:
    """Whether the share grows over the run, or the average is set to the weights at some step."""
    event = place.event
    around = _around(event)
    function = event.function
    if function is not None and function.owner is not None:
        around = written(function.owner.node)
    elif function is None:
        around = "\n".join(line for line in around.splitlines() if _AVERAGE.search(line))
    tests = (b.node.test for b in place.branches if isinstance(b.node, ast.If))
    late = any(isinstance(t, ast.Compare) and not isinstance(t.left, ast.BinOp) for t in tests)
    return late or _GROWS.search(around) is not None or _SET.search(around) is not None


def _finding(project: Project, place: Place, decay: float, updates: float, pretrained: bool) -> Finding:
    event, left = place.event, decay**updates
    what = "the weights that the run began with" if pretrained else "the initial weights"
    shown = event.node if event.kind == "call" else syntax(event.file).statement(event.node) or event.node
    return RULE.finding(
        f"{event.file.segment(shown)} at {event.file.path}:{event.line} keeps {decay:g} of the average and runs "
        f"{updates:g} times: {left:.0%} of it is still {what} at the end ({decay:g}^{updates:g}), an average over "
        f"{1 / (1 - decay):,.0f} updates",
        location(event),
        event.file.path,
        bearing=Bearing.SIGN if pretrained else Bearing.CAUSE,
        severity=Severity.MEDIUM if pretrained else None,
        measured={"kind": "average", "decay": round(decay, 8), "updates": updates, "initial_share": round(left, 4)},
        patch=_patch(project, decay, updates),
    )


def _patch(project: Project, decay: float, updates: float) -> tuple[Patch, ...]:
    """The largest usual decay that leaves a thousandth of the initial weights, where the number is written once."""
    fitting = next((u for u in _USUAL if float(u) ** updates <= _SETTLED), None)
    if fitting is None:
        return ()
    summary = "an average that fits into the run"
    places = [(f, n) for f in project.files for n in syntax(f).of(ast.Constant) if _is(n, decay)]
    if len(places) == 1:
        return Change(places[0][0], summary).replace(places[0][1], fitting).patches()
    made = {p for f in project.files for key in _keys(syntax(f)) if not places
            for p in in_configuration(f, key, round(decay, 8), fitting, summary)}  # fmt: skip
    return tuple(made) if len(made) == 1 else ()


def _is(node: ast.Constant, decay: float) -> bool:
    value = literal(node)
    return isinstance(value, float) and abs(value - decay) < 1e-9


def _keys(code: Syntax) -> set[str]:
    """Entries and fields that may hold the decay."""
    entries = [n.slice.value for n in code.of(ast.Subscript) if isinstance(n.slice, ast.Constant)]
    fields = [n.attr for n in code.of(ast.Attribute)]
    return {k for k in (*entries, *fields) if isinstance(k, str) and re.search(r"ema|decay|avg|averag", k, re.I)}
