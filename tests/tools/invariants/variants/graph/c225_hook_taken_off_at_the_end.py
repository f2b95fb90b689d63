import torch
from torch import nn
class Grab:
    def __init__(self, net):
        self.acts = []
        self.handle = net.register_forward_hook(lambda m, i, o: self.acts.append(o))  # FAULT C225
    def off(self):
        self.handle.remove()
def fit(data):
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    g = Grab(net[1])
    for x, y in data:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    g.off()
