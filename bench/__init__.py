"""Measure speed and size: ``python -m bench``."""
