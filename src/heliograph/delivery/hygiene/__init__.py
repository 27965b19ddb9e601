"""Keeping credentials and routes healthy, whatever providers say."""
