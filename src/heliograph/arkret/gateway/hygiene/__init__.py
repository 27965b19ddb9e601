"""Routes that a provider doubts or has called dead, and how that is undone."""
