"""Graph algorithms over ids. Linear, iterative: a chain of 100,000 tasks does not recurse, a diamond does not explode.

An edge function maps a node to the nodes it leads to; ids that it does not know lead nowhere.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    Node = TypeVar("Node", bound=Hashable)
    Edges = Callable[[str], Iterable[str]]


def cycle_through(start: str, edges: Edges) -> list[str] | None:
    """The shortest cycle through `start` as a closed path `[start, …, start]`, or None."""
    came_from: dict[str, str] = {}
    queue = [start]
    for node in queue:
        for after in edges(node):
            if after == start:
                path = [start, node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1] if node != start else [start, start]
            if after not in came_from:
                came_from[after] = node
                queue.append(after)
    return None


def reached(starts: Iterable[str], edges: Edges) -> set[str]:
    """The nodes to which edges lead from `starts`, and those themselves."""
    found = set(starts)
    todo = list(found)
    for node in todo:
        _take_in(edges(node), found, todo)
    return found


def _take_in(nodes: Iterable[str], seen: set[str], queue: list[str]) -> None:
    fresh = set(nodes) - seen
    seen |= fresh
    queue += fresh


def leads_to(starts: Iterable[str], goal: str, edges: Edges, back: Edges) -> bool:
    """Whether a path leads from one of `starts` to `goal`. back: the same edges, backwards.

    Searched from both ends by turns, so that it ends when the smaller side is done.
    """
    ahead, behind = set(starts), {goal}
    todo, rest = list(ahead), [goal]
    for node, other in zip(todo, rest, strict=False):
        if node in behind or other in ahead:
            return True
        _take_in(edges(node), ahead, todo)
        _take_in(back(other), behind, rest)
    return not ahead.isdisjoint(behind)


def rings(starts: Iterable[str], edges: Edges) -> Iterator[list[str]]:
    """The sets of nodes, reachable from `starts`, whose members all wait for each other (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    pending: list[str] = []
    loops: set[str] = set()
    for root in starts:
        if root in index:
            continue
        walk = [(root, iter(edges(root)))]
        index[root] = low[root] = len(index)
        pending.append(root)
        while walk:
            node, rest = walk[-1]
            for after in rest:
                if after not in index:
                    index[after] = low[after] = len(index)
                    pending.append(after)
                    walk.append((after, iter(edges(after))))
                    break
                if after == node:
                    loops.add(node)
                if after in low:
                    low[node] = min(low[node], index[after])
            else:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[node])
                if low[node] == index[node]:
                    members: list[str] = []
                    while not members or members[-1] != node:
                        members.append(pending.pop())
                        del low[members[-1]]
                    if len(members) > 1 or node in loops:
                        yield members


def finish_order(starts: Iterable[str], edges: Edges) -> dict[str, int]:
    """When a depth-first walk leaves each node reachable from `starts`; an edge to one left no earlier is in a ring."""
    left: dict[str, int] = {}
    seen: set[str] = set()
    for root in starts:
        walk = [] if root in seen else [(root, iter(edges(root)))]
        seen.add(root)
        while walk:
            node, rest = walk[-1]
            after = next((i for i in rest if i not in seen), None)
            if after is None:
                left[node] = len(left)
                walk.pop()
            else:
                seen.add(after)
                walk.append((after, iter(edges(after))))
    return left


def longest_chains(behind: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """How many nodes the longest chain behind each node has, given the nodes directly behind each.

    Nodes in a ring, and those before one, count only what lies behind them outside of it.
    """
    before: dict[Node, list[Node]] = {}
    for node, afters in behind.items():
        for after in afters:
            before.setdefault(after, []).append(node)
    rank = dict.fromkeys(behind, 0)
    open_behind = {node: len(afters) for node, afters in behind.items()}
    settled = [node for node, count in open_behind.items() if not count]
    for node in settled:
        for earlier in before.get(node, ()):
            rank[earlier] = max(rank[earlier], rank[node] + 1)
            open_behind[earlier] -= 1
            if not open_behind[earlier]:
                settled.append(earlier)
    return rank


def natural(text: str) -> tuple[str | int, ...]:
    """A sort key under which `task_2` comes before `task_10`: texts and numbers by turns."""
    return tuple(int(part) if n % 2 else part for n, part in enumerate(runs(text)))


def runs(text: str) -> list[str]:
    """The parts of a text, by turns without digits and all digits; the first and the last have none."""
    digits = text.translate(_BLANK) if text.isascii() else "".join(c if c.isdecimal() else " " for c in text)
    found, rest = [], text
    for run in digits.split():
        before, _, rest = rest.partition(run)
        found += [before, run]
    return [*found, rest]


_BLANK = "".join(chr(code) if chr(code).isdecimal() else " " for code in range(128))
