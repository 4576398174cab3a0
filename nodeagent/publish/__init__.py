"""Desired versus acknowledged objects, and the places they are written to."""
