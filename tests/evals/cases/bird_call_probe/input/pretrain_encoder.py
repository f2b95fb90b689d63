"""Self-supervised step (ran once): denoising autoencoder on unlabelled recordings -> encoder.pt"""
import torch
from torch import nn

from calls import clips
from encoder import CallEncoder

if __name__ == "__main__":
    torch.manual_seed(0)
    x = clips(2000, 50, labelled=False)
    enc, dec = CallEncoder(), nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 32 * 40))
    opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 2e-3)
    for epoch in range(10):
        for idx in torch.randperm(len(x)).split(100):
            noisy = x[idx] * (torch.rand_like(x[idx]) > 0.3)
            loss = nn.functional.mse_loss(dec(enc(noisy)), x[idx].flatten(1))
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item())
    torch.save(enc.state_dict(), "encoder.pt")
