"""falsification."""
