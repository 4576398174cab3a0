"""A simulated fleet: many publishers in one process, on few threads and connections, against one API server."""
