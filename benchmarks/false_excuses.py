"""How many wrong placements the judge excuses: prints the table that `docs/history.md` has.

The schedulers are those of `tests/past/judge/wrong_schedulers.py`, which are slightly wrong. Their
bindings are late, overtake each other, and some are refused. The result is the same in every run.
`false_excuses.py FIRST LAST` takes these seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests")]

from past.judge.wrong_schedulers import SEEDS, all_counted, table  # noqa: E402

if __name__ == "__main__":
    seeds = range(int(sys.argv[1]), int(sys.argv[2]) + 1) if len(sys.argv) == 3 else SEEDS
    whole, share = (all_counted(samples=samples, seeds=seeds) for samples in (False, True))
    sys.stdout.write(table(whole, share))
