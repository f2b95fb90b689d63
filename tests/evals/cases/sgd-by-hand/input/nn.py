"""Two-layer perceptron with manual gradients."""
import numpy as np


class MLP:
    def __init__(self, sizes, rng):
        self.W = [rng.normal(0, np.sqrt(2 / a), (a, b)) for a, b in zip(sizes[:-1], sizes[1:])]
        self.b = [np.zeros(b) for b in sizes[1:]]

    def forward(self, x):
        acts = [x]
        for k, (W, b) in enumerate(zip(self.W, self.b)):
            x = x @ W + b
            if k < len(self.W) - 1:
                x = np.maximum(x, 0)
            acts.append(x)
        return acts

    def loss_and_grads(self, x, y):
        acts = self.forward(x)
        z = acts[-1] - acts[-1].max(1, keepdims=True)
        p = np.exp(z)
        p /= p.sum(1, keepdims=True)
        n = len(y)
        loss = -np.log(p[np.arange(n), y] + 1e-12).mean()
        d = p
        d[np.arange(n), y] -= 1
        d /= n
        gW, gb = [None] * len(self.W), [None] * len(self.W)
        for k in reversed(range(len(self.W))):
            gW[k] = acts[k].T @ d
            gb[k] = d.sum(0)
            if k:
                d = (d @ self.W[k].T) * (acts[k] > 0)
        return loss, gW, gb


class Momentum:
    def __init__(self, net, lr, mu=0.9, decay=0.15):
        self.net, self.lr, self.mu, self.decay = net, lr, mu, decay
        self.vW = [np.zeros_like(w) for w in net.W]
        self.vb = [np.zeros_like(b) for b in net.b]

    def start_epoch(self, epoch):
        self.lr = self.lr / (1.0 + self.decay * epoch)

    def step(self, gW, gb):
        for k in range(len(gW)):
            self.vW[k] = self.mu * self.vW[k] - self.lr * gW[k]
            self.vb[k] = self.mu * self.vb[k] - self.lr * gb[k]
            self.net.W[k] += self.vW[k]
            self.net.b[k] += self.vb[k]
