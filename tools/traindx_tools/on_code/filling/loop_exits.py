"""On what it depends when a distributed training loop is left: everything that a condition's values were made of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.program.driving import WayOut

_STARTS = frozenset({"init_process_group", "DistributedDataParallel", "FullyShardedDataParallel", "fully_shard",
                     "Accelerator", "Fabric"})
TOGETHER = re.compile(r"reduce|gather|broadcast|check_trigger|set_trigger|synchronize_between")
_CLOCK = frozenset({"time.time", "time.perf_counter", "time.monotonic", "datetime.datetime.now"})
_SHARES = frozenset({"DistributedSampler", "prepare", "setup_dataloaders"})
_RANK = re.compile(r"(\w+\.)?(local_|global_)?rank|(\w+\.)?is_(local_)?main_process|(\w+\.)?process_index")
_WRAPS = re.compile(r"DistributedDataParallel\(|\bDDP\(|FSDP\(|fully_shard\(|\.to\(|\.cuda\(")
_Names = dict[str, list[ast.expr]]


def ways_out(project: Project) -> Iterator[WayOut]:
    """Every way out of a training loop in which the processes bring nothing together but gradients."""
    starts = {e.file.path for e in project.calls(*_STARTS)}
    seen: set[int] = set()
    for loop in project.training_loops:
        node, code = loop.block.node, syntax(loop.block.file)
        if not (_STARTS & loop.root.methods or loop.block.file.path in starts):
            continue
        if id(node) in seen or not isinstance(node, (ast.For, ast.While)) or _agrees(loop):
            continue
        seen.add(id(node))
        for branch in code.inside(node, ast.If):
            last, inner = branch.body[-1], next(iter(code.loops(branch)), node)
            trains = inner is node or any(last_name(c.func) == "backward" for c in code.inside(inner, ast.Call))
            leaves = isinstance(last, ast.Return) or (isinstance(last, ast.Break) and trains)
            if leaves and code.scope(branch) is code.scope(node):
                kind, on = _decided_by(code, node, branch.test)
                if kind:
                    yield WayOut(written(branch.test)[:80], code.spot(branch), kind, on)


def _agrees(loop: TrainingLoop) -> bool:
    return any(TOGETHER.search(p.event.method) and not _of_gradients(p.event) for p in loop.places
               if p.event.kind == "call")


def _of_gradients(event: Event) -> bool:
    first = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
    return first is not None and re.search(r"\.grad(\.data)?$", written(first)) is not None


def _decided_by(code: Syntax, loop: ast.For | ast.While, test: ast.expr) -> tuple[str, str]:
    """What makes one process decide otherwise than another, in a word, and where; "" where nothing is known to."""
    made, sent = _bindings(code, loop), {
        written(c.func.value) for c in code.inside(loop, ast.Call)
        if last_name(c.func) == "backward" and isinstance(c.func, ast.Attribute)}
    queue, seen, losses = [test], set[str](), False
    for value in queue:
        for part in _parts(value):
            text = written(part)
            if isinstance(part, ast.Call):
                if code.qualified(part.func) in _CLOCK or text.startswith("time.time("):
                    return "clock", ""
                if last_name(part.func) in _SHARES or [written(a) for a in part.args if _RANK.fullmatch(
                        written(a))] == [written(a) for a in part.args] != []:
                    return "metric", f" (line {part.lineno})"
                losses = losses or (last_name(part.func) == "item" and text[: -len(".item()")] in sent)
            elif _RANK.fullmatch(text):
                return ("rank", "") if value is test else ("metric", f" (line {part.lineno})")
            elif text not in seen and text not in code.aliases:
                seen.add(text)
                queue += made.get(text, [])[:20]
    return ("loss", "") if losses else ("", "")


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """The names, attributes, entries and calls in an expression; lengths and the way onto a device decide nothing."""
    if isinstance(value, ast.Call) and (last_name(value.func) == "len" or _WRAPS.search(written(value.func) + "(")):
        return
    if isinstance(value, (ast.Name, ast.Attribute, ast.Call)):
        yield value
    key = value.slice if isinstance(value, ast.Subscript) else None
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        yield value
        return
    device = isinstance(value, ast.Call) and len(value.args) > 1  # `evaluate(model, loader, rank)`
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.keyword):
            child = child.value
        if device and _RANK.fullmatch(written(child)):
            continue
        if isinstance(child, ast.expr):
            yield from _parts(child)
        elif isinstance(child, ast.comprehension):
            yield from _parts(child.iter)


def _bindings(code: Syntax, loop: ast.For | ast.While) -> _Names:
    """What each name of a function is made of: values, what is gone over, conditions of its changes in the loop."""
    found: _Names = {}
    for node in below(code.scope(loop)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.For)):
            value = node.iter if isinstance(node, ast.For) else node.value
            if _WRAPS.search(written(value)) and "DataLoader" not in written(value):
                continue
            tests = [u.test for u in code.above(node) if isinstance(u, ast.If)] if loop in code.above(node) else []
            for whole in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for target, part in _gone_over(whole, value) if isinstance(node, ast.For) else _pairs(whole, value):
                    found.setdefault(written(target), []).extend([part, *tests])
    return found


def _gone_over(target: ast.expr, iterable: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of a loop. A count of its turns is made of nothing: it is the same in every process."""
    call = iterable
    while isinstance(call, ast.Call) and call.args and last_name(call.func) != "enumerate":
        call = call.args[0]
    if isinstance(call, ast.Call) and call.args and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        yield from _pairs(target.elts[1], call.args[0])
    else:
        yield from _pairs(target, iterable)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each single target with what it is given; the whole where it is unpacked from one value."""
    if not isinstance(target, ast.Tuple):
        yield target, value
        return
    same = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
    for i, inner in enumerate(target.elts):
        yield from _pairs(inner, value.elts[i] if same and isinstance(value, ast.Tuple) else value)
