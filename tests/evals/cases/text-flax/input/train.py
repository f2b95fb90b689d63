import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training import train_state  # noqa: F401  (kept for the checkpoint code)

CFG = dict(vocab=400, seq=20, classes=6, dim=48, batch=64, epochs=6, peak_lr=4e-3, warmup=60, seed=0)


class BagAttention(nn.Module):
    vocab: int
    dim: int
    classes: int

    @nn.compact
    def __call__(self, ids):
        h = nn.Embed(self.vocab, self.dim)(ids)
        score = nn.Dense(1)(nn.tanh(nn.Dense(self.dim)(h)))
        weight = nn.softmax(score, axis=1)
        pooled = (weight * h).sum(axis=1)
        return nn.Dense(self.classes)(nn.relu(nn.Dense(self.dim)(pooled)))


def tickets(n, seed):
    """support tickets: every topic has 15 keywords, the rest of the words is noise"""
    rng = np.random.default_rng(seed)
    topic = rng.integers(CFG["classes"], size=n)
    ids = rng.integers(100, CFG["vocab"], size=(n, CFG["seq"]))
    for k in range(3):
        pos = rng.integers(CFG["seq"], size=n)
        ids[np.arange(n), pos] = topic * 15 + rng.integers(15, size=n)
    return ids.astype(np.int32), topic.astype(np.int32)


def build(total_steps):
    model = BagAttention(CFG["vocab"], CFG["dim"], CFG["classes"])
    schedule = optax.warmup_cosine_decay_schedule(init_value=0.0, peak_value=CFG["peak_lr"], warmup_steps=CFG["warmup"],
                                                  decay_steps=total_steps, end_value=1e-5)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-4))
    return model, tx


def make_step(model, tx):
    @jax.jit
    def train_step(params, opt_state, ids, topic):
        def loss_fn(p):
            logits = model.apply({"params": p}, ids)
            return optax.softmax_cross_entropy_with_integer_labels(logits, topic).mean(), logits

        (loss, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        metrics = {"loss": loss, "acc": (logits.argmax(-1) == topic).mean(), "gnorm": optax.global_norm(grads)}
        return params, opt_state, metrics

    @jax.jit
    def eval_step(params, ids, topic):
        logits = model.apply({"params": params}, ids)
        return {"loss": optax.softmax_cross_entropy_with_integer_labels(logits, topic).mean(),
                "acc": (logits.argmax(-1) == topic).mean()}

    return train_step, eval_step


def mean(ms):
    return {k: float(np.mean([m[k] for m in ms])) for k in ms[0]}


def main():
    ids, topic = tickets(3200, 1)
    v_ids, v_topic = tickets(600, 2)
    per_epoch = len(ids) // CFG["batch"]
    model, tx = build(per_epoch * CFG["epochs"])
    params = model.init(jax.random.PRNGKey(CFG["seed"]), ids[:1])["params"]
    opt_state = tx.init(params)
    train_step, eval_step = make_step(model, tx)
    rng = np.random.default_rng(CFG["seed"])
    for epoch in range(CFG["epochs"]):
        order, ms = rng.permutation(len(ids)), []
        for k in range(per_epoch):
            take = order[k * CFG["batch"]:(k + 1) * CFG["batch"]]
            params, _, m = train_step(params, opt_state, ids[take], topic[take])
            ms.append(jax.device_get(m))
        tr, va = mean(ms), jax.device_get(eval_step(params, v_ids, v_topic))
        print({"epoch": epoch, "loss": round(tr["loss"], 6), "acc": round(tr["acc"], 4), "gnorm": round(tr["gnorm"], 4),
               "eval_loss": round(float(va["loss"]), 6), "eval_acc": round(float(va["acc"]), 4)})


if __name__ == "__main__":
    main()
