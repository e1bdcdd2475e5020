"""Extensions of counterfoil, one module each."""
