"""Pure arithmetic over arrays: per-item values first, aggregates last. No models, no files."""
