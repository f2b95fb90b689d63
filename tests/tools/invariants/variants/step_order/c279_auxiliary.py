import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net, head = nn.Linear(6, 6).cuda(), nn.Linear(6, 3).cuda()
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
scaler = torch.amp.GradScaler("cuda")


def losses(x, y):
    z = net(x)
    return nn.functional.cross_entropy(head(z), y), z.square().mean()


for x, y in batches():
    opt.zero_grad()
    main, extra = losses(x.cuda(), y.cuda())
    scaler.scale(main).backward(retain_graph=True)
    (0.01 * extra).backward()  # FAULT C279
    scaler.step(opt)
    scaler.update()
