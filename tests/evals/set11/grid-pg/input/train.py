"""Actor-critic on a 7x7 grid with a moving goal, 64 environments in parallel, everything in one jitted scan."""
import csv
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

SIZE, HORIZON, N_ENV, ROLLOUT = 7, 40, 64, 32
GAMMA, LAMBDA, LR, ENTROPY, VALUE = 0.97, 0.95, 2e-3, 0.01, 0.5
ITERATIONS, SEED = 160, 0
MOVES = jnp.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Env(NamedTuple):
    pos: jnp.ndarray
    goal: jnp.ndarray
    t: jnp.ndarray


def spawn(key):
    k1, k2 = jax.random.split(key)
    return Env(jax.random.randint(k1, (2,), 0, SIZE), jax.random.randint(k2, (2,), 0, SIZE), jnp.zeros((), jnp.int32))


def env_step(env, action, key):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    slip = jax.random.bernoulli(k1, 0.1)
    action = jnp.where(slip, jax.random.randint(k2, (), 0, 4), action)
    pos = jnp.clip(env.pos + MOVES[action], 0, SIZE - 1)
    hit = jnp.all(pos == env.goal)
    # a reached goal pays 1 and moves elsewhere; the episode goes on until the horizon
    goal = jnp.where(hit, jax.random.randint(k3, (2,), 0, SIZE), env.goal)
    t = env.t + 1
    done = t >= HORIZON
    fresh = spawn(k4)
    nxt = jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, Env(pos, goal, t))
    return nxt, hit.astype(jnp.float32), done


def observe(env):
    hot = lambda v: jax.nn.one_hot(v, SIZE).reshape(-1)
    return jnp.concatenate([hot(env.pos), hot(env.goal), jnp.array([env.t / HORIZON])])


def init(key, sizes=(4 * SIZE + 1, 64, 64)):
    ks = jax.random.split(key, len(sizes) + 1)
    body = [(jax.random.normal(k, (a, b)) * jnp.sqrt(2 / a), jnp.zeros(b)) for k, a, b in zip(ks, sizes, sizes[1:])]
    return {"body": body,
            "pi": (0.01 * jax.random.normal(ks[-2], (sizes[-1], 4)), jnp.zeros(4)),
            "v": (jax.random.normal(ks[-1], (sizes[-1], 1)) / sizes[-1] ** 0.5, jnp.zeros(1))}


def net(params, x):
    for w, b in params["body"]:
        x = jax.nn.relu(x @ w + b)
    return x @ params["pi"][0] + params["pi"][1], (x @ params["v"][0] + params["v"][1])[..., 0]


def rollout(params, envs, key):
    def body(carry, key):
        envs = carry
        ka, ke = jax.random.split(key)
        obs = jax.vmap(observe)(envs)
        logits, value = net(params, obs)
        act = jax.random.categorical(ka, logits)
        envs, rew, done = jax.vmap(env_step)(envs, act, jax.random.split(ke, N_ENV))
        return envs, (obs, act, rew, done, value)

    envs, traj = jax.lax.scan(body, envs, jax.random.split(key, ROLLOUT))
    _, last = net(params, jax.vmap(observe)(envs))
    return envs, traj, last


def gae(rew, done, value, last):
    def body(carry, x):
        adv, nxt = carry
        r, d, v = x
        delta = r + GAMMA * nxt * (1 - d) - v
        adv = delta + GAMMA * LAMBDA * (1 - d) * adv
        return (adv, v), adv

    _, adv = jax.lax.scan(body, (jnp.zeros_like(last), last), (rew, done.astype(jnp.float32), value), reverse=True)
    return adv, adv + value


def loss_fn(params, traj, adv, ret):
    obs, act, *_ = traj
    logits, value = net(params, obs)
    logp = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(logp, act[..., None], -1)[..., 0]
    norm = (adv - adv.mean()) / (adv.std() + 1e-8)
    policy = -(chosen * norm).mean()
    critic = ((value - ret) ** 2).mean()
    entropy = -(jnp.exp(logp) * logp).sum(-1).mean()
    return policy + VALUE * critic - ENTROPY * entropy, (policy, critic, entropy)


tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(LR))


@jax.jit
def iteration(params, opt_state, envs, key):
    envs, traj, last = rollout(params, envs, key)
    adv, ret = gae(traj[2], traj[3], traj[4], last)
    (total, parts), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, traj, adv, ret)
    updates, opt_state = tx.update(grads, opt_state, params)
    goals = traj[2].sum() / (N_ENV * ROLLOUT) * HORIZON
    return optax.apply_updates(params, updates), opt_state, envs, (total, *parts, goals)


def main():
    k_par, k_env, key = jax.random.split(jax.random.PRNGKey(SEED), 3)
    params = init(k_par)
    opt_state = tx.init(params)
    envs = jax.vmap(spawn)(jax.random.split(k_env, N_ENV))
    with open("metrics.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow("iteration loss policy_loss value_loss entropy goals_per_episode".split())
        for it in range(1, ITERATIONS + 1):
            key, sub = jax.random.split(key)
            params, opt_state, envs, stats = iteration(params, opt_state, envs, sub)
            row = [float(s) for s in stats]
            out.writerow([it] + [f"{v:.5f}" for v in row])
            if it % 20 == 0 or it == 1:
                print("iter {:4d}  loss {:+.4f}  policy {:+.4f}  value {:.4f}  entropy {:.3f}  goals/episode {:.2f}".format(it, *row), flush=True)


if __name__ == "__main__":
    main()
