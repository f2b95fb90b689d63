import torch


def channel_flow(n, seed):
    """velocity [m/s], density [kg/m3], viscosity [uPa s], width [mm], roughness [um] -> log pressure loss"""
    g = torch.Generator().manual_seed(seed)
    u = torch.rand(n, 5, generator=g)
    lo = torch.tensor([0.5, 800.0, 400.0, 5.0, 1.0])
    hi = torch.tensor([6.0, 1200.0, 1600.0, 60.0, 40.0])
    x = lo + u * (hi - lo)
    vel, rho, mu, width, rough = x.T
    re = rho * vel * width * 1e-3 / (mu * 1e-6)
    friction = 0.316 * re.pow(-0.25) * (1 + 6 * rough / width / 10)
    y = torch.log(friction * rho * vel ** 2 / (2 * width * 1e-3))
    return x, y - 7.0
