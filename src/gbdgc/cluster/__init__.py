"""More than one machine: counting and benchmarks on a Ray cluster (the extra "ray")."""

from gbdgc.cluster.counting import ClusterSummary, count_on_cluster

__all__ = ["ClusterSummary", "count_on_cluster"]
