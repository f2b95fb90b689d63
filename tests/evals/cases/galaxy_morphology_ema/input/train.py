import logging
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct
from flax.training import train_state

from data import make_split, SIZE
from model import MorphNet

logging.basicConfig(stream=sys.stdout, level=logging.INFO,
                    format="%(asctime)s %(levelname)s %(name)s: %(message)s")
log = logging.getLogger("morph")

EPOCHS, BATCH, LR, EMA_DECAY = 12, 64, 2e-3, 0.97


class State(train_state.TrainState):
    batch_stats: dict = None


@struct.dataclass
class Shadow:
    """Averaged copy of the network that gets deployed."""
    variables: dict
    decay: float = struct.field(pytree_node=False, default=EMA_DECAY)

    def update(self, params):
        averaged = jax.tree_util.tree_map(
            lambda s, p: self.decay * s + (1 - self.decay) * p,
            self.variables["params"], params)
        return self.replace(variables={**self.variables, "params": averaged})


def create(rng):
    net = MorphNet()
    variables = net.init(rng, jnp.zeros((1, SIZE, SIZE, 1)), train=False)
    state = State.create(apply_fn=net.apply, params=variables["params"],
                         tx=optax.adam(LR), batch_stats=variables["batch_stats"])
    return state, Shadow(variables=variables)


@jax.jit
def train_step(state, shadow, images, labels):
    def loss_fn(params):
        logits, mut = state.apply_fn({"params": params, "batch_stats": state.batch_stats},
                                     images, train=True, mutable=["batch_stats"])
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return loss, (mut["batch_stats"], logits)

    (loss, (stats, logits)), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads, batch_stats=stats)
    shadow = shadow.update(state.params)
    acc = jnp.mean(jnp.argmax(logits, -1) == labels)
    return state, shadow, loss, acc


@jax.jit
def predict(variables, images):
    return jnp.argmax(MorphNet().apply(variables, images, train=False), -1)


def accuracy(variables, images, labels):
    return float(np.mean(np.asarray(predict(variables, images)) == labels))


def main():
    x_tr, y_tr = make_split(1280, seed=0)
    x_va, y_va = make_split(384, seed=1)
    log.info("train %s  valid %s  pixel mean %.2f", x_tr.shape, x_va.shape, x_tr.mean())
    state, shadow = create(jax.random.PRNGKey(7))
    order_rng = np.random.default_rng(3)
    best = 0.0
    for epoch in range(1, EPOCHS + 1):
        order = order_rng.permutation(len(x_tr))
        losses, accs = [], []
        for i in range(0, len(order) - BATCH + 1, BATCH):
            idx = order[i:i + BATCH]
            state, shadow, loss, acc = train_step(state, shadow, x_tr[idx], y_tr[idx])
            losses.append(float(loss))
            accs.append(float(acc))
        live = accuracy({"params": state.params, "batch_stats": state.batch_stats}, x_va, y_va)
        ema = accuracy(shadow.variables, x_va, y_va)
        best = max(best, ema)
        log.info("epoch %02d loss %.4f train_acc %.3f | valid live %.3f ema %.3f",
                 epoch, np.mean(losses), np.mean(accs), live, ema)
    counts = np.bincount(np.asarray(predict(shadow.variables, x_va)), minlength=3)
    log.info("ema predictions per class %s (truth %s)", counts.tolist(), np.bincount(y_va).tolist())
    log.info("best ema accuracy %.3f", best)


if __name__ == "__main__":
    main()
