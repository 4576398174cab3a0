"""Everything that touches hardware libraries: cffi gate, driver host, DCMI."""
