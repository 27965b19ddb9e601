"""The work handler that turns a claim into a delivery."""
