"""Keeps agents on a board: claims a task, runs an agent on it, lets the board judge, and takes the next one."""

from .start import run

__all__ = ["run"]
