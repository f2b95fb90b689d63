"""What processes of a distributed run do together, and what one of them does as if it were alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.containers import depends_on_rank
from traindx_tools.on_code.filling.loop_exits import TOGETHER
from traindx_tools.on_code.project import BACKWARD, Project
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import argument, syntax, written
from traindx_tools.on_code.trace import Block, Event, Place, walk
from traindx_tools.on_code.values import (
    Bag,
    Function,
    Instance,
    Operation,
    Symbol,
    Tensor,
    Thing,
    Value,
    number,
    parts,
    truth,
)
from traindx_tools.program.driving import Collective, RankUse, WayOut

_ROWS = table("calls.toml")["collectives"]
_TORCH, _ACCELERATE = frozenset(_ROWS["torch"]), frozenset(_ROWS["accelerate"])
_WRAPPERS, _FLAGS = frozenset(_ROWS["wrappers"]), frozenset(_ROWS["main_process"])


def collectives(project: Project) -> Iterator[Collective]:
    """Every one of all processes."""
    for root in project.roots:
        for place in walk(root, _TORCH | _ACCELERATE | {"__call__"}):
            if not _is_collective(place):
                continue
            event = place.event
            arms = [b for b in place.branches if b.subject is not None and asks_rank(b.subject)]
            arms += [b for b in _left_before(place) if b.subject is not None and asks_rank(b.subject)]
            matched = any(_is_matched(place, arm) for arm in arms if arm in place.path)
            shares = [(b, s) for b in place.loops if (s := _share(b.subject))]
            loop, share = shares[0] if shares else (None, "")
            yield Collective(
                event.method, event.spot, arms[0].spot if arms and not matched else None,
                loop.spot if loop is not None else None, share == "uneven share")


def _is_collective(place: Place) -> bool:
    event, model = place.event, place.event.receiver
    if isinstance(model, Thing) and event.method == "__call__" and model.short in _WRAPPERS:
        return event.grad is not False or model.short.startswith("Fully")
    if event.kind != "call" or "group" in event.kwargs or "process_group" in event.kwargs:
        return False
    if event.name.startswith("torch.distributed.") and event.name.count(".") == 2:
        return event.method in _TORCH
    return event.name.startswith("accelerate.Accelerator.") and event.method in _ACCELERATE


def asks_rank(test: Value) -> bool:
    """Whether a condition holds in some processes only; rank > -1 asks whether the run is distributed at all."""
    if isinstance(test, Operation) and test.op in ("not", "either"):
        some = [asks_rank(o) for o in test.operands]
        return any(some) if test.detail != "or" else all(some)
    if isinstance(test, Operation) and test.op == "compare":
        return depends_on_rank(test) and not any((number(o) or 0.0) < 0 for o in test.operands) and not any(
            isinstance(p, Symbol) and "world_size" in p.name for p in parts(test))
    return isinstance(test, Symbol) and test.name in _FLAGS


def _left_before(place: Place) -> list[Block]:
    """The arms before a place, in the blocks around it, that leave it out: `if rank != 0: return`."""
    found: list[Block] = []
    for at, block in enumerate(place.path):
        inner = place.path[at + 1] if at + 1 < len(place.path) else place.event
        before = block.body[: block.body.index(inner)]
        found += [b for b in before if isinstance(b, Block) and b.kind == "branch" and (
            b.left in ("return", "continue") or (b.left == "break" and block.kind == "loop"))
            and place.event.method not in b.methods]
    return found


def _is_matched(place: Place, arm: Block) -> bool:
    """Whether another arm of the same function makes the call: the others wait first, or make it where this one does
    not."""
    at = place.path.index(arm)
    scope = next((b for b in reversed(place.path[:at]) if b.kind in ("call", "root")), place.path[0])
    stack = [b for b in scope.body if isinstance(b, Block)]
    while stack:
        one = stack.pop()
        if one.kind == "branch" and one not in place.path:
            if place.event.method in one.methods:
                return True
        elif one.kind != "call":
            stack.extend(b for b in one.body if isinstance(b, Block))
    return False


def _share(value: Value | None) -> str:
    """Whether a loop runs over what one process has of the data, and whether the shares certainly differ in size."""
    if isinstance(value, Tensor):
        return next((t for t in ("uneven share", "share") if t in value.tags), "")
    return next((s for s in map(_share, value.items[:3]) if s), "") if isinstance(value, Bag) else ""


_TELLS = re.compile(r"rank|master|main_proc|is_main|world|zero|leader|primary|process_index|is_chief")
_SEVERAL = re.compile(r"init_process_group|DistributedDataParallel|is_(local_)?main_process|num_processes"
                      r"|wait_for_every|torchrun|accelerate launch|process_index")
"""What nobody writes who runs one process."""
_SEEDS = frozenset({"manual_seed", "set_seed", "seed_everything", "manual_seed_all"})
_FILES = frozenset({"save", "save_pretrained"})
_GRADS = frozenset({"value_and_grad", "grad"})
_MEANS = frozenset({"pmean", "psum", "all_gather", "pvary", "MultiSteps"})
_FIGURES = frozenset({"__call__", "item", "argmax", "sum", "mean", "topk", "eq"})
_SUMMED = re.compile(r"compute$|sync|^all_|^dist")


def rank_uses(project: Project) -> Iterator[RankUse]:
    """Each of them in the runs that train a model that DistributedDataParallel wraps."""
    seen: set[int] = set()
    for root in project.roots:
        yield from _own_gradients(root)
        if not (BACKWARD & root.methods) or not _is_wrapped(root):
            continue
        several = "DistributedDataParallel" in root.methods or _SEVERAL.search(root.file.text) is not None
        for place in walk(root, _FILES):
            file = _file(place.event)
            if file is not None and id(place.event.node) not in seen and not _is_guarded(place, file):
                seen.add(id(place.event.node))
                yield RankUse("file", place.event.spot, written(file)[:60], several)
        fed = {id(b.subject) for b, _ in _loops(root) if BACKWARD & b.methods}
        for block, path in _loops(root):
            loader = block.subject
            if not isinstance(loader, Thing) or loader.short != "DataLoader" or id(block.node) in seen:
                continue
            seen.add(id(block.node))
            if BACKWARD & block.methods:
                if _is_same(root, loader, block.file):
                    yield RankUse("batches", project.spot(loader.site), block.spot)
            elif {"__call__"} < _FIGURES & block.methods and not _FILES & block.methods and _is_share(loader) and (
                    id(loader) not in fed and not _is_reduced(block, path)):
                call = next((b for b in reversed(path) if b.kind == "call"), None)
                yield RankUse("share", (call or block).spot, block.spot, several)


def left_by_one(project: Project) -> Iterator[WayOut]:
    """Ways out of a loop with collectives that stand under a condition on the rank: the other ranks go on."""
    for root in project.roots:
        for loop, _ in _loops(root) if BACKWARD & root.methods and _is_wrapped(root) else ():
            if not (BACKWARD & loop.methods):
                continue
            for arm in (b for b in loop.body if isinstance(b, Block) and b.kind == "branch"):
                other = {m for b in loop.body if isinstance(b, Block) and b is not arm and b.node is arm.node
                         for m in b.methods}
                if arm.subject is not None and asks_rank(arm.subject) and not any(map(TOGETHER.search, other)):
                    for way in _leaving(arm):
                        yield WayOut(written(getattr(way.node, "test", way.node))[:80], way.spot, "rank")


def _own_gradients(root: Block) -> Iterator[RankUse]:
    """Steps that run on every device and apply the gradients of their own part of the batch."""
    for place in walk(root, frozenset({"apply_gradients", "apply_updates"})):
        mapped = next((b for b in place.path if b.kind == "call" and isinstance(b.subject, Function)
                       and "jax.pmap" in (*b.subject.wrappers, *b.subject.info.wrappers)), None)
        if mapped is not None and _GRADS & mapped.methods and not _MEANS & mapped.methods:
            yield RankUse("gradients", place.event.spot, mapped.spot)


def _leaving(arm: Block) -> Iterator[Block]:
    """The branches inside an arm, and the arm itself, that leave the loop around it."""
    if arm.left in ("break", "return"):
        yield arm
        return
    for inner in arm.body:
        if isinstance(inner, Block) and inner.kind == "branch":
            yield from _leaving(inner)


def _loops(root: Block) -> Iterator[tuple[Block, tuple[Block, ...]]]:
    stack: list[tuple[Block, tuple[Block, ...]]] = [(root, ())]
    seen: set[int] = set()
    while stack:
        block, path = stack.pop()
        if block.kind == "loop":
            yield block, path
        if id(block) not in seen:
            seen.add(id(block))
            stack += [(b, (*path, block)) for b in reversed(block.body) if isinstance(b, Block)]


def _is_wrapped(root: Block) -> bool:
    """Whether the model that is called is replicated over processes (and not sharded, where all have to save)."""
    called = [p.event.receiver for p in walk(root, frozenset({"__call__"}))]
    fed = [b.subject for b, _ in _loops(root) if BACKWARD & b.methods]
    prepared = [v for v in (*called, *fed) if isinstance(v, (Thing, Instance)) and v.state.get("prepared")]
    wrappers = {v.short for v in called if isinstance(v, Thing)}
    return bool(prepared) or ("DistributedDataParallel" in wrappers and "FullyShardedDataParallel" not in wrappers)


def _file(event: Event) -> ast.expr | None:
    """Where a checkpoint is written to."""
    node = event.node
    if event.kind != "call" or not isinstance(node, ast.Call):
        return None
    if re.search("fsdp|deepspeed|parallelism_config", event.file.text, re.IGNORECASE):
        return None  # all processes have to take part
    if event.name in ("torch.save", "safetensors.torch.save_file"):
        return node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "f"), None)
    return node.args[0] if event.method == "save_pretrained" and node.args else None


def _is_guarded(place: Place, file: ast.expr) -> bool:
    """Whether a condition around it, an early way out before it, a decorator or its name tells the processes apart."""
    code = syntax(place.event.file)
    if _TELLS.search(written(file) + written(code.origin(file))) or {"is_main_process", "save_function"} & set(
            place.event.kwargs):
        return True
    for above, block in zip(place.path, (*place.path[1:], None), strict=True):
        if block is not None and block.kind == "branch" and _tells(block):
            return True
        asked = [up.test for node in (getattr(block, "node", None) or place.event.node,)
                 for up in syntax((block or place.event).file).above(node) if isinstance(up, ast.If)]
        if any(_TELLS.search(written(test)) for test in asked):
            return True  # also where it is known to hold here, as in a call for one process
        decorators = getattr(above.function.node, "decorator_list", []) if above.function is not None else []
        if any(_TELLS.search(written(d)) for d in decorators):
            return True
        for item in above.body:
            if item is block or item is place.event:
                break
            if isinstance(item, Block) and item.kind == "branch" and item.left and _tells(item):
                return True
    return False


def _tells(block: Block) -> bool:
    test = getattr(block.node, "test", None)
    if test is None or block.subject is None:
        return False
    return asks_rank(block.subject) or depends_on_rank(block.subject) or any(
        _TELLS.search(written(n) + written(syntax(block.file).origin(n))) for n in ast.walk(test)
        if isinstance(n, (ast.Name, ast.Attribute, ast.Call)))


def _is_share(loader: Thing) -> bool:
    sampler = loader.argument(3, "sampler")
    return bool(loader.state.get("prepared")) or (isinstance(sampler, Thing) and sampler.short == "DistributedSampler")


def _is_reduced(block: Block, path: tuple[Block, ...]) -> bool:
    """Whether anything between the loop and the epoch around it brings the processes together, training aside."""
    scopes = [block]
    for above in reversed(path):
        scopes += [b for b in above.body if isinstance(b, Block) and not BACKWARD & b.methods]
        direct = {e.method for e in above.body if isinstance(e, Event)}
        if any(TOGETHER.search(m) or _SUMMED.search(m) for m in direct - {"__call__"}):
            return True
        if above.kind == "loop":
            break
    return any(TOGETHER.search(m) or _SUMMED.search(m) for b in scopes for m in b.methods)


def _is_same(root: Block, loader: Thing, file: SourceFile) -> bool:
    """Whether every process certainly draws the same batches from a loader."""
    given = {"sampler", "batch_sampler", "generator"} & set(loader.kwargs)
    data = loader.argument(0, "dataset")
    if given or len(loader.args) > 3 or loader.state.get("prepared") or data is None or not _is_plain(data):
        return False
    code, shuffles = syntax(file), loader.argument(2, "shuffle")
    given_data = argument(loader.node, 0, "dataset") if isinstance(loader.node, ast.Call) else None
    names = [n for n in ast.walk(given_data) if isinstance(n, ast.Name)] if given_data is not None else []
    if any(_TELLS.search(written(value)) for n in names for _, value in code.bindings(n)):
        return False  # cut by rank before
    if shuffles is None or truth(shuffles) is False:
        return not isinstance(data, Symbol)
    seeds = [p.event for p in walk(root, _SEEDS) if p.event.args]
    return truth(shuffles) is True and bool(seeds) and not any(
        depends_on_rank(e.args[0]) or _TELLS.search(written(e.node)) for e in seeds)


def _is_plain(data: Value) -> bool:
    """Whether a data set certainly holds the same rows, by number, in every process."""
    if any(depends_on_rank(v) for v in parts(data)):
        return False
    if isinstance(data, Instance):
        info = data.klass.info
        text = "".join(written(i.node) for i in info.lineage())
        return info.method("__getitem__") is not None and not _TELLS.search(text) and not any(
            depends_on_rank(v) for v in (*data.args, *data.kwargs.values()))
    if isinstance(data, Thing):
        return data.type.startswith(("torch.utils.data.", "torchvision.")) and "Iter" not in data.short and all(
            not depends_on_rank(a) for a in (*data.args, *data.kwargs.values()))
    return isinstance(data, Symbol) and data.role in ("parameter", "item")
