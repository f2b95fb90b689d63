"""Second-stage fine-tuning: pre-train on the big source shop, then adapt to a near-identical second shop."""
import logging
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

fmt = logging.Formatter("%(asctime)s | %(levelname)-8s | %(funcName)s:%(lineno)d - %(message)s")
hdl = logging.StreamHandler(sys.stdout)
hdl.setFormatter(fmt)
logger = logging.getLogger("stage2")
logger.addHandler(hdl)
logger.setLevel(logging.INFO)


def baskets(n, drift, seed):
    g = torch.Generator().manual_seed(15)
    w = torch.randn(40, 6, generator=g) / 3
    w = w + drift * torch.randn(40, 6, generator=torch.Generator().manual_seed(16))
    g = torch.Generator().manual_seed(seed)
    x = (torch.rand(n, 40, generator=g) < 0.25).float()
    y = torch.distributions.Categorical(logits=2.5 * (x @ w))
    torch.manual_seed(seed)
    return TensorDataset(x, y.sample())


def fit(net, ds, epochs, lr, every=0, tag=""):
    opt = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.0)
    loader = DataLoader(ds, 64, shuffle=True)
    n = 0
    for _ in range(epochs):
        net.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            n += 1
            if every and n % every == 0:
                logger.info("%s upd=%d nll=%.4f lr=%.1e", tag, n, loss.item(), lr)


@torch.no_grad()
def report(net, ds, tag):
    net.eval()
    out = net(ds.tensors[0])
    logger.info("%s: nll %.4f acc %.4f", tag, nn.functional.cross_entropy(out, ds.tensors[1]).item(),
                (out.argmax(1) == ds.tensors[1]).float().mean().item())


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(40, 48), nn.GELU(), nn.Linear(48, 6))
    fit(net, baskets(8000, 0.0, 1), epochs=5, lr=5e-3)
    new_train, new_val = baskets(2500, 0.06, 3), baskets(2000, 0.06, 4)
    logger.info("pre-trained weights ready, start of stage 2")
    report(net, new_val, "before stage 2")
    for r in range(4):
        fit(net, new_train, epochs=2, lr=1e-4, every=10, tag=f"round {r}")
        report(net, new_val, f"after round {r}")
