import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from stays import CODES, MAX_EVENTS, Stays, collate

torch.manual_seed(0)


class StayEncoder(nn.Module):
    def __init__(self, d=48, heads=4, depth=2):
        super().__init__()
        self.code = nn.Embedding(CODES, d)
        self.pos = nn.Embedding(MAX_EVENTS + 1, d)
        self.summary = nn.Parameter(torch.randn(1, 1, d) * 0.02)
        block = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.risk = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 1))

    def forward(self, events, observed):
        b, t = events.shape
        h = torch.cat([self.summary.expand(b, -1, -1), self.code(events)], dim=1)
        h = h + self.pos(torch.arange(t + 1))
        ones = torch.ones(b, 1, dtype=torch.bool)
        key_mask = torch.cat([ones, observed], dim=1)
        h = self.blocks(h, src_key_padding_mask=key_mask)
        return self.risk(h[:, 0]).squeeze(-1)


def auroc(score, y):
    order = score.argsort()
    rank = torch.empty_like(score)
    rank[order] = torch.arange(1, len(score) + 1, dtype=score.dtype)
    pos = y.sum()
    return ((rank[y == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos))).item()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    s, y = [], []
    for events, observed, label in loader:
        s.append(model(events, observed))
        y.append(label)
    s, y = torch.cat(s), torch.cat(y)
    bce = nn.functional.binary_cross_entropy_with_logits(s, y).item()
    return bce, auroc(s, y)


def run():
    train = DataLoader(Stays(2400, 1), batch_size=48, shuffle=True, collate_fn=collate)
    held = DataLoader(Stays(500, 2), batch_size=100, collate_fn=collate)
    model = StayEncoder()
    optim = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    crit = nn.BCEWithLogitsLoss()
    for epoch in range(1, 9):
        model.train()
        agg = n = 0
        for events, observed, label in train:
            loss = crit(model(events, observed), label)
            optim.zero_grad()
            loss.backward()
            g = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optim.step()
            agg += loss.item() * len(label)
            n += len(label)
        vb, va = evaluate(model, held)
        print(f"epoch={epoch} train_bce={agg / n:.4f} held_bce={vb:.4f} held_auroc={va:.3f} last_grad={g:.3f}")


if __name__ == "__main__":
    run()
