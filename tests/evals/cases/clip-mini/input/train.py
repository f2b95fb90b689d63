"""Contrastive text-sound pairs (InfoNCE), optax + flax.linen."""
import flax.linen as fnn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

BATCH, STEPS, EMB = 128, 600, 32


class DualEncoder(fnn.Module):
    @fnn.compact
    def __call__(self, text, sound):
        def tower(x, name):
            h = fnn.gelu(fnn.Dense(96, name=f"{name}_1")(x))
            h = fnn.Dense(EMB, name=f"{name}_2")(h)
            return h / (1e-6 + jnp.linalg.norm(h, axis=-1, keepdims=True))
        log_scale = self.param("log_scale", lambda k: jnp.array(np.log(1 / 0.2), jnp.float32))
        return jnp.exp(jnp.minimum(log_scale, 4.6)) * tower(text, "text") @ tower(sound, "sound").T


def pairs(rng, mix_t, mix_s, n):
    z = rng.normal(size=(n, 6))
    t = np.tanh(z @ mix_t) + 0.35 * rng.normal(size=(n, 20))
    s = np.sin(z @ mix_s) + 0.35 * rng.normal(size=(n, 28))
    return jnp.asarray(t, jnp.float32), jnp.asarray(s, jnp.float32)


def info_nce(logits):
    d = jnp.arange(logits.shape[0])
    a = optax.softmax_cross_entropy_with_integer_labels(logits, d).mean()
    b = optax.softmax_cross_entropy_with_integer_labels(logits.T, d).mean()
    return (a + b) / 2


@jax.jit
def step_fn(state, t, s):
    def loss_fn(p):
        logits = state.apply_fn({"params": p}, t, s)
        return info_nce(logits), (logits.argmax(1) == jnp.arange(len(t))).mean()
    (loss, r1), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads), loss, r1


def main():
    rng = np.random.default_rng(6)
    mix_t, mix_s = rng.normal(size=(6, 20)) / 1.5, rng.normal(size=(6, 28)) / 1.5
    model = DualEncoder()
    t, s = pairs(rng, mix_t, mix_s, BATCH)
    params = model.init(jax.random.PRNGKey(0), t, s)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(2e-3, weight_decay=1e-4))
    val = pairs(np.random.default_rng(999), mix_t, mix_s, BATCH)
    for k in range(1, STEPS + 1):
        t, s = pairs(rng, mix_t, mix_s, BATCH)
        state, loss, r1 = step_fn(state, t, s)
        if k <= 5 or k % 25 == 0:
            v = float(info_nce(model.apply({"params": state.params}, *val)))
            print(f"{k:5d}/{STEPS}  infonce {float(loss):.4f}  R@1 {float(r1):.3f}  val {v:.4f}  "
                  f"scale {float(jnp.exp(state.params['log_scale'])):.2f}")


if __name__ == "__main__":
    main()
