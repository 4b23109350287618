"""`python -m gbdgc` is `gbdgc`."""

from gbdgc.cli import main

main()
