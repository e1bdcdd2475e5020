"""Publication of benchmarks: Parquet that `datasets` reads, a dataset card, Croissant, and the hub."""
