"""Third-party push services as pure exchanges, one folder each."""
