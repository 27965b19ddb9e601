"""The Arkret Gateway role: applies handoffs, signs receipts, accepts notifies."""
