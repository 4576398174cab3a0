"""The self-check: is everything there that a daemon of this node needs? Facts at the edge, verdicts pure."""
