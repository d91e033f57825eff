"""The audit's test of itself: a clean run, and deliberate breakages that must each be caught."""
