"""What studies ask of runs: numbers that claims rest on, claims, and one change from model to model."""
