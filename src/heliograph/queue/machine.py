"""The states of a work item and the one table that changes them. Pure."""
