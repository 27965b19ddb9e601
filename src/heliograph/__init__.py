"""Heliograph: push notifications that say "wake up" and nothing more."""
