"""nodeagent: one daemon per node that reports chip faults of Ascend nodes to the cluster."""

__version__ = "0.1.0"
