"""A matrix of runs, carried out by several processes or a cluster, which survives being killed; its results in Parquet."""
