"""Speaker verification embeddings with BatchNorm head (accelerate)."""
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Embedder(nn.Module):
    def __init__(self, mel=24, emb=32, speakers=20):
        super().__init__()
        self.frame = nn.Sequential(nn.Conv1d(mel, 48, 5, padding=2), nn.ReLU(), nn.Conv1d(48, 48, 3, padding=1), nn.ReLU())
        self.bottleneck = nn.Sequential(nn.Linear(48, emb), nn.BatchNorm1d(emb))
        self.classify = nn.Linear(emb, speakers)

    def forward(self, x):
        return self.classify(self.bottleneck(self.frame(x).mean(-1)))


def utterances(n=961, speakers=20):
    g = torch.Generator().manual_seed(10)
    voice = torch.randn(speakers, 24, generator=g)
    who = torch.randint(0, speakers, (n,), generator=g)
    return TensorDataset(voice[who].unsqueeze(-1) + torch.randn(n, 24, 30, generator=g), who)


def main():
    set_seed(10)
    acc = Accelerator(cpu=True)
    model = Embedder()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = DataLoader(utterances(), batch_size=32, shuffle=True)
    model, opt, loader = acc.prepare(model, opt, loader)
    acc.print(f"***** Running training *****\n  Num examples = {len(loader.dataset)}\n  Batches per epoch = {len(loader)}")
    for epoch in range(4):
        model.train()
        for i, (x, who) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), who)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            if i % 10 == 0:
                acc.print(f"epoch {epoch} batch {i}: aam={loss.item():.4f}")
        acc.print(f"epoch {epoch} finished")


if __name__ == "__main__":
    main()
