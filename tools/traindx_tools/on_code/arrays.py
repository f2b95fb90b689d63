"""How arrays are made, and what functions and methods do to what is known of them: torch, jax.numpy and numpy alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import bounds, quantities, time_scales
from traindx_tools.on_code.lengths import amount
from traindx_tools.on_code.mask_truth import TRIANGLE
from traindx_tools.on_code.tensors import copied, dtype_of, lineage, merged
from traindx_tools.on_code.values import (
    NONE,
    Bag,
    Const,
    Ref,
    Site,
    Tensor,
    Thing,
    Value,
    number,
    truth,
    whole,
)

CREATORS = words("names.toml", "creators")
_LIKE = frozenset({"randn_like", "rand_like", "zeros_like", "ones_like", "empty_like", "full_like"})


def created(name: str, args: tuple[Value, ...], kwargs: dict[str, Value], site: Site) -> Tensor | None:
    """What a creating function returns: shape and bounds; None if `name` creates nothing."""
    if name in _LIKE:
        filled = time_scales.of(args[1]) if name == "full_like" and len(args) > 1 else frozenset()
        return Tensor(grad=False, site=site, tags=filled)
    if name in ("arange", "linspace", "logspace"):
        end = number(args[-1]) if name == "arange" and len(args) <= 2 and args else None
        return Tensor(grad=False, site=site, dtype="int" if name == "arange" else None,
                      high=None if end is None else end - 1, tags=frozenset({"ramp"}))
    if name in ("tensor", "array") or (name in ("as_tensor", "asarray") and args and isinstance(args[0], Bag)):
        return _from_data(args[0] if args else None, kwargs, site)
    if name == "choice":
        return _of_these(args[0] if args else None, site)
    if name in ("permutation", "randperm") and args and not isinstance(args[0], (Tensor, Bag)):
        known = amount(args[0]) is not None
        return Tensor(grad=False, dtype="int", site=site, tags=frozenset({"integer"})) if known else None
    if name not in CREATORS:
        return None
    dtype = dtype_of(kwargs.get("dtype")) or next((d for d in map(dtype_of, args) if d), None)
    if name in ("randint", "integers"):
        low, high = _integer_bounds(name, [a for a in args if not isinstance(a, (Bag, Thing))], kwargs)
        return Tensor(grad=False, dtype="int", site=site, low=low, high=high,
            tags=frozenset({"integer", time_scales.INDEX, time_scales.DRAWN}))
    fill = {"zeros": (0.0, 0.0), "ones": (1.0, 1.0)}.get(name, (None, None))
    return Tensor(grad=truth(kwargs.get("requires_grad")) is True, dtype=dtype, site=site, low=fill[0], high=fill[1],
        tags=frozenset({"floating"} if _is_floating(dtype, args, kwargs) else ()) | frozenset({"uniform"}
        if name == "full" else ()) | (frozenset({time_scales.SHARE, time_scales.DRAWN}) if name == "rand"
        else frozenset()) | (time_scales.of(args[1]) if name == "full" and len(args) > 1 else frozenset()))


def _of_these(of: Value | None, site: Site) -> Tensor | None:
    """Whole numbers drawn from a list: `rng.choice([1, 2, 3], n)`."""
    found = [number(v) for v in of.items] if isinstance(of, Bag) and not of.open else []
    known = [v for v in found if v is not None and whole(v) == v]
    if not known or len(known) < len(found):
        return None
    return Tensor(grad=False, dtype="int", site=site, low=min(known), high=max(known), tags=frozenset({"integer"}))


def _is_floating(dtype: str | None, args: tuple[Value, ...], kwargs: dict[str, Value]) -> bool:
    """Whether elements are floats: by a dtype that is known, or where none is given at all."""
    if dtype is not None:
        return dtype not in ("int", "bool")
    return "dtype" not in kwargs and not any(isinstance(a, Ref) for a in args)


def _integer_bounds(name: str, args: list[Value], kwargs: dict[str, Value]) -> bounds.Bounds:
    """Bounds of randint: (high) or (low, high), the upper one exclusive."""
    given = [kwargs[k] for k in ("low", "minval") if k in kwargs] + args
    high = number(kwargs.get("high") or kwargs.get("maxval")
        or (given[1] if len(given) > 1 else given[0] if given else None))
    low = number(given[0]) if given and (len(given) > 1 or "high" in kwargs) else 0.0
    return low, None if high is None else high - 1


def _from_data(data: Value | None, kwargs: dict[str, Value], site: Site) -> Tensor:
    dtype, scale = dtype_of(kwargs.get("dtype")), time_scales.of(data)
    leaf = truth(kwargs.get("requires_grad")) is True
    if isinstance(data, Tensor):
        return replace(data, grad=leaf, dtype=dtype or data.dtype, site=site, tags=data.tags - SIGNS,
                       copies=data.copies | _copies([data], site))
    if isinstance(data, Const):
        return Tensor(grad=leaf, dtype=dtype, site=site)
    if isinstance(data, Bag):
        inner = data.items[0] if data.items else None
        integer = isinstance(inner, Const) and isinstance(inner.value, int)
        inside = [i for i in data.items if isinstance(i, Tensor) and i.grad]
        return Tensor(grad=leaf, dtype=dtype or ("int" if integer else None), site=site,
                      models=frozenset(m for i in inside for m in i.models), tags=scale, copies=_copies(inside, site))
    return Tensor(grad=leaf, dtype=dtype, site=site, tags=scale)


def _copies(made_of: list[Tensor], site: Site) -> frozenset[tuple[Site, Site, frozenset[int]]]:
    """Losses, and other means and sums of what a model gave, that are copied: their graph stays behind."""
    return frozenset((site, t.site, t.models) for t in made_of
                     if t.models and t.site is not None and t.tags & {"loss", "reduced"})


@dataclass(frozen=True)
class Operands:
    """A call as the tables below see it: `x` is the first array, `args` and `kwargs` the rest."""

    name: str
    x: Tensor
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    site: Site
    grad: bool | None
    """Whether autograd records."""

    def get(self, position: int, *names: str) -> Value | None:
        """An argument after the first array, by position or name."""
        for name in names:
            if name in self.kwargs:
                return self.kwargs[name]
        return self.args[position] if 0 <= position < len(self.args) else None


Transfer = Callable[[Operands], Tensor]
AXES = frozenset({"batch_first", "time_first", "sequence"})
"""Tags that tell what stands on axis 0 of an array that came out of a layer, and that it has steps besides samples."""
COLUMNS = frozenset({"layer", "column"})
"""Tags that tell that the last axis is as a layer, or a product with a matrix, left it."""
SIGNS = frozenset({"loss", "negated", "log_prob"})
"""Tags that tell whether a loss is minimised: a loss, a loss with a minus before it, a log-probability."""


def is_parameter(value: Value | None) -> bool:
    """Whether a value is a parameter of torch that stands alone."""
    return isinstance(value, Thing) and value.short == "Parameter"


def _same(o: Operands) -> Tensor:
    return o.x


def _detached(o: Operands) -> Tensor:
    return replace(o.x, grad=False, parents=frozenset())


def _bounded(low: float | None, high: float | None) -> Transfer:
    return lambda o: replace(o.x.plain(tags=o.x.tags & AXES), low=low, high=high, site=o.site)


def _kind(kind: str, low: float | None, high: float | None) -> Transfer:
    def transfer(o: Operands) -> Tensor:
        t = o.x.plain(tags=o.x.tags & {"batch"})
        return replace(t, kind=kind, low=low, high=high, site=o.site, kind_site=o.site)

    return transfer


def _activation(kind: str, low: float | None, high: float | None) -> Transfer:
    """Bounded, with the axes as they were, and remembered by its name."""
    return lambda o: replace(_bounded(low, high)(o), kind=kind, kind_site=o.site)


def _elementwise(o: Operands) -> Tensor:
    return o.x.plain(site=o.site, tags=o.x.tags & AXES)


def _dtype(dtype: str) -> Transfer:
    def transfer(o: Operands) -> Tensor:
        t = replace(o.x, dtype=dtype)
        return bounds.bounded(t, bounds.clamp(bounds.of(t), t.low, t.high, dtype))

    return transfer


def _integer(o: Operands) -> Tensor:
    return replace(o.x, grad=False, kind="", dtype="int", tags=o.x.tags | {"integer"}, parents=frozenset())


def _reduction(keeps_bounds: bool) -> Transfer:
    def transfer(o: Operands) -> Tensor:
        dim = o.get(0, "dim", "axis")
        low = o.x.low if keeps_bounds or (o.x.low is not None and o.x.low == 0) else None
        high = o.x.high if keeps_bounds else None
        kept = o.x.tags & {"floating", "pairs", *SIGNS}
        tag = {"reduced" if dim is None else "one_row"}
        if o.name in ("sum", "nansum") and "integer" in o.x.tags and o.x.low == 0 and o.x.high == 1:
            tag.add("count")
        if dim == Const(0) and "batch_first" in o.x.tags:
            tag.add("batch_reduced")
        return replace(o.x.plain(tags=frozenset(tag) | kept), low=low, high=high, site=o.site)

    return transfer


def _spread(o: Operands) -> Tensor:
    return replace(_reduction(False)(o), low=0.0, high=None, tags=frozenset({"spread"}))


def _index_reduction(o: Operands) -> Tensor:
    return Tensor(grad=False, dtype="int", site=o.site, models=o.x.models, tags=frozenset({"integer"}))


def _places(o: Operands) -> Tensor:
    """Places, ranks and counts of elements: whole numbers that no gradient reaches."""
    return Tensor(grad=False, low=0.0, site=o.site, models=o.x.models, tags=frozenset({"integer"}))


def _chosen(o: Operands) -> Tensor:
    """`where(condition)` alone gives places, `where(condition, a, b)` elements."""
    alone = not o.args and not {"x", "y", "input", "other"} & o.kwargs.keys()
    return _places(o) if alone else _elementwise(o)


def _unique(o: Operands) -> Tensor:
    """The elements (torch has no derivative of it), their places, their counts."""
    return Tensor(grad=False, low=None if o.x.low is None else min(o.x.low, 0.0), site=o.site, models=o.x.models)


def _logsum(o: Operands) -> Tensor:
    return replace(_reduction(False)(o), low=None, high=None)


def _moved(o: Operands) -> Tensor:
    return replace(o.x, tags=o.x.tags - {*COLUMNS, *AXES})


def _transposed(o: Operands) -> Tensor:
    return replace(o.x, tags=o.x.tags - {"batch", *COLUMNS, *AXES} | {"moved"})


def _unshaped(o: Operands) -> Tensor:
    return replace(o.x, tags=o.x.tags - {"batch", *COLUMNS, *AXES})


def _clamp(o: Operands) -> Tensor:
    low = number(o.get(0, "min", "a_min", "min_val"))
    high = number(o.get(1, "max", "a_max", "max_val"))
    if o.name == "clamp_min":
        high = None
    if o.name == "clamp_max":
        low, high = None, low
    kept = bounds.of(o.x)
    if {"*", "**"} & o.kwargs.keys():
        return replace(o.x, low=None, high=None, site=o.site)  # `clamp(*limits)`
    if o.name != "clamp_max" and low is None and o.get(0, "min", "a_min", "min_val") not in (None, NONE):
        kept = None, kept[1]  # a limit that is not known: `clamp_min(torch.finfo(x.dtype).tiny)`
    return bounds.bounded(replace(o.x, site=o.site), bounds.clamp(kept, low, high, o.x.dtype))


def _power(o: Operands) -> Tensor:
    exponent = {"square": 2.0, "sqrt": 0.5}.get(o.name) or number(o.get(0, "exponent", "x2"))
    found = bounds.power(bounds.of(o.x), exponent, o.x.dtype)
    if o.x.low == 0 and is_parameter(o.get(0, "exponent", "x2")):
        found = 0.0, None  # a learned exponent: 0 stays 0
    return bounds.bounded(o.x.plain(tags=o.x.tags & {"one_row", "reduced", "spread", "pairs"}), found)


def _norm(o: Operands) -> Tensor:
    return replace(o.x.plain(), low=0.0, site=o.site)


def _minmax(o: Operands) -> Tensor:
    other = o.get(0, "other", "y")
    value = number(other)
    if value is not None and o.name in ("maximum", "fmax") and not isinstance(other, Bag):
        return bounds.bounded(o.x, bounds.clamp(bounds.of(o.x), value, None, o.x.dtype))
    if isinstance(other, Tensor):
        return merged([o.x, other], o.site)
    if o.name in ("maximum", "fmax"):
        return replace(o.x, low=None, site=o.site)  # a lower limit that is not known
    return _reduction(True)(o)


def _filled(o: Operands) -> Tensor:
    """The least elements may be what is filled (`p.masked_fill(p == 0, eps)`): their bound is not known any more."""
    filled, left = number(o.get(1, "value")), replace(o.x, site=o.site)
    low, high = left.low, left.high
    return replace(left, low=low if filled == low else None, high=high if filled is not None and (
        high is None or filled <= high) else None)


def _triangle(o: Operands) -> Tensor:
    low, high = (None if b is None else pick(b, 0.0) for b, pick in ((o.x.low, min), (o.x.high, max)))
    return replace(o.x, low=low, high=high, site=o.site).tagged(TRIANGLE)


def _log(o: Operands) -> Tensor:
    kind = "log_softmax" if o.x.kind == "softmax" else ""
    return replace(o.x.plain(), kind=kind, kind_site=o.site if kind else None, site=o.site)


def _to(o: Operands) -> Tensor:
    for arg in (*o.args, *o.kwargs.values()):
        dtype = dtype_of(arg)
        if dtype in ("int", "bool"):
            return _integer(o)
        if dtype is not None:
            return copied(_dtype(dtype)(o)) if o.name == "astype" else _dtype(dtype)(o)
    return copied(o.x) if o.name == "astype" else o.x


def _repeat(o: Operands) -> Tensor:
    return replace(o.x, tags=(o.x.tags - COLUMNS) | {"repeated"})


def _product(o: Operands) -> Tensor:
    """Rows of length 1 times rows of length 1 are cosines."""
    other = o.args[0] if o.args else None
    tensors = [o.x, other] if isinstance(other, Tensor) else [o.x]
    cosines = isinstance(other, Tensor) and "unit" in o.x.tags & other.tags
    return bounds.bounded(merged(tensors, o.site), (-1.0, 1.0) if cosines else (None, None))


TRANSFERS: dict[str, Transfer] = {**dict.fromkeys(words("followed.toml", "same_array"), _same),
    **dict.fromkeys(("clone", "copy", "copy_"), lambda o: copied(o.x)),
    **dict.fromkeys(("detach", "stop_gradient", "detach_"), _detached),
    **dict.fromkeys(("view", "reshape", "unsqueeze", "expand_dims", "flatten", "ravel"), _moved),
    **dict.fromkeys(("transpose", "permute", "swapaxes", "movedim", "t", "moveaxis"), _transposed),
    **dict.fromkeys(words("followed.toml", "unshaped"), _unshaped),
    **dict.fromkeys(("repeat", "repeat_interleave", "tile"), _repeat), "squeeze": _same,
    **dict.fromkeys(("to", "type", "astype", "convert_element_type"), _to), "float": _dtype("float32"),
    "double": _dtype("float64"), "half": _dtype("float16"), "bfloat16": _dtype("bfloat16"),
    **dict.fromkeys(("long", "int", "bool", "short", "byte"), _integer),
    **dict.fromkeys(("softmax", "softmin", "gumbel_softmax"), _kind("softmax", 0.0, 1.0)),
    "log_softmax": _kind("log_softmax", None, 0.0),
    **dict.fromkeys(("sigmoid", "hard_sigmoid", "hardsigmoid", "expit"), _kind("sigmoid", 0.0, 1.0)),
    **dict.fromkeys(("logsigmoid", "log_sigmoid"), _kind("log_sigmoid", None, 0.0)),
    **dict.fromkeys(("relu", "relu6", "relu_"), _activation("relu", 0.0, None)), "hardtanh": _bounded(0.0, None),
    "softplus": _activation("softplus", 1e-12, None),
    "exp": lambda o: replace(_elementwise(o), kind="exp", kind_site=o.site),
    **dict.fromkeys(("tanh", "tanh_"), _activation("tanh", -1.0, 1.0)),
    **dict.fromkeys(("cos", "sin", "erf"), _bounded(-1.0, 1.0)),
    **dict.fromkeys(("abs", "absolute"), _bounded(0.0, None)),
    **dict.fromkeys(("pow", "square", "power", "sqrt", "float_power"), _power),
    **dict.fromkeys(("clamp", "clip", "clamp_min", "clamp_max", "clamp_", "clip_"), _clamp),
    **dict.fromkeys(("log", "log2", "log10"), _log),
    **dict.fromkeys(("mean", "nanmean", "median", "quantile"), _reduction(True)),
    **dict.fromkeys(("sum", "nansum", "prod", "cumsum", "cumprod"), _reduction(False)),
    **dict.fromkeys(("var", "std", "nanvar", "nanstd"), _spread), **dict.fromkeys(("logsumexp",), _logsum),
    **dict.fromkeys(("argmax", "argmin", "argsort"), _index_reduction),
    "multinomial": lambda o: replace(_integer(o), low=0.0, high=None, site=o.site),
    **dict.fromkeys(("max", "min", "amax", "amin", "maximum", "fmax"), _minmax),
    **dict.fromkeys(("norm", "cdist", "pairwise_distance"), _norm),
    **dict.fromkeys(("one_hot", "bernoulli", "heaviside"), _bounded(0.0, 1.0)),
    **dict.fromkeys(("bincount", "histc", "nonzero", "argwhere", "flatnonzero", "searchsorted", "bucketize"), _places),
    **dict.fromkeys(("unique", "unique_consecutive"), _unique), "normalize": lambda o: _elementwise(o).tagged("unit"),
    **dict.fromkeys(("matmul", "mm"), _product), "cosine_similarity": _bounded(-1.0, 1.0),
    **dict.fromkeys(("tril", "triu"), _triangle), "where": _chosen, "masked_fill": _filled,
    **dict.fromkeys(words("followed.toml", "elementwise"), _elementwise)}
"""By last name of a function or method. `x.exp()` keeps shape and graph and forgets the rest."""

def transferred(name: str, x: Tensor, args: tuple[Value, ...], kwargs: dict[str, Value], site: Site,
        grad: bool | None) -> Tensor:
    """The result of an array function or method by its last name, under the current autograd mode."""
    o = Operands(name, x, args, kwargs, site, grad)
    if name in TRANSFERS:
        result = TRANSFERS[name](o)
    else:
        others = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        result = merged([x, *others], site)
    signed, kept = quantities.through(name, x, args, kwargs), quantities.of(result)
    if signed or kept:
        result = replace(result, tags=result.tags - kept | signed)
    if grad is False:
        return replace(result, grad=False, parents=frozenset())
    if result.grad and result.site == site and x.site is not None and x.site != site:
        result = replace(result, parents=result.parents | lineage(x))
    return result
