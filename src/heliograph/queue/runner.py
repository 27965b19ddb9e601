"""The loop: claim, perform, settle."""
