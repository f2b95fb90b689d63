"""Which parameters are tuned when a picker moves to a new network of stations."""
import jax
import optax


def labels(params, frozen=("enc",)):
    """'frozen' for everything whose path starts with one of the names, else 'tuned'."""

    def tag(path, _):
        name = "/".join(str(k.key) for k in path)
        return "frozen" if any(name.startswith(f) for f in frozen) else "tuned"

    return jax.tree_util.tree_map_with_path(tag, params)


def optimizer(params, lr):
    return optax.multi_transform({"tuned": optax.adam(lr), "frozen": optax.set_to_zero()}, labels(params))
