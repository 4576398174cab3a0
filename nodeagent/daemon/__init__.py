"""Wiring of the running daemon: core loop, supervisor, metrics, signals."""
