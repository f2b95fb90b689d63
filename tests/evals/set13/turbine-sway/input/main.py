import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from series import features, read


class SwayModel(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, x):
        return self.body(x)[:, 0]

    def training_step(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self(x), y)


class Trainer:
    def __init__(self, max_epochs, lr):
        self.max_epochs, self.lr = max_epochs, lr

    def fit(self, model, train, val):
        opt = torch.optim.Adam(model.parameters(), self.lr)
        sch = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
        for ep in range(self.max_epochs):
            model.train(); tot = 0.0
            for batch in train:
                loss = model.training_step(batch)
                opt.zero_grad(); loss.backward(); opt.step()
                tot += loss.item()
            sch.step()
            if ep % 3 == 2:
                print(f"Epoch {ep:>2}: train_loss={tot/len(train):.4f} val_r2={self.r2(model, val):.4f}", flush=True)

    @torch.no_grad()
    def r2(self, model, val):
        model.eval()
        x, y = (torch.cat(c) for c in zip(*val))
        return (1 - (model(x) - y).square().sum() / (y - y.mean()).square().sum()).item()


if __name__ == "__main__":
    torch.manual_seed(0); torch.set_num_threads(1)
    t, wind, sway = read("scada.csv")
    y = torch.from_numpy((sway - sway.mean()) / sway.std())
    ds = TensorDataset(features(t, wind), y)
    tr, va = random_split(ds, [0.85, 0.15], generator=torch.Generator().manual_seed(1))
    model = SwayModel(ds.tensors[0].shape[1])
    print(f"{len(tr)} / {len(va)} samples, {ds.tensors[0].shape[1]} features, target variance {y.square().mean():.3f}")
    Trainer(15, 3e-3).fit(model, DataLoader(tr, 128, shuffle=True), DataLoader(va, 512))
