"""A script for any environment: which public names resolve there, and what they measure on data in memory.

Prints JSON: `missing` is the extra that each name asks for which does not resolve.
"""

import json
import re

import counterfoil as cf


def main():
    """Resolve every name, then measure, compare and audit a table in memory."""
    missing = {}
    for name in cf.__all__:
        try:
            getattr(cf, name)
        except cf.CounterfoilError as error:
            missing[name] = re.search(r"\[(\w+)\]", str(error))[1]
    rows = [
        {"image": f"{i}.jpg", "caption": f"a cat on mat {i}", "negative_caption": "a dog"} for i in range(8)
    ]
    bench = cf.load_benchmark("pairs", data=rows)
    plain = {"draws": 100, "cache": None, "quiet": True}
    runs = [cf.evaluate(f"blind:{kind}", bench, **plain) for kind in ("length", "unigram")]
    print(
        json.dumps(
            {
                "missing": missing,
                "accuracy": [run["accuracy"].value for run in runs],
                "rows": bench.to_arrow().num_rows,
                "differences": cf.compare(runs, draws=100, quiet=True).to_arrow().num_rows,
                "audited": cf.audit(bench, **plain).to_arrow().num_rows,
            }
        )
    )


if __name__ == "__main__":
    main()
