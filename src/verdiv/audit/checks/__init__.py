"""The checks, one small function each, grouped by what they look at."""
