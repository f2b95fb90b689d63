import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from events import SessionTable


class IntentModel(nn.Module):
    def __init__(self, pages=25, d=16, h=48):
        super().__init__()
        self.page = nn.Embedding(pages, d)
        self.time = nn.Linear(1, d)
        self.rnn = nn.GRU(2 * d, h, batch_first=True)
        self.cls = nn.Sequential(nn.Dropout(0.1), nn.Linear(2 * h, 1))

    def forward(self, dwell, pages):
        z = torch.cat([self.page(pages), torch.relu(self.time(dwell.unsqueeze(-1)))], -1)
        o, _ = self.rnn(z)
        return self.cls(torch.cat([o.amax(1), o.mean(1)], -1)).squeeze(-1)


def loop(model, loader, opt=None):
    model.train(opt is not None)
    loss_sum, hits, seen = 0.0, 0, 0
    with torch.set_grad_enabled(opt is not None):
        for dwell, pages, buy in loader:
            logit = model(dwell, pages)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, buy)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
            loss_sum += loss.item() * len(buy)
            hits += ((logit > 0).float() == buy).sum().item()
            seen += len(buy)
    return loss_sum / seen, hits / seen


def main():
    torch.manual_seed(40)
    tr = DataLoader(SessionTable(3000, 1), 64, shuffle=True)
    va = DataLoader(SessionTable(800, 2), 200)
    net = IntentModel()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
    print("epoch;tr_logloss;tr_hit;va_logloss;va_hit")
    best = 0.0
    for e in range(10):
        a, b = loop(net, tr, opt)
        c, d = loop(net, va)
        best = max(best, d)
        print(f"{e};{a:.4f};{b:.3f};{c:.4f};{d:.3f}")
    print(f"best va_hit {best:.3f}")


if __name__ == "__main__":
    main()
