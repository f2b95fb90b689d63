"""Depot floor: fetch the parcel at P, then carry it to the dock at D."""

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


class DepotEnv:
    n_actions = len(MOVES)

    def __init__(self, path, max_steps, reward_delivery):
        with open(path) as fh:
            self.rows = [line.rstrip("\n") for line in fh if line.strip()]
        where = {ch: (i, j) for i, row in enumerate(self.rows) for j, ch in enumerate(row)}
        self.start, self.parcel, self.dock = where["S"], where["P"], where["D"]
        self.max_steps = max_steps
        self.reward_delivery = reward_delivery

    def reset(self):
        self.pos, self.loaded, self.t = self.start, False, 0
        return (*self.pos, self.loaded)

    def step(self, action):
        self.t += 1
        di, dj = MOVES[action]
        ni, nj = self.pos[0] + di, self.pos[1] + dj
        if self.rows[ni][nj] != "#":
            self.pos = (ni, nj)
        if self.pos == self.parcel:
            self.loaded = True
        delivered = self.loaded and self.pos == self.dock
        reward = self.reward_delivery if delivered else 0.0
        truncated = not delivered and self.t >= self.max_steps
        return (*self.pos, self.loaded), reward, delivered, truncated
