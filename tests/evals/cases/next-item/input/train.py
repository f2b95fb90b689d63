import numpy as np
import torch
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from ranker import SessionRanker
from sessions import PAD, simulate_sessions, windows

N_ITEMS, WIDTH, EPOCHS, BATCH = 300, 6, 10, 256


def hit_rate(model, history, target):
    top = model.top_k(torch.as_tensor(history))
    return (top == torch.as_tensor(target)[:, None]).any(1).float().mean().item()


def replay(model, sessions):
    """What the serving job does: cut the last click, ask for recommendations, compare."""
    model.eval()
    hist, clicked = [], []
    for s in sessions:
        seen = s[:-1][-WIDTH:]
        hist.append([PAD] * (WIDTH - len(seen)) + seen)
        clicked.append(s[-1])
    return hit_rate(model, hist, clicked)


if __name__ == "__main__":
    torch.manual_seed(11)
    rng = np.random.default_rng(11)
    sessions = simulate_sessions(1100, N_ITEMS, rng)
    train_s, val_s, live_s = sessions[:800], sessions[800:950], sessions[950:]
    X, y = windows(train_s, WIDTH)
    Xv, yv = windows(val_s, WIDTH)
    print(f"{len(X)} train windows / {len(Xv)} validation windows / {len(live_s)} replay sessions")
    model = SessionRanker(N_ITEMS)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for ep in range(EPOCHS):
        model.train()
        order = rng.permutation(len(X))
        bar = tqdm(range(0, len(X), BATCH), desc=f"ep {ep}", ncols=90, mininterval=30)
        tot = 0.0
        for i in bar:
            idx = order[i:i + BATCH]
            loss = cross_entropy(model(torch.as_tensor(X[idx])), torch.as_tensor(y[idx]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(idx)
        model.eval()
        print(f"ep {ep}: loss {tot / len(X):.4f}  HR@10 train {hit_rate(model, X[:2000], y[:2000]):.4f}  HR@10 valid {hit_rate(model, Xv, yv):.4f}")
    print(f"replay HR@10 on {len(live_s)} sessions: {replay(model, live_s):.4f}")
