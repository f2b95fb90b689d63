"""Previous attempt: end-to-end fine-tuning (superseded by train_probe.py)."""
import torch
from torch import nn

from calls import clips
from encoder import CallEncoder

if __name__ == "__main__":
    enc = CallEncoder()
    enc.load_state_dict(torch.load("encoder.pt"))
    net = nn.Sequential(enc, nn.Linear(64, 5))
    opt = torch.optim.SGD(net.parameters(), lr=0.5)
    x, y = clips(600, 60)
    for step in range(200):
        idx = torch.randint(len(x), (32,))
        loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, loss.item())
