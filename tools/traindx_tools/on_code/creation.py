"""What functions that make arrays return: zeros, randn, arange, tensor, randint ..."""

from __future__ import annotations

from dataclasses import replace

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import bounds, time_scales
from traindx_tools.on_code.arrays import SIGNS
from traindx_tools.on_code.lengths import amount
from traindx_tools.on_code.tensors import dtype_of
from traindx_tools.on_code.values import Bag, Const, Ref, Site, Tensor, Thing, Value, number, truth, whole

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
        return _chosen(args[0] if args else None, site)
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


def _chosen(of: Value | None, site: Site) -> Tensor | None:
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
