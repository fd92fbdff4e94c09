"""The graph algorithms, against brute force on small graphs and at sizes where recursion or enumeration would fail."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskwall.core.graph import cycle_through, leads_to, longest_chains, natural, reached, rings
from taskwall.core.model import Settings, Task
from taskwall.core.state import find_cycle, find_cycle_over, who_must_act
from taskwall.core.view import Overlay, View, age
from taskwall.stores.files.tables import sortable

NODES = "abcdef"
graphs = st.dictionaries(st.sampled_from(NODES), st.lists(st.sampled_from(NODES), max_size=4)).map(
    lambda found: {node: found.get(node, []) for node in NODES}
)


def reaches(graph, start):
    """The nodes at the end of a path of one edge or more."""
    seen, todo = set(), list(graph[start])
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += graph[node]
    return seen


def distance(graph, start, goal):
    """How many edges the shortest path of one or more has."""
    frontier, length = {start}, 0
    while frontier and length <= len(graph):
        frontier, length = {after for node in frontier for after in graph[node]}, length + 1
        if goal in frontier:
            return length
    return None


def chain(length):
    return {str(n): [str(n + 1)] if n + 1 < length else [] for n in range(length)}


def diamond(layers):
    """Two nodes a layer, each leading to both of the next: 2**layers paths."""
    graph = {f"{side}{n}": [f"l{n + 1}", f"r{n + 1}"] for n in range(layers) for side in "lr"}
    return graph | {f"l{layers}": [], f"r{layers}": []}


@given(graphs)
def test_a_cycle_is_found_exactly_when_a_node_reaches_itself_and_it_is_a_shortest_one(graph):
    for start in graph:
        path = cycle_through(start, graph.__getitem__)
        assert (path is not None) == (start in reaches(graph, start))
        if path:
            assert path[0] == path[-1] == start
            assert all(after in graph[node] for node, after in zip(path, path[1:], strict=False))
            assert len(path) - 1 == distance(graph, start, start)


@given(graphs, st.sets(st.sampled_from(NODES)), st.sampled_from(NODES))
def test_a_path_is_found_from_both_ends_exactly_when_there_is_one(graph, starts, goal):
    back = {node: [before for before in graph if node in graph[before]] for node in graph}
    all_reached = starts.union(*(reaches(graph, start) for start in starts))
    assert reached(starts, graph.__getitem__) == all_reached
    assert leads_to(starts, goal, graph.__getitem__, back.__getitem__) == (goal in all_reached)


@given(graphs, st.sets(st.sampled_from(NODES)))
def test_rings_are_the_sets_that_wait_for_each_other(graph, starts):
    found = {frozenset(ring) for ring in rings(starts, graph.__getitem__)}
    seen = set(starts).union(*(reaches(graph, start) for start in starts)) if starts else set()
    wanted = {
        frozenset(other for other in reaches(graph, node) if node in reaches(graph, other))
        for node in seen
        if node in reaches(graph, node)
    }
    assert found == wanted


@given(graphs)
def test_ranks_are_the_longest_chains_behind_and_ignore_rings(graph):
    ranks = longest_chains(graph)
    in_or_before_ring = {node for node in graph if any(n in reaches(graph, n) for n in reaches(graph, node))}

    def longest(node):
        return max((longest(after) + 1 for after in graph[node] if after not in in_or_before_ring), default=0)

    assert ranks == {node: longest(node) for node in graph}


@given(st.lists(st.text("ab019_", min_size=1, max_size=6), max_size=6))
def test_natural_order_is_total_over_any_ids_and_numbers_count_as_numbers(names):
    tasks = [Task(name, "s") for name in [*names, *(f"0{name}" for name in names)]]  # `01` counts as `1` does
    assert [t.id for t in sorted(tasks, key=age)] == [t.id for t in sorted(reversed(tasks), key=age)]


@given(st.lists(st.text("ab0129\u0660\u0663_ ", max_size=7), max_size=8))
def test_what_the_index_sorts_ids_by_is_their_natural_order(names):
    assert sorted(sorted(names), key=sortable) == sorted(sorted(names), key=natural)
    assert all((sortable(a) == sortable(b)) == (natural(a) == natural(b)) for a in names for b in names)


def test_task_2_comes_before_task_10():
    assert sorted(["task_10", "task_2", "do10", "do9", "10", "9"], key=natural) == [
        "9", "10", "do9", "do10", "task_2", "task_10",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_chain_of_100_000_nodes_does_not_recurse():
    graph = chain(100_000)
    assert cycle_through("0", graph.__getitem__) is None
    assert list(rings(graph, graph.__getitem__)) == []
    assert longest_chains(graph)["0"] == 99_999
    graph["99999"] = ["0"]
    assert len(cycle_through("0", graph.__getitem__)) == 100_001
    assert len(next(rings(["5"], graph.__getitem__))) == 100_000


def test_a_diamond_of_1_000_layers_does_not_explode():
    graph = diamond(1000)
    assert cycle_through("l0", graph.__getitem__) is None
    assert list(rings(graph, graph.__getitem__)) == []
    assert longest_chains(graph)["l0"] == 1000
    graph["r1000"] = ["l0"]
    assert len(cycle_through("l0", graph.__getitem__)) == 1002


class Asked(View):
    """A view that counts how often it is asked for a task."""

    asked = 0

    def get(self, task_id):
        self.asked += 1
        return super().get(task_id)


LAYERS = 500


@pytest.mark.parametrize(
    ("waiter", "blocker"), [("new", "l0"), (f"l{LAYERS}", "old"), ("l3", "r8"), (f"l{LAYERS - 8}", f"r{LAYERS - 3}")]
)
def test_one_more_edge_costs_what_the_smaller_side_of_it_has_on_diamonds_of_many_layers(waiter, blocker):
    tasks = [Task(name, "s", blocked_by=tuple(after)) for name, after in diamond(LAYERS).items()]
    view = Asked([*tasks, Task("new", "s"), Task("old", "s")], {}, Settings())
    view.behind(tasks[0])  # who waits for whom is known to a board that was read
    view.asked = 0
    edited = view.get(waiter).replace(blocked_by=(*view.get(waiter).blocked_by, blocker))
    assert find_cycle_over(Overlay(view, [edited]), waiter, [blocker]) is None
    assert view.asked < 150


def test_a_new_task_costs_little_however_much_it_waits_for():
    tasks = [Task(name, "s", blocked_by=tuple(after)) for name, after in diamond(LAYERS).items()]
    view = Asked([*tasks, Task("epic", "s")], {}, Settings())
    view.behind(tasks[0])
    view.asked = 0
    new = Task("new", "s", blocked_by=("l0",), parent="epic")
    assert find_cycle(Overlay(view, [new]), ["new"]) is None
    assert view.asked < 50


def test_a_new_task_that_an_old_one_names_already_may_close_a_cycle():
    view = View([Task("old", "s", blocked_by=("new",)), Task("epic", "s", blocked_by=("old",))], {}, Settings())
    assert find_cycle(Overlay(view, [Task("new", "s", blocked_by=("epic",))]), ["new"]) is not None
    assert find_cycle(Overlay(view, [Task("new", "s")]), ["new"]) is None


@pytest.mark.slow
def test_a_board_of_100_000_tasks_in_a_row_is_searched_for_cycles_and_followed_to_its_end():
    tasks = [Task(str(n), "s", blocked_by=(str(n + 1),)) for n in range(99_999)]
    view = View([*tasks, Task("99999", "s", owner="user")], {}, Settings())
    assert find_cycle(view, ["0"]) is None
    assert view.rank("99999") == 99_999
    waiting = who_must_act(view, [tasks[0]])
    assert waiting.decisions == (("user", "99999"),)
    assert waiting.code == "waiting_on_person"


def test_cycles_are_the_same_whatever_the_order_in_which_files_are_read():
    tasks = [
        Task(name, "s", blocked_by=tuple(after))
        for name, after in {"a": "b", "b": "c", "c": "ad", "d": "e", "e": "d"}.items()
    ]
    random.Random(1).shuffle(tasks)
    cycles = who_must_act(View(tasks, {}, Settings())).cycles
    assert sorted(cycles) == [("a", "b", "c", "a"), ("d", "e", "d")]
