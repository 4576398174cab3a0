"""Vocabulary shared by all layers: model, codes, clock, errors, settings."""
