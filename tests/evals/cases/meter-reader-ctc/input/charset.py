"""Symbols on mechanical meter dials. The last class is reserved for the separator of the decoder."""
SYMBOLS = "0123456789-"
TO_ID = {c: i for i, c in enumerate(SYMBOLS)}
SEP = len(SYMBOLS)
N_CLASS = len(SYMBOLS) + 1


def encode(text):
    return [TO_ID[c] for c in text]


def greedy(ids):
    """Collapse repeats, then drop the separator."""
    out, last = [], None
    for i in ids:
        if i != last and i != SEP:
            out.append(SYMBOLS[i])
        last = i
    return "".join(out)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
    return row[-1]
