"""Arguments as a person types them: `f32[8,16], i32[8], key, {'w': f32[4,4]}, 0.1` become types and values.

Python literals (numbers, tuples, lists, dicts, strings) stay as they are; `f32[8,16]` is a type of that dtype and
shape, `key` a random key. Nothing is evaluated: the text is parsed as a literal with types in it.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from traindx_tools.errors import BadUsage

DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
    "c64": "complex64", "c128": "complex128",
}
_SINGLE = re.compile(r"(?<=[a-z0-9])\[\s*\]")
"""`f32[]`, as a jaxpr writes a single number."""
EXAMPLE = "f32[8,16], i32[8], {'w': f32[16,4]}, key, 0.1"


def arguments(text: str) -> tuple[Any, ...]:
    """The arguments that a text describes. Raises BadUsage with what was expected where it cannot be read."""
    if not text.strip():
        return ()
    try:
        parsed = ast.parse(f"({_SINGLE.sub(r'[()]', text)},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadUsage(f"cannot read the arguments {text[:80]!r}: write them such as {EXAMPLE}") from error
    return tuple(_value(item, text) for item in parsed.elts)  # type: ignore[attr-defined]  # a tuple by construction


def _value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return _array(node.value.id, node.slice, text)
    if isinstance(node, ast.Name):
        return _named(node.id, text)
    if isinstance(node, ast.Dict):
        return {ast.literal_eval(k): _value(v, text) for k, v in zip(node.keys, node.values, strict=True)
                if k is not None}
    if isinstance(node, (ast.Tuple, ast.List)):
        kind = tuple if isinstance(node, ast.Tuple) else list
        return kind(_value(item, text) for item in node.elts)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise BadUsage(f"cannot read {ast.unparse(node)!r} in the arguments: write them such as {EXAMPLE}") from error


def _array(dtype: str, shape: ast.expr, text: str) -> Any:
    import jax
    import jax.numpy as jnp

    if dtype not in DTYPES:
        raise BadUsage(f"{dtype!r} is no dtype: known are {', '.join(DTYPES)}")
    sizes = shape.elts if isinstance(shape, ast.Tuple) else [shape]
    numbers = [n.value for n in sizes if isinstance(n, ast.Constant) and type(n.value) is int and n.value >= 0]
    if len(numbers) != len(sizes):
        raise BadUsage(f"cannot read the shape of {dtype} in {text[:80]!r}: write such as {dtype}[8,16], {dtype}[()] "
                       "for a single number")
    made: Any = jax.ShapeDtypeStruct
    return made(tuple(numbers), jnp.dtype(DTYPES[dtype]))


def _named(name: str, text: str) -> Any:
    import jax

    if name == "key":
        return jax.random.key(0)
    if name == "raw_key":
        return jax.random.PRNGKey(0)
    if name in DTYPES:
        return _array(name, ast.Tuple(elts=[]), text)
    raise BadUsage(f"{name!r} in the arguments is neither a dtype nor `key` or `raw_key`: write them such as {EXAMPLE}")
