import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from accelerate import Accelerator
def main(net, ds, vs):
    acc = Accelerator()
    opt = torch.optim.Adam(net.parameters())
    tl, vl = DataLoader(ds, 16, shuffle=True), DataLoader(vs, 16)
    net, opt, tl, vl = acc.prepare(net, opt, tl, vl)
    for e in range(10):
        for x, y in tl:
            opt.zero_grad()
            acc.backward(nn.functional.cross_entropy(net(x), y))
            opt.step()
        right = seen = 0
        with torch.no_grad():
            for x, y in vl:
                p, t = acc.gather_for_metrics((net(x).argmax(1), y))
                right += (p == t).sum().item()
                seen += t.numel()
        acc.print(e, right / seen)
        acc.save(acc.unwrap_model(net).state_dict(), "x.pt")
        if acc.is_main_process:
            torch.save(acc.unwrap_model(net).state_dict(), "y.pt")
        acc.wait_for_everyone()
