"""The wall for people: a live page that shows the board and acts on it. `serve` starts it."""
