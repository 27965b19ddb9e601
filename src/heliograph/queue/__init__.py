"""Leased work items that survive crashes. Knows nothing of pushes."""
