"""Web Push: RFC 8030 transport, RFC 8291 encryption, RFC 8292 identification."""
