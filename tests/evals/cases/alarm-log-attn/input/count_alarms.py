"""Alarm frequency table for the weekly mail. Reads the historian export, unrelated to the model."""
import collections
import csv
import sys


def main(path):
    with open(path, newline="") as f:
        counts = collections.Counter(row["tag"] for row in csv.DictReader(f))
    for tag, n in counts.most_common(20):
        print(f"{n:6d} {tag}")


if __name__ == "__main__":
    main(sys.argv[1])
