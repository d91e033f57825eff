"""The preregistered protocol as running code: suite, verifiers, arms, runner and local model."""
