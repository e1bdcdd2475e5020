"""How much of what wrong negative images cost a learned filter brings back, beside as many rows at random.

    python benchmarks/noise_filter.py FOLDER [--seeds 2] [--whole] [--tiny]

Prints a table with intervals; networks are kept in FOLDER, so that a second run goes on where one stopped.
Three to ten minutes for each seed on one core; --whole takes the plan of the study, --tiny seconds, to see
that it works.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

from counterfoil.studies.filtering import noise_filter, small
from counterfoil.studies.plan import SHORT

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tiny_study import TINY

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    began = perf_counter()
    plan = TINY if given.tiny else SHORT if given.whole else small(SHORT)
    study = noise_filter(given.folder, plan, seeds=tuple(range(given.seeds)))
    print(study.table())
    print(f"{perf_counter() - began:.0f} s", file=sys.stderr)
