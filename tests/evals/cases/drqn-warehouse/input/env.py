import torch


class ShelfWalk:
    """64 small pick-and-place lanes run side by side; only the last crossing is observed."""

    n_obs, n_act = 12, 3

    def __init__(self, n, seed=0):
        self.n = n
        self.g = torch.Generator().manual_seed(seed)
        self.proj = torch.randn(7, self.n_obs, generator=self.g)
        self.pos = torch.randint(0, 7, (n,), generator=self.g)
        self.goal = torch.randint(0, 7, (n,), generator=self.g)
        self.t = 0

    def observe(self):
        noise = 0.3 * torch.randn(self.n, self.n_obs, generator=self.g)
        return self.proj[self.pos] + 0.5 * self.proj[self.goal] + noise

    def step(self, act):
        self.pos = (self.pos + act - 1).clamp(0, 6)
        hit = self.pos == self.goal
        reward = hit.float() - 0.05
        new_goal = torch.randint(0, 7, (self.n,), generator=self.g)
        self.goal = torch.where(hit, new_goal, self.goal)
        self.t += 1
        return self.observe(), reward
