"""An image classifier in flax with a TrainState that also carries batch statistics."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state

CLASSES = 10


class TrainState(train_state.TrainState):
    batch_stats: Any


class Net(nn.Module):
    width: int = 32

    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(self.width, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.relu(x).mean(axis=(1, 2))
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(CLASSES)(x)


def create(key, steps):
    net = Net()
    variables = net.init(key, jnp.ones((1, 16, 16, 3)), train=False)
    rate = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, steps)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate))
    return TrainState.create(
        apply_fn=net.apply, params=variables["params"], tx=tx, batch_stats=variables["batch_stats"]
    )


@jax.jit
def train_step(state, images, labels, key):
    def loss_fn(params):
        variables = {"params": params, "batch_stats": state.batch_stats}
        logits, updates = state.apply_fn(
            variables, images, train=True, mutable=["batch_stats"], rngs={"dropout": key}
        )
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return loss, updates

    (loss, updates), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads)
    return state.replace(batch_stats=updates["batch_stats"]), loss


@jax.jit
def accuracy(state, images, labels):
    variables = {"params": state.params, "batch_stats": state.batch_stats}
    logits = state.apply_fn(variables, images, train=False)
    return (logits.argmax(-1) == labels).mean()


def main(steps=1000):
    key = jax.random.key(0)
    key, data_key, label_key, init_key = jax.random.split(key, 4)
    images = jax.random.normal(data_key, (512, 16, 16, 3))
    labels = jax.random.randint(label_key, (512,), 0, CLASSES)
    state = create(init_key, steps)
    for step in range(steps):
        key, step_key, pick_key = jax.random.split(key, 3)
        index = jax.random.choice(pick_key, 512, (64,), replace=False)
        state, loss = train_step(state, images[index], labels[index], step_key)
        if step % 100 == 0:
            print(step, float(loss), float(accuracy(state, images, labels)))


if __name__ == "__main__":
    main()
