"""Settings and composition: the only place that builds things."""
