"""`python -m podium` is the same as `podium`."""

from podium.cli.main import main

main()
