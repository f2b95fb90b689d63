"""Attention of a project, the masks against the future that it builds, and whether it trains on the next token."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written
from traindx_tools.on_code.unshifted import FLAT

_MASKS = ("mask", "src_mask", "attn_mask", "is_causal", "tgt_mask", "tgt_is_causal", "bias", "block_mask", "causal")
_LAYERS = {"TransformerEncoder": 1, "TransformerEncoderLayer": 1, "TransformerDecoder": 2, "TransformerDecoderLayer": 2,
           "MultiheadAttention": 5, "MultiHeadAttention": 9, "SelfAttention": 1, "MultiHeadDotProductAttention": 9,
           "MultiheadAttentionLayer": 9}  # fmt: skip
"""Layers of libraries, and how many positions come before a mask."""
_OF_LIBRARIES = ("torch.nn.", "flax.", "equinox.nn.")
_FUNCTIONS = {"scaled_dot_product_attention": 3, "dot_product_attention": 4}
_BUILT = re.compile(r"causal|(^|_)(tril|triu)|subsequent|look_?ahead|future|band_part|alibi|autoregressive"
                    r"|attn_bias|attention_bias|block_mask|block_diag|score_mod", re.IGNORECASE)  # fmt: skip
_OTHERS = re.compile(r"Conv2d|patch_?(size|emb)|pixel|mlm|masked_lm|mask_token|\[MASK\]|cross_?att|past_key|kv_?cache"
                     r"|use_cache|diffusion|denois|encoder_hidden|encoder_out|prefix_lm|bidirectional|permutation_lm"
                     r"|src_vocab|tgt_vocab|src_mask_pad|nn\.Transformer\(", re.IGNORECASE)  # fmt: skip
"""Tasks and models in which attention sees all positions on purpose, or one position at a time."""
_NO_TOKENS = re.compile(r"argv|shape|size|layer|width|dims?$|args|split|channels|parts|files|hidden|names|words$|coord"
                        r"|edges|bins|times?$|boundar|logits$|steps$|params", re.IGNORECASE)  # fmt: skip
_PARAMETERS = re.compile(r"param|variables|state|weights|model|theta|key|rng|^net$")
"""What stands before the data in a pure function's arguments."""
_LOSSES = re.compile(r"cross_entropy|CrossEntropyLoss|softmax_cross_entropy|nll_loss|NLLLoss")
_DEEP = 8


def predicts_next(look: Lookup) -> tuple[Syntax, ast.Subscript] | None:
    """Where a target is its input one position ahead; None where that is not seen, or attention may see it all."""
    files = [c.file for c in look.codes]
    if not any(f.mentions(_LOSSES) for f in files) or not any("Embed" in f.text or "embed" in f.text for f in files):
        return None
    found = next(((code, tail) for code in look.codes for tail in _tails(code)), None)
    return None if found is None or any(f.mentions(_OTHERS) for f in files) else found


def _tails(code: Syntax) -> Iterator[ast.Subscript]:
    """The later one of two slices of one sequence, or of labels beside logits that lose their last position."""
    heads: dict[tuple[int, str], list[tuple[str, ast.Subscript]]] = {}
    tails: list[tuple[str, ast.Subscript]] = []
    for node in code.of(ast.Subscript):
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if not isinstance(part, ast.Slice) or part.step is not None or not isinstance(node.ctx, ast.Load):
                continue
            low, high = written(part.lower), written(part.upper)
            if (high == "-1" and low in ("", "0")) or (high and low and high != "-1"):
                heads.setdefault((id(code.function(node)), written(node.value)), []).append((low or "0", node))
            start = _one_later(part.lower)
            if start is not None and not _NO_TOKENS.search(written(node.value)):
                tails.append((start, node))
    for start, tail in tails:
        function = code.function(tail)
        for (where, base), found in heads.items():
            if where != id(function):
                continue
            same = base == written(tail.value)
            scores = base.endswith(("logits", "out", "output", "outputs", "pred", "scores"))
            for low, head in found:
                if head is tail or low != start or (same and _among_others(code, head)):
                    continue
                if ((same and not _beside(code, head, tail)) or (
                        scores and function is not None and _LOSSES.search(ast.unparse(function)))):  # fmt: skip
                    yield tail


def _among_others(code: Syntax, head: ast.AST) -> bool:
    """Whether the input goes to a model, or out of a data set, together with another sequence: a translation."""
    uses: list[ast.AST] = [head]
    around = code.statement(head)
    for target in around.targets if isinstance(around, ast.Assign) else []:
        bound = [target] if isinstance(target, ast.Name) else []
        if isinstance(target, ast.Tuple) and isinstance(around, ast.Assign) and isinstance(around.value, ast.Tuple):
            bound = [t for t, v in zip(target.elts, around.value.elts, strict=False)
                     if isinstance(t, ast.Name) and any(n is head for n in below(v))]  # fmt: skip
        names = {n.id for n in bound}
        uses += [n for n in below(code.scope(head)) if isinstance(n, ast.Name) and n.id in names
                 and isinstance(n.ctx, ast.Load)]  # fmt: skip
    return any(_beside_others(code, use) for use in uses)


def _beside_others(code: Syntax, use: ast.AST) -> bool:
    node, up = use, code.parent(use)
    while isinstance(up, ast.Attribute) and up.attr in FLAT and isinstance(code.parent(up), ast.Call):
        node = code.parent(up) or up
        up = code.parent(node)
    if isinstance(up, ast.Call) and not code.qualified(up.func) and node in up.args:
        before = up.args[: next(i for i, a in enumerate(up.args) if a is node)]
        return any(not _PARAMETERS.search(written(a)) for a in before)
    if isinstance(up, ast.Tuple) and isinstance(code.parent(up), ast.Return):
        return len(up.elts) > 2
    return False


def _one_later(low: ast.expr | None) -> str | None:
    """The i of `i + 1`, 0 of 1: where the input begins, for a target that begins one later."""
    if isinstance(low, ast.Constant) and low.value == 1:
        return "0"
    if isinstance(low, ast.BinOp) and isinstance(low.op, ast.Add):
        for one, other in ((low.left, low.right), (low.right, low.left)):
            if isinstance(other, ast.Constant) and other.value == 1:
                return written(one)
    return None


def _beside(code: Syntax, head: ast.AST, tail: ast.AST) -> bool:
    """Whether the two are compared, subtracted or zipped: neighbours, not an input and its target."""
    up = code.parent(head)
    if up is not code.parent(tail):
        return False
    return isinstance(up, (ast.BinOp, ast.Compare)) or (isinstance(up, ast.Call) and last_name(up.func) == "zip")


def masks_built(look: Lookup) -> bool:
    """Whether anything against the future is built and read; a buffer or name that nobody reads does not count."""
    return any(_live(look, code) for code in look.codes)


def _live(look: Lookup, code: Syntax) -> bool:
    for node in code.of(ast.Call):
        name = last_name(node.func)
        if _BUILT.search(name) and name not in look.classes and not _dead(look, code, node):
            return True
    for keyword in code.of(ast.keyword):
        off = isinstance(keyword.value, ast.Constant) and keyword.value.value in (False, None)
        if keyword.arg and _BUILT.search(keyword.arg) and not off:
            return True
    for compare in code.of(ast.Compare):
        sides = (compare.left, *compare.comparators)
        if any(_positions(code, s) for s in sides) and not _dead(look, code, compare):
            return True
    handed = [n.func for n in code.of(ast.Call)]
    for attribute in code.of(ast.Attribute):
        known = isinstance(attribute.ctx, ast.Load) and _BUILT.search(attribute.attr)
        if known and attribute not in handed and code.qualified(attribute):
            return True  # a function of a library that is handed on: vmap(jnp.tril)
    return False


def _positions(code: Syntax, node: ast.expr) -> bool:
    """Whether positions are laid out along an axis of their own: `arange(t)[:, None]`, `pos.unsqueeze(1)`."""
    text = written(node)
    laid = "None" in text or "unsqueeze" in text or "reshape" in text or "view" in text or "broadcasted_iota" in text
    origins = [written(code.origin(n)) for n in below(node) if isinstance(n, ast.Name)]
    return laid and ("arange" in text or "iota" in text or any("arange" in o or "range(" in o for o in origins))


def _dead(look: Lookup, code: Syntax, node: ast.AST) -> bool:
    """Whether what is built ends in a buffer, an attribute or a name that nobody reads."""
    for up in code.above(node):
        if isinstance(up, ast.Call) and last_name(up.func) == "register_buffer":
            name = argument(up, 0, "name")
            return isinstance(name, ast.Constant) and not _read(look, str(name.value))
        if isinstance(up, ast.Assign) and len(up.targets) == 1:
            target = up.targets[0]
            if isinstance(target, ast.Attribute):
                return not _read(look, target.attr)
            if isinstance(target, ast.Name):
                scope = code.scope(up)
                return not any(isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
                               for n in below(scope))  # fmt: skip
            return False
        if isinstance(up, ast.stmt):
            return False
    return False


def _read(look: Lookup, name: str) -> bool:
    """Whether an attribute of this name is read anywhere, by itself or by its name."""
    return any(
        (isinstance(a.ctx, ast.Load) and a.attr == name and not code.qualified(a))
        for code in look.codes
        for a in code.of(ast.Attribute)
    ) or any(name in written(call) for code in look.codes for call in code.calls("getattr"))


def attentions(code: Syntax) -> Iterator[tuple[ast.Call, str]]:
    """Self-attention that is given no mask against the future: a function, a layer of a library, or by hand."""
    for call in code.calls(*_FUNCTIONS):
        if not code.qualified(call.func) or not code.function(call):
            continue
        if _given(call, _FUNCTIONS[last_name(call.func)]) is None and not _of_two_sources(code, *call.args[:2]):
            yield call, last_name(call.func)
    for call in code.of(ast.Call):
        made = call.func if isinstance(call.func, ast.Call) else code.origin(call.func)
        kind = last_name(made.func) if isinstance(made, ast.Call) else ""
        library = isinstance(made, ast.Call) and code.qualified(made.func).startswith(_OF_LIBRARIES)
        if library and kind in _LAYERS and _given(call, _LAYERS[kind]) is None and not _of_two(call, kind):
            yield call, kind
    for call in code.calls("softmax"):
        if _by_hand(code, call):
            yield call, "softmax"


def _given(call: ast.Call, position: int) -> ast.expr | None:
    """A mask that a call is given; `**options` count as one."""
    for keyword in call.keywords:
        if keyword.arg is None or (keyword.arg in _MASKS and not _nothing(keyword.value)):
            return keyword.value
    plain = [a for a in call.args[position:] if not _nothing(a)]
    starred = [a for a in call.args if isinstance(a, ast.Starred)]
    return next(iter([*starred, *plain]), None)


def _nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, False, 0.0)


def _of_two(call: ast.Call, kind: str) -> bool:
    """Whether attention is paid to another sequence: query and key differ."""
    return "Attention" in kind and len({written(a) for a in call.args[:2]}) > 1


def _of_two_sources(code: Syntax, *sides: ast.expr) -> bool:
    """Whether query and key come from different arguments of the function."""
    sources = [_arguments(code, s, _DEEP) for s in sides]
    return len(sources) == 2 and all(sources) and not sources[0] & sources[1]


def _arguments(code: Syntax, node: ast.expr, left: int) -> set[str]:
    """The parameters of its function, or names of unknown origin, that an expression is made from."""
    function, found = code.function(node), set()
    outside = parameters(function) if function is not None else {}
    for name in below(node):
        if not isinstance(name, ast.Name) or name.id == "self" or name.id in code.aliases:
            continue
        made = code.assigned(name)
        if made is not None and left > 0 and code.parent(made) is not None:
            found |= _arguments(code, made, left - 1)
        elif isinstance(made, ast.Subscript) and left > 0:  # one of several results
            found |= _arguments(code, made.value, left - 1)
        elif name.id in outside or code.bindings(name):
            found.add(name.id)
    return found


def _by_hand(code: Syntax, call: ast.Call) -> bool:
    """Whether it is the softmax of products of queries and keys as they are, and weights values after it."""
    whole = call.args[0] if code.qualified(call.func) and call.args else (
        call.func.value if isinstance(call.func, ast.Attribute) else None)  # fmt: skip
    return whole is not None and _scores(code, whole, _DEEP) and _weights(code, call)


def _scores(code: Syntax, node: ast.expr | None, left: int) -> bool:
    """Whether an expression is q @ k.T, up to a scale."""
    if node is None or left <= 0:
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return _scores(code, node.left, left - 1) or (
            isinstance(node.op, ast.Mult) and _scores(code, node.right, left - 1))  # fmt: skip
    if isinstance(node, ast.Name):
        return _scores(code, code.assigned(node), left - 1) and not _changed(code, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _turned(code, node.right) and not _of_two_sources(code, node.left, node.right)
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in ("matmul", "bmm"):
            sides = node.args if len(node.args) == 2 else [getattr(node.func, "value", node), *node.args]
            return bool(node.args) and _turned(code, node.args[-1]) and not _of_two_sources(code, *sides)
        if name == "einsum":
            two = len(node.args) == 3 and len({written(a) for a in node.args[1:]}) == 2
            return two and not _of_two_sources(code, *node.args[1:])
        if name in ("mul", "div", "float") and isinstance(node.func, ast.Attribute):
            return _scores(code, node.func.value, left - 1)
    return False


def _changed(code: Syntax, name: ast.Name) -> bool:
    """Whether something is written into the scores in place."""
    in_place = (c for c in code.of(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr.endswith("_")
                and written(c.func.value) == name.id and code.scope(c) is code.scope(name))  # fmt: skip
    augmented = (a for a in code.of(ast.AugAssign) if written(a.target) == name.id
                 and isinstance(a.op, (ast.Add, ast.Sub)) and code.scope(a) is code.scope(name))  # fmt: skip
    return name.id in code.item_stores or next(in_place, None) is not None or next(augmented, None) is not None


def _turned(code: Syntax, node: ast.expr) -> bool:
    made = code.origin(node)
    if isinstance(made, ast.Attribute):
        return made.attr in ("T", "mT")
    return isinstance(made, ast.Call) and last_name(made.func) in ("transpose", "swapaxes", "permute", "t")


def _weights(code: Syntax, node: ast.AST, left: int = 6) -> bool:
    """Whether what a node gives is multiplied with values: weights @ v, by names, dropout and casts."""
    up = code.parent(node)
    if left <= 0 or up is None:
        return False
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.MatMult):
        return up.left is node
    if isinstance(up, ast.Attribute):
        call = code.parent(up)
        return isinstance(call, ast.Call) and (up.attr in ("matmul", "bmm") or _weights(code, call, left - 1))
    if isinstance(up, ast.Call):
        return last_name(up.func) in ("matmul", "bmm", "einsum") or ("drop" in written(up.func).lower()
                                                                     and _weights(code, up, left - 1))  # fmt: skip
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
        name, scope = up.targets[0].id, code.scope(up)
        reads = [n for n in below(scope) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
        return any(_weights(code, n, left - 1) for n in reads if n.lineno > up.lineno)
    return False
