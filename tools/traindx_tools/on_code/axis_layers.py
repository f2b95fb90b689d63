"""What layers of torch, flax and equinox do to axes."""

from __future__ import annotations

from collections.abc import Sequence

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import axes as ax
from traindx_tools.on_code.axis_calls import called
from traindx_tools.on_code.descriptions import Axes, Axis, Rest, Site
from traindx_tools.on_code.values import Bag, Const, Thing, Value, integer, truth

_DRAWS_ALL, _DRAWS_LAST, _ROWS_OF = (words("axes.toml", k) for k in ("draws_all", "draws_last", "rows_of"))
_MOVES = ("Upsample", "Pixel", "ZeroPad", "Reflection", "Replication", "Unfold", "Fold", "Bilinear", "Unflatten")
"""Layers after which axes are other ones."""


def layer(made: Thing, args: Sequence[Value], site: Site) -> Axes | None:
    """What a layer of torch, flax or equinox gives."""
    x, short = ax.of(args[0]) if args else None, made.short
    flax = made.type.startswith("flax.")
    if short in ("Linear", "LazyLinear", "Dense", "DenseGeneral", "MLP"):
        first = short.startswith("Lazy") or made.type.startswith("flax.linen.")
        size = ax.length(made.argument(0 if first else 1, "features" if flax else "out_size" if short == "MLP" else (
            "out_features")))
        found = ax.place(x, -1)
        return Axes((*(found[0][:-1] if found is not None else (Rest(f"{short}@{site}"),)), Axis(size.size, "feature")))
    if short.startswith(("Conv", "MaxPool", "AvgPool", "Adaptive", "LazyConv")) and short[-2:] in ("1d", "2d", "3d"):
        return None if made.type.startswith("equinox.") else _spatial(made, x, int(short[-2]))
    if x is None and not short.startswith(("LSTM", "GRU", "RNN")):
        return None
    if short in ("Embedding", "Embed") and x is not None:
        return Axes((*x.dims, Axis(ax.length(made.argument(1, "embedding_dim")).size, "feature")))
    if short == "EmbeddingBag":
        return Axes((ax.at(x, 0), Axis(ax.length(made.argument(1, "embedding_dim")).size, "feature")))
    if short in ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"):
        twice = 2 if truth(made.kwargs.get("bidirectional")) else 1
        width = ax.length(made.argument(1, "hidden_size")).size
        found = ax.place(x, -1)  # a cell of equinox takes one sample, and torch's may
        cell = found[0][:-1] if found is not None else (Rest(f"{short}@{site}"),)
        lead = cell if short.endswith("Cell") else (ax.at(x, 0), ax.at(x, 1))
        return Axes((*lead, Axis(width * twice if isinstance(width, int) else "", "feature")))
    if short in ("Softmax", "LogSoftmax"):
        name = "softmax" if short == "Softmax" else "log_softmax"
        return called(name, [args[0], *made.args], made.kwargs, site)
    if short in ("BatchNorm1d", "SyncBatchNorm") and x is not None and x.dims[-1] == Axis(
            ax.length(made.argument(0, "num_features")).size, "feature") and (pair := ax.ranked(x, 2)) is not None:
        return Axes(tuple(pair))  # the channels stand last: there are two axes
    if short == "Flatten":
        return called("flatten", [args[0], *(made.args or (Const(1),))], made.kwargs, site)
    return x if made.type.startswith(("torch.nn.", "flax.")) and not short.startswith(_MOVES) else None


def _spatial(made: Thing, x: Axes | None, n: int) -> Axes | None:
    """A convolution or pooling over n axes of space, behind the samples and the channels."""
    dims = ax.ranked(x, n + 2) if x is not None else [Axis()] * (n + 2)
    if dims is None:
        return None
    short = made.short
    channels = dims[1]
    if "Conv" in short:
        channels = Axis(ax.length(made.argument(0 if short.startswith("Lazy") else 1, "out_channels")).size, "feature")
    one = made.argument(0, "output_size")
    if short.startswith("Adaptive"):
        wanted = [ax.length(v) for v in (one.items if isinstance(one, Bag) else [one] * n)]
        spaces = [Axis(w.size, "space") if w.size != 1 else Axis(1) for w in wanted]
    else:
        spaces = [Axis(d.size if _same(made) else "", "space") for d in dims[2:]]
    return Axes((dims[0]._replace(role="batch"), channels, *spaces))


def _same(made: Thing) -> bool:
    """Whether a convolution leaves as many places as there were."""
    named = ((2, "kernel_size"), (3, "stride"), (4, "padding"), (5, "dilation"))
    kernel, stride, padding, dilation = (made.argument(i, n) for i, n in named)
    if padding == Const("same"):
        return True
    width, gap = integer(kernel), integer(dilation or Const(1))
    plain = "Conv" in made.short and "Transpose" not in made.short and integer(stride or Const(1)) == 1
    if not plain or width is None:
        return False
    if width == 3 and dilation is not None and ax.text(padding) == ax.text(dilation):
        return True
    return gap is not None and 2 * (integer(padding or Const(0)) or 0) == gap * (width - 1)


def taken(made: Thing) -> int | None:
    """How many axes a layer takes, the samples' among them."""
    short = made.short
    if short.startswith(("Conv", "MaxPool", "AvgPool", "Adaptive")) and short[-2:] in ("1d", "2d", "3d"):
        return int(short[-2]) + 2
    if short in ("BatchNorm2d", "InstanceNorm2d", "Dropout2d"):
        return 4
    return 3 if short in _STEPS else 2 if short in ("EmbeddingBag", "LSTMCell", "GRUCell") else None


_STEPS = frozenset({"LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoder", "TransformerEncoderLayer"})


def runs_over_first(made: Thing) -> bool:
    """Whether a layer of torch takes the first axis for steps."""
    owner = made.args[0] if made.short == "TransformerEncoder" and made.args else made
    return isinstance(owner, Thing) and owner.type.startswith("torch.nn.") and "batch_first" not in owner.kwargs and (
        "**" not in owner.kwargs and len(owner.args) < 5 and owner.short in _STEPS)


def drawn(made: Thing, name: str, given: Sequence[Value]) -> Axes | None:
    """What a distribution gives: a draw, a log-probability."""
    params = [ax.of(v) for v in (*made.args, *made.kwargs.values())]
    short = made.short
    if short == "Independent" and made.args and isinstance(made.args[0], Thing):
        inner = drawn(made.args[0], name, given)
        return Axes(inner.dims[:-1]) if inner is not None and name in ("log_prob", "entropy") else inner
    if not params or None in params or (name != "log_prob" and given):
        return None
    known = params[0] if len(params) == 1 else ax.broadcast(*params[:2])
    if short in _DRAWS_ALL:
        return ax.broadcast(known, ax.of(given[0])) if name == "log_prob" and given else known
    over = short in _DRAWS_LAST or (short in _ROWS_OF and name in ("log_prob", "entropy"))
    plain = known is not None and known.dims and isinstance(known.dims[-1], Axis)
    return Axes(known.dims[:-1]) if over and known is not None and plain else None
