"""Magnitude regression from short single-station seismograms."""
import functools
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from waves import catalogue, N_SAMPLES

CFG = dict(epochs=15, batch=64, lr=1.5e-3, hidden=48, kernel=9, seed=11)


def conv1d(x, w, b, stride=2):
    y = jax.lax.conv_general_dilated(x, w, (stride,), "SAME",
                                     dimension_numbers=("NWC", "WIO", "NWC"))
    return y + b


def init_params(key, cfg):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    c = 16
    feat = c * (N_SAMPLES // 4)
    he = lambda k, shape, fan: jax.random.normal(k, shape) * np.sqrt(2.0 / fan)
    return {
        "c1": (he(k1, (cfg["kernel"], 1, c), cfg["kernel"]), jnp.zeros(c)),
        "c2": (he(k2, (cfg["kernel"], c, c), cfg["kernel"] * c), jnp.zeros(c)),
        "d1": (he(k3, (feat, cfg["hidden"]), feat), jnp.zeros(cfg["hidden"])),
        "out": (he(k4, (cfg["hidden"], 1), cfg["hidden"]) * 0.1, jnp.zeros(1)),
    }


def forward(params, x):
    h = x[..., None]
    h = jax.nn.gelu(conv1d(h, *params["c1"]))
    h = jax.nn.gelu(conv1d(h, *params["c2"]))
    h = h.reshape(h.shape[0], -1)
    h = jax.nn.gelu(h @ params["d1"][0] + params["d1"][1])
    return (h @ params["out"][0] + params["out"][1])[:, 0]


class MagnitudeModel:
    """Keeps parameters, optimiser and the target scaling together."""

    def __init__(self, cfg, target_mean, target_std):
        self.cfg = cfg
        self.mu, self.sigma = float(target_mean), float(target_std)
        self.params = init_params(jax.random.PRNGKey(cfg["seed"]), cfg)
        self.tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(cfg["lr"], weight_decay=1e-3))
        self.opt_state = self.tx.init(self.params)

    @functools.partial(jax.jit, static_argnums=0)
    def _update(self, params, opt_state, x, mag):
        def loss_fn(p):
            err = forward(p, x) - (mag - self.mu) / self.sigma
            return jnp.mean(optax.huber_loss(err)), jnp.mean(jnp.abs(err)) * self.sigma
        (loss, mae), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt_state = self.tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss, mae

    def fit_batch(self, x, mag):
        self.params, self.opt_state, loss, mae = self._update(self.params, self.opt_state, x, mag)
        return float(loss), float(mae)

    @functools.partial(jax.jit, static_argnums=0)
    def predict(self, x):
        return forward(self.params, x) * self.sigma + self.mu


def evaluate(model, x, mag, batch=128):
    errs = []
    for i in range(0, len(x), batch):
        errs.append(np.asarray(model.predict(x[i:i + batch])) - mag[i:i + batch])
    errs = np.concatenate(errs)
    return float(np.abs(errs).mean()), float(errs.mean())


def main():
    x_tr, m_tr = catalogue(2048, seed=0)
    x_va, m_va = catalogue(512, seed=1)
    print(json.dumps({"event": "start", **CFG, "n_train": len(x_tr), "n_valid": len(x_va),
                      "mag_mean": round(float(m_tr.mean()), 3), "mag_std": round(float(m_tr.std()), 3)}))
    model = MagnitudeModel(CFG, m_tr.mean(), m_tr.std())
    rng = np.random.default_rng(5)
    mae0, bias0 = evaluate(model, x_va, m_va)
    print(json.dumps({"event": "eval", "epoch": 0, "valid_mae": round(mae0, 5), "valid_bias": round(bias0, 5)}))
    for epoch in range(1, CFG["epochs"] + 1):
        t0 = time.time()
        order = rng.permutation(len(x_tr))
        stats = [model.fit_batch(x_tr[order[i:i + CFG["batch"]]], m_tr[order[i:i + CFG["batch"]]])
                 for i in range(0, len(order), CFG["batch"])]
        loss, mae = np.mean(stats, axis=0)
        v_mae, v_bias = evaluate(model, x_va, m_va)
        print(json.dumps({"event": "epoch", "epoch": epoch, "train_loss": round(loss, 5),
                          "train_mae": round(mae, 5), "valid_mae": round(v_mae, 5),
                          "valid_bias": round(v_bias, 5), "sec": round(time.time() - t0, 2)}))
    print(json.dumps({"event": "done", "valid_mae": round(v_mae, 5)}))


if __name__ == "__main__":
    main()
