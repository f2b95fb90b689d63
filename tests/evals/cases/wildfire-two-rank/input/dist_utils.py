import os
import torch
import torch.distributed as dist


def setup(rank, world, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)


def broadcast_model(model):
    for t in list(model.parameters()) + list(model.buffers()):
        dist.broadcast(t.data, 0)


def average_gradients(model):
    world = dist.get_world_size()
    for p in model.parameters():
        if p.grad is None:
            continue
        dist.all_reduce(p.grad)
        p.grad /= world


def mean_scalar(v):
    t = torch.tensor(float(v))
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()
