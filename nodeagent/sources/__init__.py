"""Loops that turn driver answers into observations."""
