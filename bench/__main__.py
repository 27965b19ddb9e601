"""Runs every benchmark: ``python -m bench``, ``python -m bench --quick``, or by name.

Each prints its own raw limit or peer beside it. One after another, never together.
"""

import argparse
import subprocess
import sys
import time

BENCHES: dict[str, tuple[list[str], list[str]]] = {
    "gateway": ([], ["--requests", "5000", "--registrations", "1000", "--no-postgres"]),
    "drain": (["--deliveries", "200000"], ["--deliveries", "5000"]),
    "edge": ([], ["--requests", "2000", "--rounds", "1"]),
    "carrier": ([], ["--asks", "1000"]),
    "storage": ([], []),
    "queue": ([], []),
    "rules": ([], []),
}
"""The module of each, with what it is given usually and in a hurry."""

SECONDS_MAX = 900
"""A benchmark that takes longer is stuck."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in BENCHES]:
        parser.error(f"there is no benchmark {unknown[0]!r}")
    failed = []
    for number, name in enumerate(names := options.names or list(BENCHES), 1):
        usual, hurried = BENCHES[name]
        words = [sys.executable, "-m", f"bench.{name}", *(hurried if options.quick else usual)]
        print(f"\n[{number}/{len(names)}] {' '.join(words[1:])}", flush=True)
        began = time.perf_counter()
        if subprocess.run(words, check=False, timeout=SECONDS_MAX).returncode:
            failed.append(name)
        print(f"    took {time.perf_counter() - began:.0f} s", flush=True)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
