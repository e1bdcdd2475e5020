"""Pure arithmetic over arrays: per-item values first, aggregates last. Nothing here loads a model or a file."""
