"""A rate that falls with the share of the epochs, stepped in each batch."""
import torch
def main(model, loader, crit, epochs=30):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 1 - e / epochs)
    for e in range(epochs):
        for x, y in loader:
            opt.zero_grad(); crit(model(x), y).backward(); opt.step()
            sched.step()  # FAULT C110
