"""Caption metrics: what each reads, its official values, and the models and programs behind it."""
