"""``python -m heliograph.cli``."""

from heliograph.cli import main

main()
