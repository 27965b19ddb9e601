"""The one way out: verdicts, pure exchanges and the carrier that drives them."""
