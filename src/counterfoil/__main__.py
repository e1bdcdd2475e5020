"""`python -m counterfoil` is the same as `counterfoil`."""

from counterfoil.cli import main

if __name__ == "__main__":
    main()
