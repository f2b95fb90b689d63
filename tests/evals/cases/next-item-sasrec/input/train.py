import math

import torch
import torch.nn as nn

from options import Options

opt = Options("config.yaml")
ITEMS, HIST = opt.get("data.items"), opt.get("data.history")


def histories(n, seed):
    """Markov shoppers: from each item there are three likely successors."""
    ref = torch.Generator().manual_seed(55)
    succ = torch.randint(1, ITEMS, (ITEMS, 3), generator=ref)
    g = torch.Generator().manual_seed(seed)
    seq = torch.zeros(n, HIST + 1, dtype=torch.long)
    seq[:, 0] = torch.randint(1, ITEMS, (n,), generator=g)
    for t in range(1, HIST + 1):
        pick = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), n, replacement=True, generator=g)
        nxt = succ[seq[:, t - 1], pick]
        stray = torch.rand(n, generator=g) < 0.05
        seq[:, t] = torch.where(stray, torch.randint(1, ITEMS, (n,), generator=g), nxt)
    return seq


class NextItem(nn.Module):
    def __init__(self):
        super().__init__()
        d = opt.get("model.width", 64)
        self.item = nn.Embedding(ITEMS, d)
        self.pos = nn.Parameter(torch.zeros(HIST, d))
        layer = nn.TransformerEncoderLayer(d, opt.get("model.heads", 2), 2 * d, dropout=0.1, batch_first=True)
        self.stack = nn.TransformerEncoder(layer, opt.get("model.blocks", 2))
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(HIST))
        self.out = nn.Linear(d, ITEMS)

    def forward(self, s):
        return self.out(self.stack(self.item(s) + self.pos, mask=self.causal, is_causal=True))


@torch.no_grad()
def ndcg10(net, seq):
    net.eval()
    logits = net(seq[:, :-1])[:, -1]
    truth = logits.gather(1, seq[:, -1:])
    rank = (logits > truth).sum(1)
    net.train()
    return torch.where(rank < 10, 1 / torch.log2(rank + 2.0), torch.zeros(())).mean().item()


def main():
    torch.manual_seed(opt.get("training.seed", 0))
    train, held = histories(opt.get("data.users"), 1), histories(300, 2)
    net = NextItem()
    optimizer = torch.optim.Adam(
        net.parameters(), lr=opt.get("training.lr", 0.1), weight_decay=opt.get("training.weight_decay", 0.0)
    )
    print(f"config: {opt.tree}")
    print(f"uniform guess: {math.log(ITEMS):.3f} nats")
    bs = opt.get("training.batch_size", 128)
    for e in range(1, opt.get("training.epochs", 5) + 1):
        tot = n = 0
        for idx in torch.randperm(len(train)).split(bs):
            s = train[idx]
            loss = nn.functional.cross_entropy(net(s[:, :-1]).reshape(-1, ITEMS), s[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            tot += loss.item() * len(idx)
            n += len(idx)
        print(f"e{e} nats/item={tot / n:.3f} ndcg@10={ndcg10(net, held):.4f}")


if __name__ == "__main__":
    main()
