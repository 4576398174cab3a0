"""The only import of the compiled module. Loaded in the driver host, never in the daemon itself."""

from nodeagent.drivers._gate import ffi, lib

__all__ = ["ffi", "lib"]
