"""Double DQN on the depot floor."""
import numpy as np

from agent import DoubleDQN, Replay
from depot import Depot

TOTAL, WARM, BATCH, SYNC = 9000, 500, 64, 250


def greedy_success(agent, episodes=60):
    env = Depot(seed=777)
    hits, steps = 0, []
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, _, found, cut = env.step(agent.act(obs, eps=0.0))
            done = found or cut
        hits += found
        steps.append(env.t)
    return hits / episodes, float(np.mean(steps))


def random_success(episodes=200):
    env, rng = Depot(seed=778), np.random.default_rng(0)
    hits = 0
    for _ in range(episodes):
        env.reset()
        done = False
        while not done:
            _, _, found, cut = env.step(int(rng.integers(4)))
            done = found or cut
        hits += found
    return hits / episodes


def main():
    env, agent, buf = Depot(seed=1), DoubleDQN(Depot.obs_dim, Depot.n_actions, seed=2), Replay(8000, seed=3)
    print(f"random policy: success {random_success():.2f}")
    obs, ep_ret, returns, losses, qs = env.reset(), 0.0, [], [], []
    for step in range(1, TOTAL + 1):
        eps = max(0.05, 1.0 - step / 5000)
        action = agent.act(obs, eps)
        nxt, reward, found, cut = env.step(action)
        buf.push(obs, action, reward, nxt, found)      # a time-out is not terminal
        ep_ret += reward
        obs = nxt
        if found or cut:
            returns.append(ep_ret)
            obs, ep_ret = env.reset(), 0.0
        if step > WARM and step % 2 == 0:
            loss, q = agent.learn(buf.draw(BATCH))
            losses.append(loss)
            qs.append(q)
        if step % SYNC == 0:
            agent.sync()
        if step % 1000 == 0:
            succ, length = greedy_success(agent)
            print(f"step {step:5d} | eps {eps:.2f} | ep_return {np.mean(returns[-40:]):+.3f} | "
                  f"td_loss {np.mean(losses[-400:]):.5f} | mean_q {np.mean(qs[-400:]):+.3f} | "
                  f"greedy success {succ:.2f} length {length:.1f}", flush=True)


if __name__ == "__main__":
    main()
