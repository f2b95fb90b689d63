import torch
import yaml
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

from mdn import InverseArm, neg_log_density


def arm(n, seed, noise):
    g = torch.Generator().manual_seed(seed)
    a = 0.3 + 1.2 * torch.rand(n, generator=g)
    b = (torch.rand(n, generator=g) * 2 - 1) * 2.2
    pos = torch.stack([0.8 * a.cos() + 0.4 * (a + b).cos(), 0.8 * a.sin() + 0.4 * (a + b).sin()], 1)
    return TensorDataset(pos + noise * torch.randn(pos.shape, generator=g), a)


conf = yaml.safe_load(open("conf.yaml"))
set_seed(conf["seed"])
accelerator = Accelerator(cpu=True)
train = DataLoader(arm(2500, 0, conf["mixed_noise"]), batch_size=conf["batch_size"], shuffle=True)
held = DataLoader(arm(600, 1, conf["mixed_noise"]), batch_size=500)
model = InverseArm(conf["hidden"], conf["n_components"])
opt = torch.optim.AdamW(model.parameters(), lr=conf["max_lr"])
sched = torch.optim.lr_scheduler.OneCycleLR(opt, conf["max_lr"], epochs=conf["epochs"], steps_per_epoch=len(train))
model, opt, train, held, sched = accelerator.prepare(model, opt, train, held, sched)

for epoch in range(conf["epochs"]):
    model.train()
    nll, n = 0.0, 0
    for pos, angle in train:
        loss = neg_log_density(model(pos), angle).mean()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        sched.step()
        opt.zero_grad()
        nll, n = nll + loss.item() * len(angle), n + len(angle)
    model.eval()
    with torch.no_grad():
        val = torch.cat([accelerator.gather_for_metrics(neg_log_density(model(p), a)) for p, a in held]).mean().item()
    accelerator.print(f"epoch {epoch:02d}: loss={nll / n:+.4f} val_loss={val:+.4f} lr={sched.get_last_lr()[0]:.5f}")
