"""A provider for tests, labs and demos: plain JSON to an address the operator names."""
