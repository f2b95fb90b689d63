"""Objects that compiled code may use: made inside, trees, settings, cached shapes; results that are used or printed."""
import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Recorder:
    def __init__(self):
        self.rows, self.scale = [], 1.0

    def add(self, value):
        self.rows.append(value)

    def size(self, x):
        self.rows.append(x.shape)

    def scaled(self, x):
        return x * self.scale


class Net(eqx.Module):
    w: jax.Array

    def soft(self, x):
        return jnp.tanh(x @ self.w)


recorder = Recorder()


def widened(net, by):
    return eqx.tree_at(lambda n: n.w, net, net.w * by)


def shown(net):
    print(net.w)
    return eqx.tree_at(lambda n: n.w, net, net.w * 2)


def loss(net, x):
    inner = Recorder()
    inner.add(jnp.mean(recorder.scaled(jax.vmap(net.soft)(x)) ** 2))
    recorder.size(x)
    return sum(inner.rows)


@eqx.filter_jit
def step(net, state, x):
    value, g = eqx.filter_value_and_grad(loss)(net, x)
    jax.debug.callback(recorder.add, value)
    updates, state = tx.update(g, state)
    return eqx.apply_updates(net, updates), state, value


tx = optax.sgd(0.1)
net = Net(jnp.ones((3, 3)))
state = tx.init(net)
for _ in range(10):
    net, state, value = step(net, state, jnp.ones((4, 3)))
    recorder.add(value)
    shown(net)
net = widened(net, 2)
