"""`make bench`: how fast the installed taskwall is, as ratios within one run, against the targets and against rivals.

Prints the tables; a whole run, which takes up to twenty-five minutes, writes them to `docs/benchmarks.md`. --quick: the
small boards in under two minutes. --sizes: boards of just these sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import boards
import claims
import fleet
import rivals
from timing import Clock, peak_megabytes, rounds

from taskwall import registry, verbs  # noqa: F401 - importing verbs registers them
from taskwall.lengths import tokens

HERE = Path(__file__).parent
TASKWALL = str(Path(sys.executable).parent / "taskwall")
MUTATING = ("claim", "release", "done", "add")
CROWDS = (1, 2, 8, 32)
SYNCED = 2  # files that a claim brings to the disk: the task and its ledger entry


class Bench:
    """One run. `quick` measures less often, on fewer boards."""

    def __init__(self, sizes: list[int], quick: bool) -> None:
        self.sizes, self.quick = sizes, quick
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("TASKWALL_")}
        self.env |= {"TASKWALL_ACTOR": "bench"}
        self.figures: dict = {}  # what the targets ask for, by name
        self.tables: list[tuple[str, list[str], list[list[str]]]] = []
        self.skipped: dict[str, str] = {}

    def run(self) -> None:
        many = (self.crowds, self.on_one_server)
        for part in (self.commands, self.against_rivals, *many, self.inside, self.read_by_agents, self.server):
            began = time.monotonic()
            part()
            print(f"# {part.__name__}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    def tw(self, clock: Clock, name: str, folder: Path, *words: str) -> str:
        return clock.run(name, [TASKWALL, *words], cwd=folder, env=self.env)

    def board(self, size: int) -> Path:
        """A fresh board that has been written to once, as one in use has."""
        folder = boards.board(size)
        self.tw(Clock(), "-", folder, "note", boards.graph(size)[0].id, "in use")
        return folder

    # Each command as a whole process

    def commands(self) -> None:
        wall: dict[str, dict[int, float]] = {}
        processor: dict[str, dict[int, float]] = {}
        more: dict[str, dict[int, str]] = {"cold index (s)": {}, "peak of next (MB)": {}}
        for size in self.sizes:
            folder = self.board(size)
            more["cold index (s)"][size] = f"{self._cold(folder, size):.2f}"
            for durability in ("full", "fast"):
                boards.set_durability(folder, durability)
                time.sleep(boards.RACY)
                self.tw(Clock(), "-", folder, "next")  # looks at the folder, in which a file has come or gone
                clock = self._commands(folder, size)
                for name in clock.seconds:
                    if name != "bare" and (durability == "full" or name in MUTATING):
                        marked = f"{name}, {durability}" if name in MUTATING else name
                        wall.setdefault(marked, {})[size] = self.figures[f"{marked} {size}"] = clock.ratio(name)
                        processor.setdefault(marked, {})[size] = clock.processor_ratio(name)
                self.figures.setdefault("bare", clock.median("bare"))
            peak = peak_megabytes([TASKWALL, "next"], folder)
            self.figures[f"peak {size}"] = peak
            more["peak of next (MB)"][size] = f"{peak:.1f}"
        head = ["tasks", *(f"{size:,}" for size in self.sizes)]
        extra = [[name, *(found[s] for s in self.sizes)] for name, found in more.items()]
        rows = [[name, *(f"{found[s]:.2f}" for s in self.sizes)] for name, found in wall.items()]
        self.table("Commands, each a whole process; 1 = a bare `python -c pass`", head, rows + extra)
        rows = [[name, *(f"{found[s]:.2f}" for s in self.sizes)] for name, found in processor.items()]
        self.table("The same in time of a processor, which other load disturbs less", head, rows)

    def _cold(self, folder: Path, size: int) -> float:
        """Seconds of the first read of a board that has no index, less those of the second."""
        clock = Clock()
        for _ in range(2 if self.quick else 3):
            for left in (folder / ".tasks/.local").glob("index*"):
                left.unlink()
            self.tw(clock, "cold", folder, "next")
            self.tw(clock, "warm", folder, "next")
        cold = max(0.0, clock.median("cold") - clock.median("warm"))
        self.figures[f"cold {size}"] = cold
        return cold

    def _commands(self, folder: Path, size: int) -> Clock:
        clock = Clock()
        for n in rounds(5 if self.quick else 15, 6 if self.quick else 60):
            clock.bare()
            offered = self.tw(clock, "next", folder, "next", "--json")
            self.tw(clock, "list", folder, "list")
            first = json.loads(offered)["data"]["tasks"][0]["id"]
            self.tw(clock, "show", folder, "show", first)
            self.tw(clock, "add", folder, "add", f"added {n}", "-b", first)
            clock.bare()
            self.tw(clock, "claim", folder, "claim")
            held = json.loads(self.tw(clock, "-", folder, "list", "in_progress", "--json"))["data"]["tasks"][0]["id"]
            self.tw(clock, "release", folder, "release", held)
            self.tw(clock, "-", folder, "claim", held)
            self.tw(clock, "done", folder, "done", held)
            self.tw(clock, "-", folder, "reopen", held)
        del clock.seconds["-"], clock.processor["-"]
        return clock

    # Rivals on the same work, in turns with ours

    def against_rivals(self) -> None:
        found, self.skipped = rivals.all_rivals()
        rows = []
        for size in [s for s in self.sizes if s >= 1000 and not (self.quick and s > 1000)]:
            ours = self.board(size)
            boards.set_durability(ours, "full")
            ready = self._ready(ours)
            number = {task.id: n + 1 for n, task in enumerate(boards.graph(size))}
            for rival in found:
                if size <= rival.most:
                    rows.append([rival.name, str(size), *self._rival(rival, ours, size, ready, number)])
        self.table("Rivals: their time divided by ours, on the same tasks", ["", "tasks", "next", "claim"], rows)

    def _ready(self, folder: Path) -> list[boards.Task]:
        offered = self.tw(Clock(), "-", folder, "next", "-n", "50", "--json")
        ids = {task["id"] for task in json.loads(offered)["data"]["tasks"]}
        return [task for task in boards.graph(int(folder.name.split("-")[1])) if task.id in ids]

    def _rival(self, rival, ours: Path, size: int, ready, number) -> list[str]:
        clock = Clock()
        try:
            theirs = rival.board(size)
            for n in rounds(3 if self.quick else 9, 4 if self.quick else 40):
                task = ready[n % len(ready)]
                self.tw(clock, "next", ours, "next")
                clock.run("their next", rival.next(theirs), cwd=theirs, env=rival.env)
                self.tw(clock, "claim", ours, "claim", task.id)
                clock.run("their claim", rival.claim(theirs, task, number[task.id]), cwd=theirs, env=rival.env)
                self.tw(clock, "-", ours, "release", task.id)
        except (rivals.Absent, subprocess.SubprocessError, RuntimeError, OSError) as error:
            self.skipped[f"{rival.name} at {size}"] = str(error).strip().splitlines()[-1][:200]
            return ["–", "–"]
        times = [clock.ratio("their next", "next"), clock.ratio("their claim", "claim")]
        self.figures[f"{rival.name} next {size}"] = times[0]
        return [f"{ratio:.1f}" for ratio in times]

    # Many processes

    def crowds(self) -> None:
        python, missing = rivals.python_with(*claims.QUEUES)
        self.skipped |= {name: "pip cannot install it here" for name in missing}
        seconds = 0.5 if self.quick else 2.0
        tasks = 1_500 if self.quick else 5_000
        found: dict[str, list[float]] = {}
        for crowd in CROWDS:
            for name, kind, place in self._places(tasks, python, [q for q in claims.QUEUES if q not in missing]):
                runner = python if kind in claims.QUEUES else sys.executable
                found.setdefault(name, []).append(claims.per_second(kind, place, crowd, seconds, runner))
        self.figures["claims"] = found
        rows = [[name, *(f"{each:,.0f}" for each in rates)] for name, rates in found.items()]
        title = "Claims per second through the library; raw: one file replaced; queues: one task taken from SQLite"
        self.table(title, ["processes", *map(str, CROWDS)], rows)

    def _places(self, tasks: int, python: str, queues: list[str]):
        for durability in ("full", "fast"):
            yield f"taskwall {durability}", "taskwall", claims.free_board(tasks, durability)
        for kind in claims.RAW:
            yield kind, kind, boards.fresh(boards.CACHE / "work" / "raw")
        for kind in queues:
            yield kind, kind, claims.full_queue(kind, 10 * tasks, python)

    def on_one_server(self) -> None:
        """Many clients of one PostgreSQL."""
        try:
            database = fleet.new_server()
        except fleet.Absent as why:
            self.skipped["claims in PostgreSQL"] = str(why)
            return
        python, missing = rivals.python_with(*fleet.RIVALS, "psycopg[binary]", "psycopg_pool")
        self.skipped |= {name: "pip cannot install it here" for name in missing}
        seconds, tasks = (1.0, 2_000) if self.quick else (4.0, 10_000)
        kinds = [kind for kind in fleet.TAKERS if kind not in missing]
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        for crowd in fleet.CROWDS:
            for kind in kinds:
                runner = python if kind in fleet.RIVALS else sys.executable
                url = fleet.place(database, kind, crowd, tasks, runner)
                found[kind].append(claims.per_second(kind, url, crowd, seconds, runner))
        self.figures["fleet"] = found
        ours = found[fleet.OURS]
        rows = [
            [kind, *(f"{each:,.0f} ({mine / each:.2f})" for each, mine in zip(rates, ours))]
            for kind, rates in found.items()
        ]
        title = "Claims per second on one PostgreSQL that syncs each (in brackets: ours divided by that)"
        self.table(title, ["clients", *map(str, fleet.CROWDS)], rows)

    # Inside one process

    def inside(self) -> None:
        rows = []
        for what, words in {
            "a plan of 10,000 tasks, fast": ("plan", "fast"),
            "a plan of 10,000 tasks, full": ("plan", "full"),
            "cycle check of an edge, 10,000 tasks": ("cycle", "real"),
            "cycle check of an edge, 10,000 tasks in diamonds": ("cycle", "diamonds"),
        }.items():
            if self.quick and words == ("plan", "full"):  # ten thousand files brought to the disk, one after the other
                continue
            done = subprocess.run(
                [sys.executable, HERE / "core.py", *words], capture_output=True, text=True, check=True
            )
            self.figures[" ".join(words)] = float(done.stdout)
            rows.append([what, f"{float(done.stdout) * 1000:,.1f} ms"])
        self.table("Inside one process", ["", "median"], rows)

    # What an agent reads

    def read_by_agents(self) -> None:
        folder = self.board(100)
        clock = Clock()
        rows = []
        for name, words in {"next": ["next", "-n", "50"], "list": ["list"], "list --all": ["list", "--all"]}.items():
            text = self.tw(clock, name, folder, *words)
            lines = [line for line in text.splitlines() if line.startswith("[")]
            share = len(text.encode()) / len(lines)
            self.figures[f"{name} share"] = share
            rows.append([name, f"{len(text.encode()):,} bytes", f"{share:.0f} a task"])
        shown = self.tw(clock, "show", folder, "show", boards.graph(100)[-1].id)
        schema = json.dumps([{key: t[key] for key in ("name", "description", "inputSchema")} for t in registry.tools()])
        primed = max(tokens(self.tw(clock, "prime", self.board(size), "prime")) for size in (100, self.sizes[-1]))
        self.figures |= {"schema": len(schema.encode()), "prime": primed, "longest": self._longest(clock)}
        rows += [
            ["show", f"{len(shown.encode()):,} bytes", ""],
            ["longest answer at 1,000 tasks, long texts too", f"{self.figures['longest']:,} bytes", ""],
            ["schemas of the ten tools", f"{len(schema):,} bytes", ""],
        ]
        rows.append(["prime", f"{primed:.0f} tokens", ""])
        guidance = subprocess.run(
            [sys.executable, HERE.parent / "tests/test_guidance.py"], capture_output=True, text=True
        )
        for line in guidance.stdout.splitlines():
            figure, _, what = line.strip().partition(" tokens  ")
            rows.append([what, f"{figure} tokens", ""])
        self.table("What an agent reads of a board of 100 tasks", ["", "size", ""], rows)

    def _longest(self, clock: Clock) -> int:
        """How many bytes the longest default answer has, on a board whose first open task has a very long text."""
        folder = self.board(1000)
        long = next(task.id for task in boards.graph(1000) if not task.done)
        self.tw(clock, "edit", folder, "edit", long, "-d", "long " * 12_000)
        looks = ("list", "list --all", "next -n 50", f"show {long}", f"why {long}", f"claim {long}", "graph", "log",
                 "waiting", "fleet", "prime")  # fmt: skip
        return max(len(self.tw(clock, look, folder, *look.split()).encode()) for look in looks)

    # The server

    def server(self) -> None:
        folder = self.board(self.sizes[-1])
        clock = Clock()
        info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}) + "\n"
        for _ in rounds(5 if self.quick else 15, 30):
            clock.bare()
            began = time.perf_counter()
            server = subprocess.Popen([TASKWALL, "mcp"], cwd=folder, env=self.env, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
            server.stdin.write(line)
            server.stdin.flush()
            assert '"result"' in server.stdout.readline()
            clock.seconds.setdefault("initialize", []).append(time.perf_counter() - began)
            server.communicate(timeout=20)
        self.figures["initialize"] = clock.ratio("initialize")
        self.table(
            "The MCP server", ["", "times a bare start"], [["initialize answered", f"{self.figures['initialize']:.2f}"]]
        )

    # What comes of it

    def table(self, title: str, head: list[str], rows: list[list[str]]) -> None:
        self.tables.append((title, head, rows))

    def targets(self) -> list[list[str]]:
        """Each target of which this run knows something: what was wanted, what was found, whether it is met."""
        f, rows = self.figures, []

        def want(what: str, found: float | None, limit: float, *, most: bool = True, form: str = ".2f") -> None:
            if found is not None:
                met = found <= limit if most else found >= limit
                rows.append([what, f"{'≤' if most else '≥'} {limit:g}", f"{found:{form}}", "met" if met else "NOT MET"])

        for size in [size for size in self.sizes if size >= 1000]:
            want(f"`next` at {size:,}, times a bare start", f[f"next {size}"], 2.5)
            want(f"`show` at {size:,}", f[f"show {size}"], 2)
            for name, limit in (("claim", 3), ("done", 3.5), ("add", 3)):
                want(f"`{name}` at {size:,}, durability fast", f[f"{name}, fast {size}"], limit)
        if "next 100000" in f and "next 1000" in f:
            want("`next` at 100,000 divided by that at 1,000", f["next 100000"] / f["next 1000"], 1.3)
        for rival, times in (("Taskwarrior", 10), ("seeds-cli", 4), ("Backlog.md", 100)):
            want(
                f"{rival}'s time for next at 10,000, divided by ours",
                f.get(f"{rival} next 10000"),
                times,
                most=False,
                form=".1f",
            )
        self._want_claims(want, f["claims"])
        want("a plan of 10,000 in one call, fast, seconds", f["plan fast"], 2)
        want("cycle check of one edge at 10,000, milliseconds", f["cycle real"] * 1000, 2)
        want("the same in diamonds", f["cycle diamonds"] * 1000, 2)
        want("peak memory of `next` at 100,000, MB", f.get("peak 100000"), 20, form=".1f")
        want("cold index at 10,000, seconds", f.get("cold 10000"), 0.5)
        want("cold index at 100,000, seconds", f.get("cold 100000"), 2.5)
        want("`next`, bytes a task", f["next share"], 60, form=".0f")
        want("`list`, bytes a task", f["list share"], 60, form=".0f")
        want("longest default output, bytes", f["longest"], 8192, form=",.0f")
        want("schemas of the ten tools, bytes", f["schema"], 4608, form=",.0f")
        want("`prime`, tokens", f["prime"], 700, form=".0f")
        want("MCP `initialize`, times a bare start", f["initialize"], 6)
        return rows

    @staticmethod
    def _want_claims(want, found: dict[str, list[float]]) -> None:
        eight, many = CROWDS.index(8), CROWDS.index(32)
        fast, full = found["taskwall fast"], found["taskwall full"]
        want("claims a second of 8 processes, fast", fast[eight], 2000, most=False, form=",.0f")
        if "huey" in found:
            want("the same, divided by huey's", fast[eight] / found["huey"][eight], 0.45, most=False)
        raw = full[eight] * SYNCED / found["raw full, one lock"][eight]
        want("files a second that 8 claiming processes sync, full, divided by raw, one lock", raw, 0.8, most=False)
        for name, rates in (("fast", fast), ("full", full)):
            want(f"claims of 32 processes, {name}, divided by those of 1", rates[many] / rates[0], 0.5, most=False)

    def page(self) -> str:
        """All of it as Markdown."""
        about = f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}"
        said = f"Written by `make bench`: {about}. Ratios are of processes measured in turns within this one run; "
        said += f"a bare Python start took {self.figures['bare'] * 1000:.1f} ms in it."
        lines = ["# Benchmarks", "", said, ""]
        for title, head, rows in [("Targets", ["", "target", "found", ""], self.targets()), *self.tables]:
            lines += [f"## {title}", "", *markdown(head, rows), ""]
        if self.skipped:
            lines += ["## Not measured", "", *(f"- {name}: {why}" for name, why in self.skipped.items()), ""]
        return "\n".join(lines)


def markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in [head, *rows]]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--output", type=Path, help="instead of docs/benchmarks.md, which only a whole run writes")
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # where it is set, every start of a Python compiles again
    bench = Bench(args.sizes or ([10, 1000] if args.quick else [10, 1000, 10_000, 100_000]), args.quick)
    bench.run()
    boards.tidy()
    page = bench.page()
    print(page)
    whole = not (args.quick or args.sizes)
    if output := args.output or (HERE.parent / "docs" / "benchmarks.md" if whole else None):
        output.write_text(page)


if __name__ == "__main__":
    main()
