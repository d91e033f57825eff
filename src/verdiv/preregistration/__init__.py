"""preregistration."""
