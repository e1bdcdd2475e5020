"""Whether a benchmark built by the recipe `bivlc` says of networks what `world-quads` says.

    python benchmarks/fidelity.py FOLDER [--rows 5000] [--tiny]

Both are of the drawn world. Prints the group measure of the demo's networks on both, with intervals, and the
order of the networks. What is trained and built is kept in FOLDER, so that a second run goes on where one
stopped. About five minutes on one core; --tiny takes seconds, to see that it works. Exits with 1 where they
do not say the same.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

from counterfoil.studies.fidelity import build_fidelity
from counterfoil.studies.plan import SHORT

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tiny_study import TINY

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    began = perf_counter()
    study = build_fidelity(given.folder, TINY if given.tiny else SHORT, rows=given.rows)
    print(study.table())
    print(f"{perf_counter() - began:.0f} s", file=sys.stderr)
    sys.exit(0 if study.same_order and all(map(study.inside, study.drawn)) else 1)
