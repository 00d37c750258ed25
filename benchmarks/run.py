"""Run all benchmarks, each in a process of its own, and write what they say to RESULTS.md.

python benchmarks/run.py            everything, some minutes
python benchmarks/run.py --only mix    one section alone; --help lists them
python benchmarks/run.py --quick    small numbers, to see that it works; nothing is rewritten
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import report

HERE = Path(__file__).resolve().parent
FLAGS = {"cluster": ["--beside", "kube-scheduler"]}


def measured(name: str, *, quick: bool) -> Any:
    """The figures of one script; None if it has failed, and said why."""
    command = [sys.executable, str(HERE / f"bench_{name}.py"), *FLAGS.get(name, [])]
    command += ["--quick"] if quick else []
    begun = time.monotonic()
    print(f"{name} …", file=sys.stderr, end=" ", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    done = subprocess.run(  # noqa: S603  our own scripts
        command, stdout=subprocess.PIPE, env=environment, check=False
    )
    print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)
    return json.loads(done.stdout) if done.returncode == 0 else None


def machine() -> dict[str, str]:
    """Where the figures come from."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "cores": str(os.cpu_count()),
        "load when started": _load(),
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "NumPy": version("numpy"),
        "msgspec": version("msgspec"),
        "Podium": _own_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def _load() -> str:
    return ", ".join(f"{number:.1f}" for number in os.getloadavg())


def _own_version() -> str:
    sys.path.insert(0, str(HERE.parent / "src"))
    import podium  # noqa: PLC0415  the path comes first

    return podium.__version__


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers; print, do not write")
    parser.add_argument("--only", choices=report.SECTIONS, help="write this section alone")
    given = parser.parse_args()
    quick = given.quick
    where = machine()
    wanted = [given.only] if given.only else [*report.SECTIONS]
    found = {name: measured(name, quick=quick) for name in wanted}
    where["load at the end"] = _load()
    failed = ", ".join(name for name, figures in found.items() if figures is None)
    results = HERE / "RESULTS.md"
    before = results.read_text("utf-8") if results.exists() and not quick else ""
    write = written if given.only or failed else renewed
    text = write(before, where, found)
    if quick:
        print(text)
    else:
        results.write_text(text, "utf-8")
        print(f"wrote {results}", file=sys.stderr)
    if failed:
        sys.exit(f"not measured: {failed}; these sections are as they were")


def renewed(before: str, where: dict[str, str], found: dict[str, Any]) -> str:
    """The results with all sections of this script written anew."""
    return f"{report.text(where, found).rstrip()}\n\n{report.written_elsewhere(before)}"


def written(before: str, where: dict[str, str], found: dict[str, Any]) -> str:
    """The results with those sections written anew that were measured."""
    for name, figures in found.items():
        if figures:
            before = report.with_section(before, report.section(name, where, figures))
    return before


if __name__ == "__main__":
    main()
