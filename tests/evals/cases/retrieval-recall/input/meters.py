import torch
import torch.distributed as dist


class RecallAtK:
    """Accumulates query/item embeddings over the validation set, all ranks together."""

    def __init__(self, k=5):
        self.k = k
        self.reset()

    def reset(self):
        self.query, self.item = [], []

    def update(self, query, item):
        self.query.append(query.detach())
        self.item.append(item.detach())

    def _collect(self, parts):
        mine = torch.cat(parts)
        world = dist.get_world_size() if dist.is_initialized() else 1
        if world == 1:
            return mine
        gathered = [torch.empty_like(mine) for _ in range(world)]
        dist.all_gather(gathered, mine)
        return torch.cat(gathered)

    def compute(self):
        q, it = self._collect(self.query), self._collect(self.item)
        top = (q @ it.T).topk(self.k, dim=1).indices
        truth = torch.arange(len(q))[:, None]
        return (top == truth).any(1).float().mean().item()
