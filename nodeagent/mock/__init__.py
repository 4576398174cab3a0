"""A pretended node: the hardware model behind the mock libraries and the fake driver."""
