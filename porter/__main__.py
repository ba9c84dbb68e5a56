"""`python -m porter`."""

from porter.cli import main

main()
