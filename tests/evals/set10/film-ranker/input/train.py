# Film ranking: two embedding tables, sampled softmax, HR@10 against 99 films
# the user has never watched.  Every (user, film) pair is a first view.
import csv, collections
import numpy as np, torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)

DIM, EPOCHS, BATCH, NEG = 48, 16, 512, 32


def read(fn):
    with open(fn) as f:
        r = csv.reader(f); next(r)
        return np.array([(int(a), int(b)) for a, b in r])


train, valid, fresh = read('train.csv'), read('valid.csv'), read('week14.csv')
everything = np.concatenate([train, valid, fresh])
n_user, n_film = everything.max(0) + 1
watched = collections.defaultdict(set)
for u, i in everything:
    watched[int(u)].add(int(i))
print(f'{n_user} users  {n_film} films  train {len(train)}  valid {len(valid)}  week14 {len(fresh)}')


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(n_user, DIM)
        self.film = nn.Embedding(n_film, DIM)
        self.bias = nn.Embedding(n_film, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.film.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, films):            # u (B,)   films (B, K)
        eu = self.user(u).unsqueeze(1)
        ei = self.film(films)
        return (eu * ei).sum(-1) + self.bias(films).squeeze(-1)


def candidates(pairs, seed=7):
    """held-out film in column 0, then 99 unseen ones"""
    g = np.random.default_rng(seed)
    out = np.zeros((len(pairs), 100), dtype=np.int64)
    for k, (u, i) in enumerate(pairs):
        pool = np.setdiff1d(np.arange(n_film), list(watched[int(u)]))
        out[k, 0] = i
        out[k, 1:] = g.choice(pool, 99, replace=False)
    return torch.from_numpy(pairs[:, 0].copy()), torch.from_numpy(out)


@torch.no_grad()
def hit_rate(model, cand, k=10):
    u, films = cand
    s = model(u, films)
    rank = (s[:, 1:] >= s[:, :1]).sum(1)
    hr = (rank < k).float().mean().item()
    ndcg = torch.where(rank < k, 1 / torch.log2(rank.float() + 2), torch.zeros(())).mean().item()
    return hr, ndcg


valid_c, fresh_c = candidates(valid), candidates(fresh, seed=8)
model = Ranker()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
u_all = torch.from_numpy(train[:, 0].copy())
i_all = torch.from_numpy(train[:, 1].copy())

for epoch in range(EPOCHS):
    perm = torch.randperm(len(u_all))
    run = []
    for j in range(0, len(perm), BATCH):
        sel = perm[j:j + BATCH]
        neg = torch.from_numpy(rng.integers(0, n_film, (len(sel), NEG)))
        films = torch.cat([i_all[sel, None], neg], 1)
        logits = model(u_all[sel], films)
        # a sampled film may be the positive itself: mask these
        logits[:, 1:] = logits[:, 1:].masked_fill(neg == i_all[sel, None], -1e9)
        loss = nn.functional.cross_entropy(logits, torch.zeros(len(sel), dtype=torch.long))
        reg = 1e-4 * (model.user(u_all[sel]).pow(2).sum(-1) + model.film(i_all[sel]).pow(2).sum(-1)).mean()
        opt.zero_grad(); (loss + reg).backward(); opt.step()
        run.append(loss.item())
    hr, nd = hit_rate(model, valid_c)
    print(f'epoch {epoch:2d}  loss {np.mean(run):.4f}  valid HR@10 {hr:.3f}  NDCG@10 {nd:.3f}')

hr, nd = hit_rate(model, fresh_c)
print(f'week14    HR@10 {hr:.3f}  NDCG@10 {nd:.3f}')
