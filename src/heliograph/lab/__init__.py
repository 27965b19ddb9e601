"""Provider servers that give every answer on demand, for rehearsals, demos and tests."""
