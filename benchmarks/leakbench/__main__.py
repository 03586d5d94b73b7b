"""Real leaks of public packages: what soak says of them, beside objgraph, guppy3 and tracemalloc.

    python benchmarks/leakbench CASES --scratch FOLDER [--python EXE] [--rounds N] [--case NAME]

CASES is a folder of cases, each with `case.json` and `scenario.py`. For each case two environments
are made in the scratch folder, with the version that leaks and the one that was fixed, and nothing
of floodline in them; they stay there for the next run. `--python` takes another interpreter: cases
whose packages do not install there are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from cases import Case, Hit, environment, judge, peers, read_cases, version_of

TOOLS = ("floodline", "tracemalloc", "objgraph", "guppy3")
Outcome = tuple[bool, list[dict[str, Any]], str]


def soak(exe: Path, case: Case, rounds: int, limit: float) -> Outcome:
    out = exe.parents[1] / "soak.json"
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "floodline", "soak", str(case.scenario), "--python", str(exe)]
    _call([*command, "--rounds", str(rounds), "--json", str(out)], limit)
    if not out.exists():
        return False, [], "failed"
    record = json.loads(out.read_text(encoding="utf-8"))
    answers = [{**one, "said": f"{one['owner']} {one['path']}"} for one in record["suspects"]]
    return record["verdict"] == "growing", answers, record["verdict"]


def peer(tool: str, exe: Path, case: Case, rounds: int, limit: float, folder: Path) -> Outcome:
    out = exe.parents[1] / f"{tool}.json"
    out.unlink(missing_ok=True)
    script = Path(__file__).with_name("peer.py")
    command = [str(exe), str(script), tool, str(case.scenario), str(rounds), str(folder), str(out)]
    wrong = _call(command, limit)
    if not out.exists():
        return False, [], wrong
    answers = json.loads(out.read_text(encoding="utf-8"))
    return bool(answers), answers, "growing" if answers else "silent"


def _call(command: list[str], limit: float) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return "too slow"
    return "failed" if done.returncode else ""


def run_case(case: Case, said: argparse.Namespace, tally: Counter[str]) -> None:
    others = set(said.tool) - {"floodline"}
    folder = peers(said.python, said.scratch) if others else said.scratch
    homes = {
        role: environment(case, role, said.python, said.scratch) for role in ("leaky", "fixed")
    }
    tally["cases"] += 1
    tally["clean"] += case.fixed_is_clean
    for tool in said.tool:
        start = time.perf_counter()
        found = {}
        for role, exe in homes.items():
            if tool == "floodline":
                found[role] = soak(exe, case, said.rounds, said.limit)
            else:
                found[role] = peer(tool, exe, case, said.rounds, said.limit, folder)
        flagged, answers, word = found["leaky"]
        hit = judge(case, answers, homes["leaky"]) if flagged else Hit()
        silent = not found["fixed"][0] and found["fixed"][2] not in ("failed", "too slow")
        for name, won in (
            *(("flagged", flagged), ("owner", hit.owner), ("file", hit.file), ("line", hit.line)),
            ("silent", case.fixed_is_clean and silent),
            ("bounded", case.fixed_is_clean and found["fixed"][2] == "bounded"),
        ):
            tally[f"{tool} {name}"] += bool(won)
        marks = ("yes" if won else "-" for won in (hit.owner, hit.file, hit.line))
        took = time.perf_counter() - start
        row = (case.name, tool, word, *marks, found["fixed"][2], f"{took:.0f} s")
        print("{:<28} {:<12} {:<10} {:<6} {:<5} {:<5} {:<10} {:>6}".format(*row), flush=True)


def main() -> None:
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("cases", type=Path)
    ask.add_argument("--scratch", type=Path, required=True, help="where environments are kept")
    ask.add_argument("--python", default=sys.executable, help="the interpreter of the cases")
    ask.add_argument("--rounds", type=int, default=300)
    ask.add_argument("--limit", type=float, default=300, help="seconds for one run of one tool")
    ask.add_argument("--case", action="append", default=[], help="only this one; may be repeated")
    ask.add_argument("--tool", action="append", choices=TOOLS, help="only this one; repeatable")
    said = ask.parse_args()
    said.tool = said.tool or TOOLS
    said.scratch = said.scratch.resolve()
    said.scratch.mkdir(parents=True, exist_ok=True)
    cases = read_cases(said.cases, said.case)
    if not cases:
        ask.error(f"{said.cases} has no case.json in its folders")
    print(f"Python {version_of(said.python)}, {said.rounds} rounds a run")
    print(f"{'case':<28} {'tool':<12} {'leaky':<10} owner  file  line  {'fixed':<10}   took")
    tally: Counter[str] = Counter()
    for case in cases:
        try:
            run_case(case, said, tally)
        except RuntimeError as error:
            print(f"{case.name:<28} left out: {str(error).splitlines()[-1][:100]}", flush=True)
    _summary(said.tool, tally)


def _summary(tools: list[str], tally: Counter[str]) -> None:
    print(f"\n{'tool':<12} flagged  owner   file   line  fixed silent")
    for tool in tools:
        won = (f"{tally[f'{tool} {name}']}/{tally['cases']}" for name in ("flagged", "owner"))
        more = (f"{tally[f'{tool} {name}']}/{tally['cases']}" for name in ("file", "line"))
        silent = f"{tally[f'{tool} silent']}/{tally['clean']}"
        extra = f" ({tally[f'{tool} bounded']} bounded)" if tool == "floodline" else ""
        print("{:<12} {:>7} {:>6} {:>6} {:>6}  {:>6}{}".format(tool, *won, *more, silent, extra))


if __name__ == "__main__":
    main()
