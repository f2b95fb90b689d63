import torch


def citation_graph(n=700, classes=5, words=80, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    topic = torch.rand(classes, words, generator=g) * 0.55
    x = (torch.rand(n, words, generator=g) < topic[y] + 0.02).float()
    same = y[:, None] == y[None, :]
    prob = torch.where(same, 0.04, 0.003)
    a = (torch.rand(n, n, generator=g) < prob).float().triu(1)
    a = a + a.t() + torch.eye(n)
    perm = torch.randperm(n, generator=g)
    split = {"fit": perm[:350], "tune": perm[350:500], "rest": perm[500:]}
    return x, a, y, split
