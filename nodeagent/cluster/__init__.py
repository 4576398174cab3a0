"""The Kubernetes API on the wire: one client, one connection pool, watches of single objects."""
