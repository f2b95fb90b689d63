import argparse
import csv
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

def parse():
    p = argparse.ArgumentParser(description="patch transformer on synthetic glyphs")
    p.add_argument("--max-epoch", type=int, default=12)
    p.add_argument("--max-sentences", type=int, default=40)
    p.add_argument("--lr", type=float, default=1.5e-3)
    p.add_argument("--warmup-updates", type=int, default=10)
    p.add_argument("--hidden", type=int, default=48)
    return p.parse_args()

class PatchNet(nn.Module):
    def __init__(self, hidden, classes):
        super().__init__()
        self.patch = nn.Conv2d(1, hidden, 4, stride=4)
        self.pos = nn.Parameter(torch.zeros(1, 16, hidden))
        enc = nn.TransformerEncoderLayer(hidden, 4, 2 * hidden, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(enc, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        return self.fc(self.enc(h).mean(1))

def glyphs(n=1440, classes=12):
    g = torch.Generator().manual_seed(8)
    proto = (torch.rand(classes, 1, 16, 16, generator=g) < 0.3).float()
    y = torch.randint(0, classes, (n,), generator=g)
    x = proto[y]

    return TensorDataset(x + 0.7 * torch.randn(x.shape, generator=g), y)

def main():
    args = parse()
    torch.manual_seed(2)
    train_set, valid_set = random_split(glyphs(), [1200, 240])
    train_itr = DataLoader(train_set, args.max_sentences, shuffle=True)
    valid_itr = DataLoader(valid_set, args.max_sentences)
    net = PatchNet(args.hidden, 12)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr, betas=(0.9, 0.98))
    total = len(valid_itr) * args.max_epoch
    warm = args.warmup_updates
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda n: min((n + 1) / warm, max(0.0, (total - n) / (total - warm))))
    crit = nn.CrossEntropyLoss()
    with open("metrics.csv", "w", newline="") as fh:
        w = csv.DictWriter(fh, ["epoch", "num_updates", "train_loss", "valid_loss", "lr"])
        w.writeheader()
        updates = 0
        for epoch in range(1, args.max_epoch + 1):
            net.train()
            s = 0.0
            for x, y in train_itr:
                opt.zero_grad()
                loss = crit(net(x), y)
                loss.backward()
                opt.step()
                sched.step()
                updates += 1
                s += loss.item()
            net.eval()
            with torch.no_grad():
                v = [(crit(net(x), y).item(), (net(x).argmax(1) == y).float().mean().item()) for x, y in valid_itr]
            vl, va = (sum(c) / len(v) for c in zip(*v))
            lr = opt.param_groups[0]["lr"]
            print(f"| epoch {epoch:03d} | loss {s / len(train_itr):.3f} | num_updates {updates} | lr {lr:.6g} | "
                  f"wps 0 | ups {updates / epoch:.1f}")
            print(f"| epoch {epoch:03d} | valid on 'valid' subset | loss {vl:.3f} | accuracy {100 * va:.2f} | "
                  f"num_updates {updates}")
            w.writerow(dict(epoch=epoch, num_updates=updates, train_loss=round(s / len(train_itr), 4),
                            valid_loss=round(vl, 4), lr=lr))

if __name__ == "__main__":
    main()
