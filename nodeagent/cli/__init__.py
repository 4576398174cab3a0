"""One module per command: arguments and printing only."""
