"""Pure decisions: the fault table, the level of each chip, the engine."""
