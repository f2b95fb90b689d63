"""The lines of a training script that a diagnosis is usually about: where the learning rate, the optimizer, the
scheduler, the data loader, the loss are written.

An anchor is no finding: it only says where to look and what stands there, so that a cause seen in a log can quote the
line that must change. Found on the syntax tree by what is called, never by running anything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

KINDS = ("learning_rate", "lr_compound", "lr_write", "optimizer", "scheduler", "scheduler_step", "dataloader", "loss",
         "backward", "precision", "resume", "clip", "model_size", "epochs", "weight_decay", "seed",
         "collective", "warmup", "warmup_setting", "count_division")  # fmt: skip

_OPTIMIZERS = re.compile(r"(SGD|Adam\w*|AdamW|RMSprop|Adagrad|Adadelta|NAdam|RAdam|LBFGS|Lion|Adafactor|Lamb|LARS|Muon|"
                         r"adam\w*|sgd|rmsprop|adagrad|lion|lamb|adafactor|noisy_sgd|radam)")  # fmt: skip
_SCHEDULER = re.compile(r"\w*LR|\w*(Scheduler|WarmRestarts)|get_\w*schedule\w*|\w+_schedule|join_schedules")
_LR_NAME = re.compile(r"(base_|peak_|max_|init_|initial_)?(lr|learning_rate)(_max|_init|0)?", re.IGNORECASE)
_LOSS_CALL = re.compile(
    r"cross_entropy\w*|mse_loss|l1_loss|nll_loss|smooth_l1_loss|huber_loss|kl_div|"
    r"binary_cross_entropy\w*|softmax_cross_entropy\w*|sigmoid_binary_cross_entropy|l2_loss|"
    r"\w*criterion|loss_fn|\w+_loss|compute_loss"
)
_SIZE = re.compile(
    r"(hidden|dim|width|n_?embd?|d_?model|hidden_(size|dim)|embed_?dim|layers|n_?layers?|depth|n_train|"
    r"num_train|train_size)",
    re.IGNORECASE,
)
_EPOCHS = re.compile(r"(num_?|n_?|max_?)?(epochs?|steps|iters|train_steps|total_steps)", re.IGNORECASE)
_COLLECTIVES = frozenset({"all_reduce", "all_gather", "broadcast", "barrier", "reduce", "gather", "all_to_all",
                          "reduce_scatter", "all_gather_object", "monitored_barrier"})  # fmt: skip


@dataclass(frozen=True)
class Anchor:
    """A place in the code: its kind (see `KINDS`), file, 1-based line and the line's text."""

    kind: str
    file: str
    line: int
    quote: str


def _called(node: ast.Call) -> str:
    target = node.func
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _receiver(node: ast.Call) -> str:
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""


def _call_kinds(node: ast.Call) -> Iterator[str]:
    name, owner = _called(node), _receiver(node)
    if _OPTIMIZERS.fullmatch(name) and node.args:
        yield "optimizer"
    if _SCHEDULER.fullmatch(name) and (node.args or node.keywords):
        yield "scheduler"
    if name in ("DataLoader", "StatefulDataLoader", "DataPipeline") or name.endswith("DataLoader"):
        yield "dataloader"
    if name == "step" and re.search(r"sched", owner, re.IGNORECASE):
        yield "scheduler_step"
    if name == "backward":
        yield "backward"
    if name in ("half", "bfloat16") and not node.args:
        yield "precision"
    if name in ("to", "astype", "cast") and re.search(r"float16|bfloat16|\bhalf\b", ast.unparse(node)):
        yield "precision"
    if name in ("autocast", "GradScaler"):
        yield "precision"
    if name == "load_state_dict" or (name in ("restore", "load_checkpoint", "load_state") and owner):
        yield "resume"
    if name.startswith("clip_grad") or name == "clip_by_global_norm":
        yield "clip"
    if name in ("manual_seed", "seed", "PRNGKey", "key", "set_seed", "seed_everything"):
        yield "seed"
    if name in _COLLECTIVES and re.search(r"dist|comm|accelerator|fabric", owner):
        yield "collective"
    if _LOSS_CALL.fullmatch(name) and node.args:
        yield "loss"


def _named_value(name: str, value: ast.AST | None) -> Iterator[str]:
    number = value.value if isinstance(value, ast.Constant) else None
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        return
    for kind, pattern in (("learning_rate", _LR_NAME), ("epochs", _EPOCHS), ("model_size", _SIZE)):
        if pattern.fullmatch(name):
            yield kind
    if name.lower() in ("weight_decay", "wd"):
        yield "weight_decay"


def _assigned(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _assign_kinds(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Iterator[str]:
    for target, value in _assigned(node):
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == "lr":
            yield "lr_write"
            if value is not None and re.search(r"""\[['"]lr['"]\]""", ast.unparse(value)):
                yield "lr_compound"
        name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
        yield from _named_value(name, value)


def _argument(node: ast.Call) -> Iterator[str]:
    """`parser.add_argument("--lr", default=3e-4)` and keywords such as `lr=20.0`."""
    if _called(node) == "add_argument" and node.args and isinstance(node.args[0], ast.Constant):
        name = str(node.args[0].value).lstrip("-").replace("-", "_")
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        yield from _named_value(name, default)
        return
    for keyword in node.keywords:
        if keyword.arg:
            yield from _named_value(keyword.arg, keyword.value)


def _entries(node: ast.Dict) -> Iterator[str]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield from _named_value(key.value, value)


_WARM_UP = re.compile(r"(?:^|_)warm_?up", re.IGNORECASE)
_COUNT = re.compile(r"\.(?:sum|count_nonzero|numel)\(|\b(?:count_nonzero|sum|len)\(|(?:^|_)(?:n|num|count)_?valid")
_GUARDED = re.compile(r"clamp|clip|max|\+|eps|where|\bor\b")


def _warm_up(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    """The length of a warm-up: computed, or set as a number."""
    for target, value in _assigned(node):
        name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
        if _WARM_UP.search(name) and value is not None:
            yield "warmup_setting" if isinstance(value, ast.Constant) else "warmup"


def _count_division(node: ast.BinOp) -> bool:
    """A sum divided by a count that nothing keeps from being 0."""
    if not isinstance(node.op, ast.Div) or isinstance(node.right, ast.Constant):
        return False
    by, what = ast.unparse(node.right), ast.unparse(node.left)
    return _COUNT.search(by) is not None and _GUARDED.search(by) is None and "sum" in what


def _kinds(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        yield from _call_kinds(node)
        yield from _argument(node)
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        yield from _assign_kinds(node)
        if not isinstance(node, ast.AugAssign):
            yield from _warm_up(node)
    elif isinstance(node, ast.BinOp) and _count_division(node):
        yield "count_division"
    elif isinstance(node, ast.Dict):
        yield from _entries(node)


def anchors_in(file: str, tree: ast.AST, lines: list[str]) -> Iterator[Anchor]:
    """Every anchor of one parsed file, in the order of the lines."""
    found = {(kind, node.lineno) for node in ast.walk(tree) for kind in _kinds(node) if hasattr(node, "lineno")}
    for kind, line in sorted(found, key=lambda f: f[1]):
        yield Anchor(kind, file, line, lines[line - 1].strip()[:200] if line <= len(lines) else "")


def choose(anchors: Iterable[Anchor], kinds: Iterable[str]) -> Anchor | None:
    """The anchor of the first kind that is present; of several the first that is written."""
    known = list(anchors)
    for kind in kinds:
        for anchor in known:
            if anchor.kind == kind:
                return anchor
    return None
