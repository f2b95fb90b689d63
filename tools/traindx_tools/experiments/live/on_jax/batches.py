"""One batch for ever, in the arguments of a jitted training step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.live.intervening import Intervening


class OneBatch(Intervening):
    """What is new in each call of a training step and is no state of it, stays what it was in the first call.

    A training step gets an output of its last call back, or returns gradients: leaves with the shapes of an argument.
    Keys and single numbers (a step's count) go on as they are. Where batches come from a DataLoader of torch, they are
    kept there.
    """

    def attach(self) -> None:
        import jax

        self.patches.replace(jax, "jit", self._jit)
        self.ledger.unseen = "no jitted function gets a batch as an argument and its own state back"

    def _jit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def jit(*args: Any, **options: Any) -> Any:
            made = original(*args, **options)
            if not args:
                return functools.partial(jit, **options) if not hasattr(made, "lower") else made
            if not hasattr(made, "lower"):
                return made
            return _Step(made, self)

        return jit


class _Step:
    """Stands where a jitted function stands."""

    def __init__(self, inner: Any, owner: OneBatch) -> None:
        functools.update_wrapper(self, inner)
        self._inner, self._owner = inner, owner
        self._first: list[Any] | None = None
        self._outputs: list[Any] = []
        self._data: tuple[int, ...] | None = None
        self._over = False

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from traindx_tools.on_jax import internals

        if self._over or self._owner.ledger.off or not internals.at_top_level():
            return self._inner(*args, **kwargs)
        given = self._owner.guarded(self._kept, args, kwargs)
        args, kwargs = (args, kwargs) if given is None else given
        output = self._inner(*args, **kwargs)
        if self._data is None and not self._over:
            self._owner.guarded(self._look, output)
        return output

    def _look(self, output: Any) -> None:
        import jax

        self._outputs = jax.tree_util.tree_leaves(output)

    def _kept(self, args: Any, kwargs: Any) -> Any:
        import jax

        leaves, form = jax.tree_util.tree_flatten((args, kwargs))
        if self._first is None:
            self._first = leaves
            return None
        if self._data is None:
            self._decide(args, kwargs, leaves)
            if self._data is None:
                return None
        if len(leaves) != len(self._first):
            return None
        kept = list(leaves)
        for place in self._data:
            kept[place] = self._first[place]
        self._owner.ledger.held(f"{len(self._data)} arrays of {getattr(self._inner, '__name__', 'a jitted function')}")
        return jax.tree_util.tree_unflatten(form, kept)

    def _decide(self, args: Any, kwargs: Any, leaves: list[Any]) -> None:
        """Which leaves are the batch; none, where this is no training step."""
        first = self._first or []
        self._over = True
        if len(first) != len(leaves):
            return
        outputs = {id(x) for x in self._outputs}
        fed = [id(x) in outputs for x in leaves]
        back = {id(x) for x, f in zip(leaves, fed, strict=True) if f}
        made = [_form(x) for x in self._outputs if id(x) not in back]
        gradients = _like_outputs(args, kwargs, made)
        self._outputs = []
        if not any(fed) and not any(gradients):
            return
        new = [i for i, x in enumerate(leaves)
               if not fed[i] and not gradients[i] and x is not first[i] and _is_batch(x)]
        unclear = [i for i in new if not _on_host(leaves[i]) and _form(leaves[i]) in made]
        if unclear:
            self._owner.ledger.cannot("an argument of the step has the shape of an output: whether it is a batch or a "
                                      "state is not known")
            return
        if not new:
            self._owner.ledger.not_here("the training step gets the same arrays in each call, or none but its "
                                              "state")
            return
        if any(getattr(first[i], "is_deleted", bool)() for i in new):
            self._owner.ledger.cannot("the step is given its batch to reuse its memory (donated): it is gone after it")
            return
        self._data, self._over = tuple(new), False


def _like_outputs(args: Any, kwargs: Any, made: list[Any]) -> list[bool]:
    """For each leaf, whether it belongs to an argument of several arrays whose forms are all among the outputs."""
    import jax

    found: list[bool] = []
    for part in (*args, *(kwargs[k] for k in sorted(kwargs))):
        forms = [_form(x) for x in jax.tree_util.tree_leaves(part)]
        arrays = [f for f in forms if f is not None]
        found += [len(arrays) > 1 and all(f in made for f in arrays)] * len(forms)
    return found


def _form(leaf: Any) -> Any:
    return (tuple(leaf.shape), str(leaf.dtype)) if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else None


def _on_host(leaf: Any) -> bool:
    return type(leaf).__module__.partition(".")[0] == "numpy"


def _is_batch(leaf: Any) -> bool:
    """An array with an axis that is no key of random numbers."""
    form = _form(leaf)
    if form is None or not form[0] or "key<" in form[1]:
        return False
    return not (form[1] == "uint32" and form[0][-1] in (2, 4) and len(form[0]) <= 2)
