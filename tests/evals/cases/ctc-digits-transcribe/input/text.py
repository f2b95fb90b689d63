"""Character inventory for the transcripts, most frequent symbol first."""

CHARS = " etaoinshr"
STOI = {c: i for i, c in enumerate(CHARS)}
NUM_OUT = len(CHARS) + 1


def encode(sentence):
    return [STOI[c] for c in sentence]


def decode(path, blank=0):
    out, last = [], None
    for k in path:
        if k != last and k != blank and k < len(CHARS):
            out.append(CHARS[k])
        last = k
    return "".join(out)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (ca != cb))
    return row[-1]
