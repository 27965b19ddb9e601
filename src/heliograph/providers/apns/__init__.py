"""Apple's devices, over APNs with a signing key."""
