"""Pure rendering of a NodeView into the objects that consumers read."""
