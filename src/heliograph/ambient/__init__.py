"""What comes from outside: time, randomness, keys, telemetry. The only readers of them."""
