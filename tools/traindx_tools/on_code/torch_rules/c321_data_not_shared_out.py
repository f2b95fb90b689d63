"""Every process trains on all of the data.

DistributedDataParallel averages gradients and nothing else: it is a DistributedSampler (or rows that are taken by rank)
that gives every process its own part. Without one each process goes through the whole data set in every epoch. With the
same seed everywhere they even draw the same batches, and N devices compute the same gradient N times. A sampler that is
made and not handed to the loader changes nothing, although its set_epoch() is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project, at
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import Const, Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C321",
    name="data-not-shared-out",
    title="Every process trains on all of the data",
    severity=Severity.HIGH,
    sees="The loader of a training loop in a program that wraps its model in DistributedDataParallel: it has no "
         "sampler, or not the one that was made for it.",
    matters="N devices do the work of one: an epoch takes N times as many steps, or the same batches are computed N "
            "times.",
    alike=("rows that are taken by rank when the data set is made", "a stream that is split by worker and node",
           "a trainer or accelerator that puts the sampler in itself", "an endless random draw seeded by rank"),
    confirm=("print(rank, len(loader), labels[:8]) on two ranks: the length is not divided, or the labels are equal",),
)  # fmt: skip
_DDP = re.compile(r"DistributedDataParallel|FullyShardedDataParallel|\bDDP\(")
_OTHERS = re.compile(
    r"lightning|accelerat|deepspeed|horovod|webdataset|IterableDataset|mosaicml|split_dataset_by_node|\.shard\("
    r"|StreamingDataset|\bdali\b|ffcv|ignite|StatefulDataLoader|BatchSampler|distributed_sampler"
)
_RANK = re.compile(r"(^|_)(ranks?|world|world_?size|num_replicas|replicas?|shards?|process_index|dp_size|node)(_|$)")
_DRAWS = frozenset({"manual_seed", "seed", "manual_seed_all", "seed_everything", "set_seed", "default_rng", "Generator",
                    "range", "arange", "islice", "Subset", "RandomState", "Random", "array_split", "chunk", "split",
                    "select", "partial"})  # fmt: skip
_SAMPLERS = ("sampler", "batch_sampler")
_GIVES_PART = re.compile(r"data|_set$|loader|sampl|batch|shard|split|stream|feed|corpus|iter|part|rows", re.IGNORECASE)
_WRAPPERS = frozenset({"DistributedDataParallel", "FullyShardedDataParallel", "DDP", "DataParallel"})
_SAYS_RANK = re.compile(r"rank|world|replica|shard|process_index|dp_size|node")


def check(project: Project) -> Iterator[Finding]:
    """Look at the loaders that training loops run over."""
    files = project.files
    if not any("istribut" in f.text and f.mentions(_DDP) for f in files):
        return
    if any(f.mentions(_OTHERS) or ("transformers" in f.text and "Trainer" in f.text) for f in files):
        return
    samplers = [e.result for e in project.calls("DistributedSampler") if isinstance(e.result, Thing)]
    told: set[int] = set()
    for loop in project.training_loops:
        for block in {id(b): b for p in loop.backwards for b in p.loops}.values():
            loader = block.subject
            if isinstance(loader, Thing) and loader.short == "DataLoader" and id(loader) not in told:
                told.add(id(loader))
                yield from _judged(project, block, loader, samplers)


def _judged(project: Project, block: Block, loader: Thing, samplers: list[Thing]) -> Iterator[Finding]:
    given = [v for s in _SAMPLERS if not _is_none(v := loader.kwargs.get(s))] + list(loader.args[3:5])
    if given or loader.site is None or loader.state.get("prepared") or loader.state.get("annotation"):
        return
    data = loader.argument(0, "dataset")
    mine = [s for s in samplers if data is not None and s.argument(0, "dataset") is data]
    where = f"{loader.site.path}:{loader.site.line}"
    if mine and not _handed_over(project, mine[0]):
        why = f"The DistributedSampler made at {mine[0].site} is handed to no loader: the one at {where} draws from all"
        yield _finding(project, loader, f"{why} of the data in every process", "sampler", True,
                       _with_sampler(project, loader, mine[0]))  # fmt: skip
    elif not samplers and not any(_by_rank(syntax(f)) for f in project.files) and not _own_sampler(project):
        seeded = _seeded(project)
        so = "in the same order, because all are seeded alike" if seeded else "in an order of its own"
        why = (f"The model is wrapped for several processes and the loader at {where} has no DistributedSampler: each "
               f"of them goes through all of the data in the loop at line {block.line}, {so}")  # fmt: skip
        yield _finding(project, loader, why, "none", False, (), Severity.HIGH if seeded else Severity.MEDIUM)


def _is_none(value: Value | None) -> bool:
    return value is None or (isinstance(value, Const) and value.value is None)


def _handed_over(project: Project, sampler: Thing) -> bool:
    """Whether any call is given the sampler."""
    return any(
        v is sampler for e in project.events if e.kind == "call" for v in (*e.args, *e.kwargs.values())
    )  # fmt: skip


def _own_sampler(project: Project) -> bool:
    """Whether a sampler of any kind is written or used."""
    for file in project.files:
        if "ampler" not in file.text:
            continue
        code = syntax(file)
        named = [*(k.name for k in code.of(ast.ClassDef)), *(last_name(c.func) for c in code.of(ast.Call))]
        if any("ampler" in n for n in named) or any(k.arg in _SAMPLERS for c in code.calls("DataLoader")
                                                    for k in c.keywords):  # fmt: skip
            return True
    return False


def _by_rank(code: Syntax) -> bool:
    """Whether anything about the data is chosen by rank: a slice, a seed, a range, an argument of a data set."""
    if not code.file.mentions(_SAYS_RANK):
        return False
    for node in code.of(ast.Subscript):
        if not isinstance(node.slice, (ast.Constant, ast.Name)) and _ranked(node.slice):
            return True
    for call in code.of(ast.Call):
        name = last_name(call.func)
        gives = (name in _DRAWS or _GIVES_PART.search(name)) and name not in _WRAPPERS
        if gives and any(_ranked(a) for a in (*call.args, *(k.value for k in call.keywords))):
            return True
    return any(isinstance(n.op, ast.Mod) and _ranked(n.right) for n in code.of(ast.BinOp))


def _ranked(node: ast.expr) -> bool:
    return any((isinstance(n, (ast.Name, ast.Attribute)) and _RANK.search(last_name(n).lower()))
               or (isinstance(n, ast.Call) and last_name(n.func) in ("get_rank", "get_world_size"))
               for n in below(node))  # fmt: skip


def _seeded(project: Project) -> bool:
    """Whether torch is seeded with the same number in every process."""
    look = lookup(project)
    return any(c.qualified(s.func).startswith("torch.") and look.number(c, s.args[0] if s.args else None) is not None
               for c in look.codes for s in c.calls("manual_seed"))  # fmt: skip


def _with_sampler(project: Project, loader: Thing, sampler: Thing) -> tuple[Patch, ...]:
    """The sampler in place of `shuffle=True`, where it is a name beside the loader."""
    file = next((f for f in project.files if loader.site is not None and f.path == loader.site.path), None)
    if file is None or loader.site is None or sampler.site is None or sampler.site.path != file.path:
        return ()
    code = syntax(file)
    calls = [c for c in code.calls("DataLoader") if c.lineno == loader.site.line]
    made = [c for c in code.calls("DistributedSampler") if c.lineno == sampler.site.line]
    up = code.parent(made[0]) if len(made) == 1 else None
    if len(calls) != 1 or not isinstance(up, ast.Assign) or len(up.targets) != 1:
        return ()
    name, call = up.targets[0], calls[0]
    near = code.function(call) is code.function(up) and up.lineno < call.lineno
    if not isinstance(name, (ast.Name, ast.Attribute)) or not (near or written(name).startswith("self.")):
        return ()
    change = Change(file, "draw by the sampler")
    shuffle = next((k for k in call.keywords if k.arg == "shuffle"), None)
    if shuffle is None:
        return () if argument(call, 2, "shuffle") else change.pass_argument(call, "sampler", written(name)).patches()
    if shuffle.lineno != shuffle.end_lineno:
        return ()
    text = f"sampler={written(name)}"
    return change.edit(shuffle.lineno, shuffle.col_offset, shuffle.end_col_offset or 0, text).patches()


def _finding(project: Project, loader: Thing, why: str, kind: str, certain: bool, patch: tuple[Patch, ...],
             severity: Severity | None = None) -> Finding:  # fmt: skip
    assert loader.site is not None
    return RULE.finding(
        why,
        at(loader.site, project),
        loader.site.path,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        severity=severity,
        measured={"kind": kind},
        patch=patch,
    )
