"""What calls do to axes, of torch, numpy, jax.numpy, pandas and einops alike, by last name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from traindx_tools.knowledge.tables import table, words
from traindx_tools.on_code import axes as ax
from traindx_tools.on_code.axes import INSERTED, SCALAR
from traindx_tools.on_code.descriptions import Axes, Axis, Rest, Site, Whole
from traindx_tools.on_code.values import NONE, Bag, Const, Symbol, Tensor, Value, integer, truth

_OUTPUTS: Mapping[str, int] = table("axes.toml")["outputs"]
_FRAMES, _BESIDE, _DRAWN = (words("axes.toml", k) for k in ("frames", "beside", "drawn"))


@dataclass(frozen=True)
class Given:
    """A call: `x` are the axes of the first array, `args` what stands behind it."""

    name: str
    x: Axes
    args: Sequence[Value]
    kwargs: Mapping[str, Value]
    site: Site

    def get(self, position: int, *names: str) -> Value | None:
        """An argument behind the first array, by position or name."""
        found = next((self.kwargs[n] for n in names if n in self.kwargs), None)
        return found if found is not None else self.args[position] if 0 <= position < len(self.args) else None

    def axis(self, position: int = 0) -> Value | None:
        """The axis, or axes, that the call names."""
        return self.get(position, "dim", "axis", "axes", "dims")


Rule = Callable[[Given], Axes | None]


def called(name: str, given: Sequence[Value], kwargs: Mapping[str, Value], site: Site) -> Axes | None:
    """The axes of what a function or method of this name gives; its first array stands in front of its arguments.

    None too where arguments came unpacked that nobody counted.
    """
    if "*" in kwargs:
        return None
    if name in _FRAMES:
        return Axes((Axis(f"rows@{site}", "batch"), Axis("", "feature")), frame=True)
    if name in ("bincount", "value_counts", "compute_class_weight"):
        return Axes((Axis(f"kinds@{site}", "classes"),))
    if name == "unique" and set(kwargs) == {"return_counts"}:
        return Axes((Axis(2), Axis(f"kinds@{site}", "classes")))
    if name in ("loadtxt", "genfromtxt"):
        return Axes((Axis(f"rows@{site}", "batch"), Axis("", "feature")))
    if name in _DRAWN:
        found = _sizes(name, given, kwargs)
        return Axes(tuple(found)) if found is not None else None
    if name in ("arange", "linspace", "randperm", "permutation") and given:
        drawn = ax.of(given[-1]) if name == "permutation" else None
        if drawn is not None and drawn.dims:
            return drawn
        end = given[-1 if name in ("permutation", "linspace") else 0]
        return Axes((ax.length(end) if len(given) < 3 or name == "linspace" else Axis(),))
    if name in ("cat", "concat", "concatenate", "stack", "vstack", "hstack"):
        return _joined(name, given, kwargs, site)
    first = given[0] if given else kwargs.get("input") or kwargs.get("x") or kwargs.get("a")
    x = ax.of(first)
    if name == "einsum":
        return _einsum(given)
    if x is None:
        return None
    rule = RULES.get(name)
    if rule is not None:
        return rule(Given(name, x, given[1:], kwargs, site))
    return Axes((Rest(f"{name}@{site}{hash(x.dims)}"),)) if x.dims else None


def _sizes(name: str, given: Sequence[Value], kwargs: Mapping[str, Value]) -> list[Axis] | None:
    asked = kwargs.get("size") or kwargs.get("shape") or next((a for a in given if isinstance(a, Bag)), None)
    if asked is None and name in ("normal", "uniform", "randint", "integers") and len(given) == 3:
        asked = given[2]
    if asked is not None:
        return ax.sizes([asked])
    begins = 1 if name.startswith("new_") else 0
    plain = name.startswith("new_") or name in ("rand", "randn", "zeros", "ones", "empty")
    return ax.sizes(given[begins:]) if plain and len(given) > begins and not isinstance(given[begins], Tensor) else None


def _kept(o: Given) -> Axes | None:
    others = [v for v in (*o.args, *(o.kwargs.get(k) for k in ("other", "y", "b"))) if isinstance(v, (Tensor, Symbol))]
    beside = o.name in _BESIDE and not {"dtype"} & set(o.kwargs)
    found: Axes | None = o.x
    for other in others if beside else ():
        found = ax.broadcast(found, ax.of(other))
    return found if o.name not in ("to_numpy", "tensor", "array") or found is None else replace(found, frame=False)


def _reduced(o: Given) -> Axes | None:
    asked, position = o.axis(1 if o.name in ("norm", "quantile") else 0), 1 if o.name != "norm" else 2
    if (o.name in ("max", "min") and isinstance(asked, (Tensor, Symbol))) and "dim" not in o.kwargs:
        return ax.broadcast(o.x, ax.of(asked)) if isinstance(asked, Tensor) else None
    keep = truth(o.get(position, "keepdim", "keepdims") if o.name not in ("std", "var") else
                 o.kwargs.get("keepdim") or o.kwargs.get("keepdims"))
    if asked is None or asked == NONE:
        return Axes(o.x.dims[1:]) if o.x.frame else SCALAR if not keep else None
    axes = [integer(a) for a in asked.items] if isinstance(asked, Bag) else [integer(asked)]
    base = o.x
    for axis in axes:
        found = ax.place(base, axis)
        if found is None:
            return None
        base = Axes(tuple(found[0]))
    known = {a % len(base.dims) if a < 0 else a for a in axes if a is not None}
    return Axes(tuple(INSERTED if i in known else d for i, d in enumerate(base.dims) if keep or i not in known))


def _whole(o: Given) -> Axes | None:
    """A softmax, or rows of length 1: the axes stay, one of them is a whole."""
    asked = o.axis(1 if o.name == "normalize" else 0)
    axis = integer(asked) if asked is not None else 1 if o.name == "normalize" else -1
    if axis is None:
        return replace(o.x, whole=None)
    found = ax.place(o.x, axis)
    dims = tuple(found[0]) if found is not None else o.x.dims
    axis = axis % len(dims) if found is not None and Axes(dims).exact else axis
    return Axes(dims, Whole(o.name, axis, o.site))


def _unsqueezed(o: Given) -> Axes | None:
    axis = integer(o.axis())
    if axis is None:
        return None
    found = ax.place(o.x, axis - 1 if axis > 0 else axis + 1 if axis < -1 else None)
    dims = list(found[0]) if found is not None else list(o.x.dims)
    if found is None and axis not in (0, -1):
        return None
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, INSERTED)
    return Axes(tuple(dims))


def _squeezed(o: Given) -> Axes | None:
    asked = o.axis()
    if asked is None:
        known = o.x.exact and all(isinstance(d, Axis) and (d.size != "" or d.role == "batch") for d in o.x.dims[1:])
        return Axes(tuple(d for d in o.x.dims if getattr(d, "size", 0) != 1)) if known else None
    found = ax.place(o.x, integer(asked))
    if found is None:
        return None
    dims, i = found
    one = dims[i]
    if not isinstance(one, Axis) or one.size == "" or (one.size != 1 and "." in str(one.size)):
        return None
    return Axes(tuple(d for j, d in enumerate(dims) if j != i or one.size != 1))


def _viewed(o: Given) -> Axes | None:
    wanted = ax.sizes([a for a in o.args if not isinstance(a, Const) or a.value is not None])
    if not wanted:
        return None
    plain = [d for d in o.x.dims if isinstance(d, Axis) and d.size != 1] if o.x.exact else []
    left = [d for d in plain if d not in wanted]
    open_ = [i for i, w in enumerate(wanted) if w.size == -1]
    if len(open_) == 1:
        whole = o.x.exact and len(left) + len(wanted) - 1 - sum(w.size == 1 for w in wanted) == len(plain)
        wanted[open_[0]] = left[0] if whole and len(left) == 1 else Axis(1) if whole and not left else Axis()
    done, last = o.x.whole, len(o.x.dims) - 1
    if done is not None and o.x.exact and wanted[-1].size == getattr(o.x.dims[-1], "size", "") != "":
        done = done._replace(axis=len(wanted) - 1 if done.axis == last else 0 if len(wanted) == 2 else -99)
    return Axes(tuple(INSERTED if w.size == 1 and Axis(1) not in o.x.dims else w for w in wanted),
                done if done is not None and o.x.exact and done.axis != -99 and len(wanted) > 1 else None)


def _flattened(o: Given) -> Axes | None:
    start, end = integer(o.get(0, "start_dim") or Const(0)), integer(o.get(1, "end_dim") or Const(-1))
    if o.name == "ravel" or start == 0:
        return _viewed(replace(o, args=[Const(-1)])) if end == -1 else None
    front = ax.place(o.x, start - 1 if start is not None else None)
    if front is None or start is None or end != -1:
        return None
    left = [d for d in front[0][start:] if not isinstance(d, Axis) or d.size != 1]
    one = left[0] if len(left) == 1 else None
    return Axes((*front[0][:start], one if isinstance(one, Axis) else Axis("" if left else 1)))


def _permuted(o: Given) -> Axes | None:
    asked = o.args[0].items if len(o.args) == 1 and isinstance(o.args[0], Bag) else o.args
    order = [integer(a) for a in asked]
    if not order:
        dims = ax.ranked(o.x, 2)
        return ax.swapped(replace(o.x, dims=tuple(dims)), 0, 1) if dims is not None else None
    if o.name in ("transpose", "swapaxes", "swapdims") and len(order) == 2 and None not in order:
        if len(o.x.dims) == 2 and isinstance(o.x.dims[0], Rest) and {1, 2} == set(order):
            # what a layer with a width gives: (batch, steps, width)
            o = replace(o, x=replace(o.x, dims=tuple(ax.ranked(o.x, 3) or o.x.dims)))
        return ax.swapped(o.x, order[0] or 0, order[1] or 0)
    dims = ax.ranked(o.x, len(order))
    if dims is None or None in order:
        return None
    places = [a % len(dims) for a in order if a is not None]
    whole = o.x.whole
    turned = whole._replace(axis=places.index(whole.axis % len(dims))) if whole is not None else None
    return Axes(tuple(dims[i] for i in places), turned)


def _joined(name: str, given: Sequence[Value], kwargs: Mapping[str, Value], site: Site) -> Axes | None:
    of = given[0] if given and isinstance(given[0], Bag) else None
    known = [ax.of(i) for i in of.items] if of is not None else []
    axis = integer(kwargs.get("dim") or kwargs.get("axis") or (given[1] if len(given) > 1 else Const(0)))
    first = next((k for k in known if k is not None), None)
    if of is None or first is None or axis is None or name in ("vstack", "hstack"):
        return None
    if name == "stack":
        count = Axis(len(of.items)) if not of.open else ax.length(of.size) if of.size is not None else Axis("", "batch")
        found = ax.place(first, axis - 1) if axis > 0 else None
        dims = list(found[0]) if found is not None else list(first.dims)
        if axis not in (0, -1) and found is None:
            return None
        dims.insert(axis if axis >= 0 else len(dims), count)
        return Axes(tuple(dims))
    found = ax.place(first, axis)
    if found is None:
        return None
    parts = [ax.at(k, axis) for k in known]
    ints = [p.size for p in parts if isinstance(p.size, int)]
    named = "+".join(str(p.size) for p in parts)
    size: int | str = sum(ints) if len(ints) == len(parts) and not of.open else f"cat({named})" if all(
        p.size != "" for p in parts) else ""
    dims = found[0]
    dims[found[1]] = Axis(size, parts[0].role if parts[0].role != "inserted" else "")
    return Axes(tuple(dims), first.whole if len({k.whole if k else None for k in known}) == 1 else None)


def product(x: Axes | None, y: Axes | None) -> Axes | None:
    """A matrix product."""
    if x is None or y is None or not x.dims or not y.dims or isinstance(y.dims[-1], Rest):
        return None
    if len(y.dims) == 1:
        return Axes(x.dims[:-1]) if not isinstance(x.dims[-1], Rest) else None
    if y.exact and len(y.dims) > 2 and not x.exact:
        x = replace(x, dims=tuple(ax.ranked(x, len(y.dims)) or x.dims))
    before = ax.place(x, -1)
    if before is None or (y.exact and len(y.dims) > 2 and not x.exact):
        return None
    lead, last = before[0][:-1], y.dims[-1]
    last = last if last.role in ("batch", "feature") else Axis(last.size, "scores")
    return Axes((*lead, last)) if len(before[0]) > 1 or len(y.dims) == 2 else None


def _einsum(given: Sequence[Value]) -> Axes | None:
    letters = _letters(given)
    if letters is None:
        return None
    sides, out = letters
    known: dict[str, Axis] = {}
    for side, value in zip(sides, given[1:], strict=False):
        dims = ax.ranked(ax.of(value), len(side))
        known.update(zip(side, dims or (), strict=False))
    return Axes(tuple(known.get(c, Axis()) for c in out))


def _letters(given: Sequence[Value]) -> tuple[list[str], str] | None:
    said = given[0].value if given and isinstance(given[0], Const) else None
    left, arrow, out = said.replace(" ", "").partition("->") if isinstance(said, str) else ("", "", "")
    return (left.split(","), out) if arrow and "." not in left else None


def _rearranged(o: Given) -> Axes | None:
    """einops: axes by their names."""
    said = o.args[0].value if o.args and isinstance(o.args[0], Const) else None
    left, arrow, right = said.partition("->") if isinstance(said, str) else ("", "", "")
    if not arrow or "..." in left or "(" in left + right:
        return None
    dims = ax.ranked(o.x, len(left.split()))
    known = dict(zip(left.split(), dims or (), strict=False))
    return Axes(tuple(INSERTED if n == "1" else known.get(n, Axis()) for n in right.split())) if dims else None


def _rows(o: Given) -> Axes | None:
    first = o.x.dims[0] if o.x.frame else None
    if not isinstance(first, Axis):
        return None
    return replace(o.x, dims=(Axis(f"{o.name}({first.size}@{o.site})", first.role), *o.x.dims[1:]))


def _dropped(o: Given) -> Axes | None:
    columns = "columns" in o.kwargs or o.axis(1) == Const(1)
    return replace(o.x, dims=(o.x.dims[0], Axis("", "feature"))) if o.x.frame and columns else None


def _one_hot(o: Given) -> Axes | None:
    count = o.get(0, "num_classes")
    return Axes((*o.x.dims, Axis(ax.length(count).size if count is not None else "", "class")))


def _expanded(o: Given) -> Axes | None:
    wanted = ax.sizes(o.args)
    dims = ax.ranked(o.x, len(wanted)) if wanted is not None else None
    return Axes(tuple(d if w.size == -1 else w for w, d in zip(wanted or (), dims, strict=False))) if dims else None


RULES: dict[str, Rule] = {**dict.fromkeys(words("axes.toml", "kept"), _kept),
    **dict.fromkeys(words("axes.toml", "reduced"), _reduced), **dict.fromkeys(words("axes.toml", "whole"), _whole),
    **dict.fromkeys(words("axes.toml", "rows"), _rows), **dict.fromkeys(("unsqueeze", "expand_dims"), _unsqueezed),
    "squeeze": _squeezed, **dict.fromkeys(("view", "reshape"), _viewed),
    **dict.fromkeys(("flatten", "ravel"), _flattened),
    **dict.fromkeys(("permute", "transpose", "t", "swapaxes", "swapdims"), _permuted),
    **dict.fromkeys(("matmul", "mm", "bmm", "dot"), lambda o: product(o.x, ax.of(o.get(0, "other", "mat2")))),
    "rearrange": _rearranged, "drop": _dropped, "pop": lambda o: Axes(o.x.dims[:1]) if o.x.frame else None,
    "one_hot": _one_hot, **dict.fromkeys(("expand", "broadcast_to"), _expanded),
    **dict.fromkeys(("split", "chunk", "tensor_split"), lambda o: _part(o)), "index_add": lambda o: o.x,
    "gather": lambda o: ax.of(o.get(1, "index")), "bincount": lambda o: None}


def _part(o: Given) -> Axes | None:
    """One part of several along an axis, the same for every value cut by the same call."""
    asked = o.axis(1)
    axis = integer(asked) if asked is not None else 0
    found = ax.place(o.x, axis)
    one = found[0][found[1]] if found is not None else None
    if found is None or not isinstance(one, Axis):
        return None
    parts = integer(o.get(0, "chunks", "split_size_or_sections"))
    count = one.size // parts if isinstance(one.size, int) and parts and o.name == "chunk" else None
    found[0][found[1]] = Axis(count if count else f"{o.name}({one.size}@{o.site})", one.role)
    return Axes(tuple(found[0]))


def attribute(x: Axes, name: str) -> Axes | None:
    """`x.T`, `frame.values`, `frame.y`; None where it is nothing of the array's."""
    if name in ("T", "mT"):
        rows = ax.ranked(x, 2) if name == "T" and not x.exact else None
        x = replace(x, dims=tuple(rows)) if rows is not None else x
        return ax.swapped(x, -1, -2) if (x.exact and len(x.dims) == 2) or name == "mT" else None
    if name in ("values", "real", "data", "iloc", "loc", "array", "dt", "str"):
        return replace(x, frame=x.frame and name in ("iloc", "loc"))
    return Axes(x.dims[:1]) if x.frame and name not in ("shape", "columns", "index", "dtypes", "at", "iat") else None


def output(name: str, given: Axes) -> Axes | None:
    """What a pretrained model gives under an attribute: rows of samples, as many as it was given."""
    rank = _OUTPUTS.get(name)
    if rank is None:
        return None
    front = ax.at(given, 0)._replace(role="batch")
    return Axes((front, *([ax.at(given, 1)] if rank == 3 else []), Axis("", "feature")))


def given_to(value: Value, axes: Axes | None) -> Value:
    """The value with these axes: the array itself, each of values and places, the parts of a list."""
    if isinstance(value, Tensor) and value.axes != axes:
        return replace(value, axes=axes)
    if isinstance(value, Symbol) and axes is not None and value.role not in ("shape", "size"):
        one = axes.dims[0] if len(axes.dims) == 1 else None
        nothing = axes == value.axes or (isinstance(one, Rest) and not one.front and not one.back)
        return value if nothing else replace(value, axes=axes)
    if isinstance(value, Bag) and value.kind in ("minmax", "tuple") and len(value.items) <= 2:
        value.items[:] = [given_to(i, axes) if isinstance(i, Tensor) else i for i in value.items]
    return value
