"""Taking work: which lanes, which gates, how much of each."""
