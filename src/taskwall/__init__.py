"""taskwall: a task board for coding agents."""

__version__ = "0.1.0"
