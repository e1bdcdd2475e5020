"""How much of what wrong negative images cost a learned filter brings back, beside as many rows at random.

    python benchmarks/noise_filter.py FOLDER [--seeds 2] [--whole]

Prints a table with intervals; networks are kept in FOLDER, so that a second run goes on where one stopped.
Three to ten minutes for each seed on one core; --whole takes the plan of the demo.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

from counterfoil.studies.filtering import noise_filter, small
from counterfoil.studies.plan import SHORT

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    began = perf_counter()
    study = noise_filter(
        given.folder, SHORT if given.whole else small(SHORT), seeds=tuple(range(given.seeds))
    )
    print(study.table())
    print(f"{perf_counter() - began:.0f} s", file=sys.stderr)
