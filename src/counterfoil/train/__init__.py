"""Training: losses and mining, recipes, one loop, checkpoints that are scorers. Torch lives here."""
