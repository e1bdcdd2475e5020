"""counterfoil: do these images and captions belong together, and how sure can we be of the answer?

Import what you need from the modules named after it: `counterfoil.data`, `counterfoil.metrics`,
`counterfoil.stats`, `counterfoil.scorers`, `counterfoil.engine`, `counterfoil.evaluation`,
`counterfoil.report`.
This module itself loads nothing.
"""

__version__ = "0.1.0"
