"""Which way a metric improves, by its name and by how the value under the name is made."""

from __future__ import annotations

import ast
import re
from typing import Literal

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written

Direction = Literal["min", "max"]

_FALLS = frozenset({
    "loss", "losses", "mse", "mae", "rmse", "nll", "bce", "perplexity", "ppl", "wer", "cer", "err", "error", "errors",
    "fid", "bpc", "bpb", "mape", "smape", "rmsle", "lpips", "eer", "brier",
})  # fmt: skip
_RISES = frozenset({
    "acc", "accs", "accuracy", "accuracies", "auc", "auroc", "auprc", "f1", "fscore", "iou", "miou", "jaccard", "bleu",
    "rouge", "meteor", "reward", "rewards", "precision", "recall", "psnr", "ssim", "r2", "mcc", "pearson", "spearman",
    "kappa", "ndcg", "mrr", "acc1", "acc5", "top1", "top5",
})  # fmt: skip
_UNKNOWN = frozenset({
    "neg", "negative", "negated", "minus", "inv", "inverse", "inverted", "elbo", "likelihood", "logprob", "scale",
    "weight", "budget", "adv", "adversarial", "attack", "gap", "ratio", "count", "num", "lr", "accum", "accumulated",
    "improvement", "gain", "reduction", "drop", "decrease", "flipped", "reversed", "regret", "baseline",
})  # fmt: skip
"""Words that turn a metric around, or make something else of it."""
_KEEPS = frozenset({"item", "mean", "sum", "average", "avg", "float", "compute", "round", "numpy", "cpu", "detach",
                    "nanmean", "median", "tolist", "get", "asarray", "array"})  # fmt: skip


def by_name(name: str) -> Direction | None:
    """The direction in which a metric of this name is better; None where the name does not say or says two things."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    words = {w for w in re.split(r"[^a-z0-9]+", spaced.lower()) if w}
    words |= {w.removeprefix(p) for w in words for p in ("val", "valid", "test", "dev", "eval")}
    falls, rises = bool(words & _FALLS), bool(words & _RISES)
    if falls == rises or words & _UNKNOWN:
        return None
    return "min" if falls else "max"


def by_value(code: Syntax, node: ast.expr) -> Direction | None:
    """The direction of an expression that is a metric as it is: no sign, no difference, nothing that turns it."""
    node = _bare(code, node)
    if isinstance(node, (ast.Name, ast.Attribute)):
        found = by_name(last_name(node))
        if found is None or any(turns(code, value) for _, value in code.bindings(node)):
            return None
        return found
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return by_name(node.slice.value)
    return None


def turns(code: Syntax, value: ast.expr) -> bool:
    """Whether an expression has a sign or a difference on its way: -x, 1 - x, x * -1, 1 / x."""
    for node in below(value):
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        if negated and not isinstance(node.operand, ast.Constant):  # type: ignore[attr-defined]
            return True
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Sub):
                return True
            if isinstance(node.op, ast.Div) and isinstance(node.left, ast.Constant):
                return True
            sides = (code.number(node.left), code.number(node.right))
            if isinstance(node.op, (ast.Mult, ast.Div)) and any(s is not None and s < 0 for s in sides):
                return True
        if isinstance(node, ast.Call) and last_name(node.func) in ("neg", "negative"):
            return True
    return isinstance(value, ast.Name) and by_name(value.id) is None and "neg" in value.id


def _bare(code: Syntax, node: ast.expr) -> ast.expr:
    """What is left of x.item(), np.mean(x), x / n, float(x), metrics.get("x")."""
    for _ in range(6):
        if isinstance(node, ast.Call) and last_name(node.func) in _KEEPS:
            if last_name(node.func) == "get" and node.args and isinstance(node.args[0], ast.Constant):
                return ast.copy_location(ast.Subscript(node.func, node.args[0], ast.Load()), node)
            plain = isinstance(node.func, ast.Name) or bool(code.qualified(node.func))
            if plain and node.args:
                node = node.args[0]
            elif isinstance(node.func, ast.Attribute) and not plain:
                node = node.func.value
            else:
                return node
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not isinstance(node.left, ast.Constant):
            node = node.left
        else:
            return node
    return node


def same(one: ast.expr, other: ast.expr, code: Syntax) -> bool:
    """Whether two expressions are one metric, up to .item() and the like."""
    return written(_bare(code, one)) == written(_bare(code, other))
