"""Texts that a tokenizer pads, and the pretrained models that read them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written

_TOKENIZER = re.compile(r"(^|_)(tok|tokenizer|processor)\w*$|tokeni[sz]er", re.IGNORECASE)
_ENCODES = frozenset({"batch_encode_plus", "encode_plus", "__call__"})
_ONE = re.compile(r"^(text|sentence|line|query|prompt|question|string|s|t|txt|doc)$")
_MOVES = frozenset({"to", "cuda", "cpu", "long", "squeeze", "clone", "detach", "contiguous", "copy", "half", "tensor",
                    "LongTensor", "as_tensor", "eval", "train", "float"})  # fmt: skip
_NOT_TEXT = re.compile(r"Vision|ViT|Image|Audio|Wav2Vec|Hubert|Whisper|Speech|Swin|ResNet|DETR|Detr|Dino|Beit|Video"
                       r"|Diffusion|UNet|VAE|TimeSeries|Clap|Depth|Segment|Object", re.IGNORECASE)  # fmt: skip
_DECODERS = re.compile(r"gpt|llama|opt-|bloom|mistral|qwen|gemma|phi-|falcon|pythia", re.IGNORECASE)


def moved(node: ast.expr) -> ast.expr:
    """A value without copies, devices and dtypes."""
    while isinstance(node, ast.Call) and last_name(node.func) in _MOVES:
        plain = isinstance(node.func, ast.Name) or written(node.func).startswith(("torch.", "np."))
        if not plain and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif plain and node.args:
            node = node.args[0]
        else:
            break
    return node


def copied(node: ast.expr) -> ast.expr:
    """What a comprehension copies element by element: `table` for `[list(r) for r in table]`, through zip too."""
    while isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
        loop, same = node.generators[0], _element(node.elt)
        if loop.ifs or not isinstance(same, ast.Name):
            break
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        place = next((i for i, t in enumerate(targets) if isinstance(t, ast.Name) and t.id == same.id), None)
        over: ast.expr | None = loop.iter
        if isinstance(loop.target, ast.Tuple):
            parts = over.args if isinstance(over, ast.Call) and last_name(over.func) == "zip" else []
            over = parts[place] if place is not None and place < len(parts) else None
        if place is None or over is None:
            break
        node = over
    return node


def _element(node: ast.expr) -> ast.expr:
    """An element without the copies made of it."""
    while True:
        inner = copied(moved(node))
        if isinstance(inner, ast.Call) and last_name(inner.func) in ("list", "tuple", "deepcopy") and inner.args:
            inner = inner.args[0]
        elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Slice) and not (
                inner.slice.lower or inner.slice.upper or inner.slice.step):  # fmt: skip
            inner = inner.value
        if inner is node:
            return node
        node = inner


def padded(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The tokenizer's call that a value is, where it pads several texts to one length."""
    call = moved(code.origin(moved(node)))
    return call if isinstance(call, ast.Call) and pads(code, call) else None


def pads(code: Syntax, call: ast.Call) -> bool:
    """Whether a call is a tokenizer's and pads: `padding=True`, "longest", "max_length"."""
    if last_name(call.func) == "pad" and isinstance(call.func, ast.Attribute):  # a tokenizer's pad() pads as it is
        given = argument(call, 1, "padding")
        no = isinstance(given, ast.Constant) and given.value in (False, "do_not_pad")
        return bool(_TOKENIZER.search(last_name(call.func.value))) and not no
    callee = call.func.value if last_name(call.func) in _ENCODES and isinstance(call.func, ast.Attribute) else call.func
    if not isinstance(callee, (ast.Name, ast.Attribute)) or not _TOKENIZER.search(last_name(callee)):
        return False
    given = argument(call, 99, "padding", "pad_to_max_length")
    if not isinstance(given, ast.Constant) or given.value not in (True, "longest", "max_length"):
        return False
    first = call.args[0] if call.args else None
    one = isinstance(first, ast.Constant) or (isinstance(first, ast.Name) and bool(_ONE.match(first.id)))
    return given.value == "max_length" or not one


def part_of(code: Syntax, node: ast.expr, key: str) -> ast.expr | None:
    """The encoding of `encoding["input_ids"]` and `encoding.input_ids`, through copies and names."""
    node = _element(code.origin(_element(node)))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == key:
        return node.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == key else None


def pretrained(codes: Sequence[Syntax], code: Syntax, callee: ast.expr) -> str:
    """The class of a pretrained text model that is called, "" for anything else: "AutoModel", "BertModel".

    A checkpoint of a decoder says "CausalLM" whatever the class.
    """
    made: ast.expr | None = code.assigned(callee) if isinstance(callee, (ast.Name, ast.Attribute)) else None
    for _ in range(4):
        made = moved(made) if made is not None else None
        if not isinstance(made, ast.Call):
            return ""
        if last_name(made.func) in ("from_pretrained", "from_config") and isinstance(made.func, ast.Attribute):
            name = last_name(made.func.value)
            name += "CausalLM" if made.args and _DECODERS.search(written(made.args[0])) else ""
            return "" if _NOT_TEXT.search(name) or "Tokenizer" in name or "Processor" in name else name
        found = [(c, f) for c in codes for f in c.functions(last_name(made.func))]
        returned = [r.value for r in below(found[0][1]) if isinstance(r, ast.Return)] if len(found) == 1 else []
        if len(returned) != 1 or returned[0] is None:
            return ""
        code = found[0][0]
        made = code.origin(returned[0])
    return ""
