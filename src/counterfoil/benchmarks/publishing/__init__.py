"""Publication of benchmarks: Parquet that `datasets` reads, a dataset card, and Croissant."""
