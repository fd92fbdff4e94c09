"""An agent that works a board off: a loop around a model, its tools, and a log of each run."""

from .start import run

__all__ = ["run"]
