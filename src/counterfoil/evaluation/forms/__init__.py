"""Evaluation by form of question: a module per family. `counterfoil.evaluation.evaluate` names them."""
