"""verdiv puts retry claims on trial: run logs in, preregistered verdicts out."""

__all__ = ["__version__"]

__version__ = "0.1.0"
