"""A hint that there may be work. Losing a ring costs a poll interval, never a push."""
