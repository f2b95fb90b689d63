import numpy as np
import torch
import torch.nn as nn

from features import build


def appointments(n, rng):
    lead = rng.integers(0, 60, n)
    age = rng.integers(18, 90, n)
    hour = rng.integers(8, 18, n)
    sms = rng.integers(0, 2, n)
    logit = 0.045 * (lead - 30) - 0.6 * sms - 0.02 * (age - 50) - 0.4
    return {
        "lead_days": lead, "age": age, "hour": hour, "sms": sms,
        "patient": rng.integers(0, 2500, n), "doctor": rng.integers(0, 12, n), "street": rng.integers(0, 1500, n),
        "noshow": (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int),
    }


def auc(score, y):
    rank = score.argsort().argsort().astype(float) + 1
    pos = y > 0.5
    return (rank[pos].sum() - pos.sum() * (pos.sum() + 1) / 2) / (pos.sum() * (~pos).sum())


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, x):
        return self.body(x).squeeze(-1)


def score(model, x):
    model.eval()
    with torch.no_grad():
        return torch.sigmoid(model(torch.from_numpy(x))).numpy()


def main():
    rng = np.random.default_rng(11)
    torch.manual_seed(11)
    history = appointments(4000, rng)
    x, y = build(history)
    order = rng.permutation(len(y))
    tr, va = order[:3000], order[3000:]
    mean, std = x[tr].mean(0), x[tr].std(0)
    x = (x - mean) / std

    # the next month, delivered later: categories take the rates known from the history
    month = appointments(1500, rng)
    from features import CATEGORICAL, NUMERIC, encode_category
    cols = [month[c].astype(np.float32) for c in NUMERIC]
    for c in CATEGORICAL:
        mapping, base = encode_category(history[c], history["noshow"])
        cols.append(np.array([mapping.get(v, base) for v in month[c]], dtype=np.float32))
    xm, ym = (np.stack(cols, 1) - mean) / std, month["noshow"]

    model = Net(x.shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
    lossf = nn.BCEWithLogitsLoss()
    xt, yt = torch.from_numpy(x[tr]), torch.from_numpy(y[tr])
    for epoch in range(12):
        model.train()
        perm = torch.randperm(len(xt))
        total = 0.0
        for i in range(0, len(perm), 100):
            b = perm[i:i + 100]
            loss = lossf(model(xt[b]), yt[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"[{epoch:02d}] train bce={total / (len(perm) / 100):.4f} val auc={auc(score(model, x[va]), y[va]):.3f}")
    print(f"next month: auc={auc(score(model, xm.astype(np.float32)), ym):.3f} on {len(ym)} appointments")


if __name__ == "__main__":
    main()
