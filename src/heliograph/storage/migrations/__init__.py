"""Numbered, forward-only schema steps and the runner that applies them."""
