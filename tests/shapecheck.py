"""The type checker that the test run puts on every function of the package: see conftest.py."""

from beartype import BeartypeConf, beartype

# As in PEP 484, an int will do where a float is asked for.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
