import logging
import sys
import torch
from torch import nn

logging.basicConfig(stream=sys.stdout, format="[%(name)s] %(message)s", level=logging.INFO)
log = logging.getLogger("molprop")
torch.manual_seed(0)
ATOM_TYPES, MAX_ATOMS = 5, 9


def random_molecules(n):
    sizes = torch.randint(5, MAX_ATOMS + 1, (n,))
    kind = torch.randint(0, ATOM_TYPES, (n, MAX_ATOMS))
    pos = 1.8 * torch.randn(n, MAX_ATOMS, 3)
    mask = torch.arange(MAX_ATOMS)[None] < sizes[:, None]
    pair = mask[:, :, None] & mask[:, None, :] & ~torch.eye(MAX_ATOMS, dtype=torch.bool)
    dist = torch.cdist(pos, pos)
    charge = torch.linspace(-1, 1, ATOM_TYPES)[kind]
    energy = (charge[:, :, None] * charge[:, None, :] * torch.exp(-dist) * pair).sum((1, 2))
    return kind, pos, mask, energy


def pair_distance(pos):
    delta = pos[:, :, None, :] - pos[:, None, :, :]
    return (delta ** 2).sum(-1).sqrt()


class EnergyNet(nn.Module):
    def __init__(self, dim=32, n_rbf=16):
        super().__init__()
        self.embed = nn.Embedding(ATOM_TYPES, dim)
        self.register_buffer("centres", torch.linspace(0, 6, n_rbf))
        self.offset = nn.Linear(dim, 3)
        self.filter = nn.Linear(n_rbf, dim)
        self.update = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.readout = nn.Linear(dim, 1)

    def forward(self, kind, pos, mask):
        h = self.embed(kind)
        pos = pos + 0.1 * torch.tanh(self.offset(h))       # learned site correction
        dist = pair_distance(pos)
        rbf = torch.exp(-(dist[..., None] - self.centres) ** 2)
        pair = mask[:, :, None] & mask[:, None, :] & ~torch.eye(MAX_ATOMS, dtype=torch.bool)
        for _ in range(2):
            message = self.filter(rbf) * h[:, None]
            h = h + self.update(message.masked_fill(~pair[..., None], 0.0).sum(2))
        return (self.readout(h).squeeze(-1) * mask).sum(1)


kind, pos, mask, energy = random_molecules(1500)
net = EnergyNet()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
log.info("%d molecules, energy mean %.3f std %.3f", len(energy), energy.mean(), energy.std())
for step in range(60):
    idx = torch.randint(0, len(energy), (64,))
    pred = net(kind[idx], pos[idx], mask[idx])
    loss = nn.functional.l1_loss(pred, energy[idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step < 5 or step % 10 == 0:
        log.info("step %d loss %.4f pred range [%.3f, %.3f]", step, loss, pred.min(), pred.max())
