"""Gates: whatever waits behind a closed one is not claimed."""
