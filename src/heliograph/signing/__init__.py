"""Proofs: HTTP message signatures, digests, detached receipts, sealed routes. Pure."""
