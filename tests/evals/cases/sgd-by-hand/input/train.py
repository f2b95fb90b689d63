import sys

import numpy as np

from nn import MLP, Momentum


def spirals(n_per_arm, arms, rng, noise=0.14):
    xs, ys = [], []
    for a in range(arms):
        r = np.linspace(0.1, 1, n_per_arm)
        th = 4.2 * r + 2 * np.pi * a / arms + rng.normal(0, noise, n_per_arm)
        xs.append(np.c_[r * np.sin(th), r * np.cos(th)])
        ys.append(np.full(n_per_arm, a))
    return np.concatenate(xs), np.concatenate(ys)


def run(epochs=60, batch=50, seed=0, out=sys.stdout):
    rng = np.random.default_rng(seed)
    x, y = spirals(400, 5, rng)
    xt, yt = spirals(120, 5, rng)
    net = MLP([2, 64, 64, 5], rng)
    opt = Momentum(net, lr=0.02)
    hist = []
    for epoch in range(1, epochs + 1):
        opt.start_epoch(epoch)
        perm = rng.permutation(len(x))
        losses = []
        before = [w.copy() for w in net.W]
        for i in range(0, len(x), batch):
            j = perm[i:i + batch]
            loss, gW, gb = net.loss_and_grads(x[j], y[j])
            opt.step(gW, gb)
            losses.append(loss)
        moved = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(before, net.W)))
        acc = (net.forward(xt)[-1].argmax(1) == yt).mean()
        hist.append((epoch, np.mean(losses), acc))
        if epoch % 4 == 0:
            out.write(f"epoch {epoch:2d}  loss={np.mean(losses):.4f}  test_acc={acc:.3f}  moved={moved:.2e}\n")
    np.savetxt("history.csv", hist, delimiter=",", header="epoch,loss,test_acc", comments="", fmt="%.5f")


if __name__ == "__main__":
    run()
