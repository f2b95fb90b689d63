import torch

import deploy
from cases import channel_flow
from surrogate import Surrogate


def fit(epochs=40, bs=128):
    x, y = channel_flow(3000, 1)
    xv, yv = channel_flow(600, 2)
    net = Surrogate()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.95)
    for e in range(1, epochs + 1):
        net.train()
        for i in torch.randperm(len(x)).split(bs):
            loss = torch.nn.functional.mse_loss(net(x[i]), y[i])
            opt.zero_grad(); loss.backward(); opt.step()
        sched.step()
        net.eval()
        if e % 5 == 0:
            print(f"{e:3d}/{epochs}  mse={loss.item():.5f}  R2(val)={deploy.r2(net, xv, yv):.4f}")
    torch.save({"model": net.state_dict(), "optimizer": opt.state_dict(), "epoch": epochs}, "surrogate.pt")
    return xv, yv


if __name__ == "__main__":
    torch.manual_seed(10)
    xv, yv = fit()
    served = deploy.load("surrogate.pt")
    print(f"deploy: R2(val)={deploy.r2(served, xv, yv):.4f}  prediction mean={served(xv).mean():.3f} target mean={yv.mean():.3f}")
