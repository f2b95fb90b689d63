import logging
import sys

import torch
import torch.nn.functional as F

from corpus import WORDS, WordBank
from network import SpottingNet

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("kws")

BASE = WORDS[:6]
BATCH = 32


@torch.no_grad()
def hit_rate(net, x, y):
    net.eval()
    r = (net(x).argmax(1) == y).float().mean().item()
    net.train()
    return r


class Session:
    def __init__(self, lr=1e-3):
        torch.manual_seed(5)
        self.bank = WordBank()
        self.net = SpottingNet(len(BASE))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=lr, weight_decay=1e-2)

    def fit(self, tag, words, epochs, per_word=60):
        x, y = self.bank.draw(words, per_word)
        dev = {w: self.bank.draw([w], 20) for w in words}
        for ep in range(epochs):
            perm = torch.randperm(len(x))
            total = 0.0
            for i in range(0, len(x), BATCH):
                idx = perm[i : i + BATCH]
                loss = F.cross_entropy(self.net(x[idx]), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(idx)
            rates = {w: hit_rate(self.net, *d) for w, d in dev.items()}
            old = sum(rates[w] for w in BASE) / len(BASE)
            new = [rates[w] for w in words if w not in BASE]
            msg = f"{tag} ep{ep:02d} ce={total / len(x):.5f} base_words={old:.3f}"
            if new:
                msg += f" new_words={sum(new) / len(new):.3f}"
            log.info(msg)

    def extend(self, words):
        self.net.add_words(len(words))
        self.net.hold_features()
        n = sum(p.numel() for p in self.net.parameters() if p.requires_grad)
        log.info("vocabulary now %d words, %d trainable weights", self.net.head.out_features, n)


def main():
    s = Session()
    log.info("stage A: %s", " ".join(BASE))
    s.fit("A", BASE, epochs=5)
    extra = WORDS[6:]
    log.info("stage B: adding %s", " ".join(extra))
    s.extend(extra)
    s.fit("B", BASE + extra, epochs=10)


if __name__ == "__main__":
    main()
