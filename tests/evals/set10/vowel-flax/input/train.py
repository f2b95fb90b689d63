# Vowel classification from short-time spectra with flax.linen.
# Evaluation uses an exponential average of the weights.
import time
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct
from flax.training import train_state


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train):
        x = nn.Dense(self.width)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        return nn.relu(x)


class VowelNet(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x, train: bool):
        for w in (128, 128, 64):
            x = Block(w)(x, train)
        return nn.Dense(self.classes)(x)


@struct.dataclass
class Average:
    """running average of the variables used for evaluation"""
    variables: Any
    decay: float = struct.field(pytree_node=False, default=0.98)

    def update(self, params):
        d = self.decay
        averaged = jax.tree.map(lambda a, p: d * a + (1 - d) * p, self.variables["params"], params)
        return self.replace(variables={**self.variables, "params": averaged})


class TrainState(train_state.TrainState):
    batch_stats: Any
    average: Average


def create_state(key, model, n_features, total_steps):
    variables = model.init(key, jnp.zeros((2, n_features)), train=False)
    lr = optax.cosine_onecycle_schedule(total_steps, 4e-3, pct_start=0.2)
    return TrainState.create(
        apply_fn=model.apply,
        params=variables["params"],
        batch_stats=variables["batch_stats"],
        tx=optax.adamw(lr, weight_decay=1e-3),
        average=Average(variables=variables),
    )


@jax.jit
def train_step(state, x, y):
    def loss_fn(params):
        logits, mutated = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, x, train=True, mutable=["batch_stats"])
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
        return loss, (logits, mutated)

    (loss, (logits, mutated)), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads, batch_stats=mutated["batch_stats"])
    state = state.replace(average=state.average.update(state.params))
    return state, loss, jnp.mean(logits.argmax(-1) == y)


@jax.jit
def eval_step(state, x, y):
    logits = state.apply_fn(state.average.variables, x, train=False)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    return loss.mean(), jnp.mean(logits.argmax(-1) == y)


def main(epochs=25, batch=100, seed=6):
    data = np.load("vowels.npz")
    x, y = data["x_train"].astype(np.float32), data["y_train"]
    xt, yt = jnp.asarray(data["x_test"].astype(np.float32)), jnp.asarray(data["y_test"])
    rng = np.random.default_rng(seed)
    model = VowelNet(int(y.max()) + 1)
    steps = len(x) // batch
    state = create_state(jax.random.PRNGKey(seed), model, x.shape[1], steps * epochs)
    print(f"train {x.shape} test {xt.shape} classes {model.classes}; input range {x.min():.1f}..{x.max():.1f} dB")

    for epoch in range(epochs):
        t0 = time.time()
        order = rng.permutation(len(x))
        losses, accs = [], []
        for s in range(steps):
            idx = order[s * batch:(s + 1) * batch]
            state, loss, acc = train_step(state, x[idx], y[idx])
            losses.append(loss)
            accs.append(acc)
        test_loss, test_acc = eval_step(state, xt, yt)
        print(f"epoch {epoch + 1:2d} train loss {np.mean(losses):.4f} acc {np.mean(accs):.3f} "
              f"test loss {float(test_loss):.4f} acc {float(test_acc):.3f} [{time.time() - t0:.1f}s]")


if __name__ == "__main__":
    main()
