"""How values are spelled: identifiers, instants, JSON, digests. Pure."""
