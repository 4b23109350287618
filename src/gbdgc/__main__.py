"""`python -m gbdgc` is `gbdgc`."""

from gbdgc.cli import main

if __name__ == "__main__":  # and not in the processes that it starts
    main()
