import equinox as eqx
import jax
import optax


class Net(eqx.Module):
    lin: eqx.nn.Linear
    drop: eqx.nn.Dropout

    def __init__(self, key):
        self.lin = eqx.nn.Linear(3, 1, key=key)
        self.drop = eqx.nn.Dropout(0.1)

    def __call__(self, x, key=None):
        return self.drop(self.lin(x), key=key)


@eqx.filter_value_and_grad
def loss_fn(net, x, y, key):
    return ((jax.vmap(net)(x, jax.random.split(key, len(x))) - y) ** 2).mean()


def fit(net, batches, test, key, rounds):
    tx = optax.adam(1e-3)
    state = tx.init(eqx.filter(net, eqx.is_array))

    @eqx.filter_jit
    def step(net, state, x, y, key):
        loss, grads = loss_fn(net, x, y, key)
        updates, state = tx.update(grads, state)
        return eqx.apply_updates(net, updates), state, loss

    for r in range(rounds):
        for x, y in batches():
            key, sub = jax.random.split(key)
            net, state, loss = step(net, state, x, y, sub)
        net = eqx.nn.inference_mode(net)  # FAULT C104
        print(sum(float(abs(jax.vmap(net)(x) - y).mean()) for x, y in test()))
    net = eqx.nn.inference_mode(net)
    return net
