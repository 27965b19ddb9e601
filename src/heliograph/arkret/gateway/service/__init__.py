"""The Gateway's use cases: facts in, one transaction that loads, decides and writes, a reply out."""
