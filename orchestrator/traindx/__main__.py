"""`python -m traindx` is `traindx`."""

from traindx.cli import main

if __name__ == "__main__":
    main()
