import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import jax, jax.numpy as jnp, optax
from functools import partial
tx = optax.sgd(0.1)
def loss_fn(p, x, y):
    return jnp.mean((x @ p - y) ** 2)
@partial(jax.pmap, axis_name="i")
def step(p, s, x, y):
    l, g = jax.value_and_grad(loss_fn)(p, x, y)
    u, s = tx.update(g, s, p)
    return optax.apply_updates(p, u), s, l  # FAULT C383
def main(batches, p, s):
    p, s = jax.device_put_replicated((p, s), jax.devices())
    for x, y in batches:
        p, s, l = step(p, s, x, y)
    return p
