import torch
import torch.nn as nn
import torch.nn.functional as F

from graph import citation_graph


class Attend(nn.Module):
    def __init__(self, i, o, heads):
        super().__init__()
        self.lin = nn.Linear(i, o * heads, bias=False)
        self.src = nn.Parameter(torch.randn(heads, o) * 0.1)
        self.dst = nn.Parameter(torch.randn(heads, o) * 0.1)
        self.heads, self.o = heads, o

    def forward(self, x, adj):
        n = len(x)
        h = self.lin(x).view(n, self.heads, self.o)
        score = (h * self.src).sum(-1)[:, None] + (h * self.dst).sum(-1)[None, :]
        score = F.leaky_relu(score, 0.2).masked_fill(adj[..., None] == 0, float("-inf"))
        w = score.softmax(dim=1)
        return torch.einsum("ijh,jho->iho", w, h).reshape(n, -1)


class Gat(nn.Module):
    def __init__(self, words, classes, table):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(table, freeze=True)
        self.a1 = Attend(words + table.shape[1], 8, 4)
        self.a2 = Attend(32, classes, 1)

    def forward(self, x, adj):
        avg = x @ self.words.weight / x.sum(1, keepdim=True).clamp(min=1)
        h = F.dropout(torch.cat([x, avg], 1), 0.5, self.training)
        h = F.elu(self.a1(h, adj))
        h = F.dropout(h, 0.5, self.training)
        p = torch.softmax(self.a2(h, adj), dim=1)
        return torch.log(p + 1e-9)


def main():
    torch.manual_seed(1)
    x, adj, y, split = citation_graph()
    model = Gat(x.shape[1], 5, torch.randn(x.shape[1], 16))
    moving = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.Adam(moving, lr=5e-3, weight_decay=5e-4)
    for epoch in range(1, 151):
        model.train()
        out = model(x, adj)
        loss = F.nll_loss(out[split["fit"]], y[split["fit"]])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 10 == 0:
            model.eval()
            with torch.no_grad():
                guess = model(x, adj)
            acc = {k: (guess[v].argmax(1) == y[v]).float().mean().item() for k, v in split.items()}
            tl = F.nll_loss(guess[split["tune"]], y[split["tune"]]).item()
            print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Tune loss: {tl:.4f}, Fit: {acc['fit']:.4f}, Tune: {acc['tune']:.4f}, Rest: {acc['rest']:.4f}")


if __name__ == "__main__":
    main()
