"""Random trees of queues and random names, and a plain second opinion on what a name stands for.

Law: the second opinion shares no code with the resolver: it splits paths into lists of parts and compares
these. The trees double the names of leaves, have names that begin like others, leaves that are called like a
parent, and parents without children; ``root`` may be the name of a queue below root, too.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from yarnctl.deciding.queue_names import NamedQueues, QueueTree, resolved
from yarnctl.deciding.reasons.queue_naming import AmbiguousQueue, NoLeafQueue, ParentQueue, QueueInBothRoles
from yarnctl.hadoop.wire import views, yarn

WORDS = ("a", "ab", "abc", "b", "etl", "prod", "production", "default", "root", "x-1", "users", "d_s")
DEPTH_MAX, WIDTH_MAX = 4, 4

Path = tuple[str, ...]


class Tree(NamedTuple):
    """Queues by their parts, in the order of the scheduler's answer, and that answer's shape."""

    leaves: list[Path]
    parents: list[Path]
    root: yarn.QueueInfo


def random_tree(chance: random.Random) -> Tree:
    """Return a tree in which every queue says whether it is a leaf."""
    found = Tree([], [], yarn.QueueInfo("root"))

    def grown(above: Path) -> yarn.QueueInfo:
        path_is_root = len(above) == 1
        deep = len(above) > DEPTH_MAX
        if not path_is_root and (deep or chance.random() < 0.55):
            found.leaves.append(above)
            kind, queue_type = chance.choice([("capacitySchedulerLeafQueueInfo", ""), ("", "leaf")])
            return yarn.QueueInfo(above[-1], kind=kind, queue_type=queue_type)
        found.parents.append(above)
        names = chance.sample(WORDS, chance.randint(0 if not path_is_root else 1, WIDTH_MAX))
        rows = tuple(grown((*above, name)) for name in names)
        return yarn.QueueInfo(above[-1], queue_type="parent", below=yarn.QueueList(rows))

    return found._replace(root=grown(("root",)))


def random_name(chance: random.Random, tree: Tree) -> str:
    """Return a name: the end of some queue's path, its whole path, or a distortion of one."""
    parts = list(chance.choice(tree.leaves + tree.parents))
    parts = parts[-chance.randint(1, len(parts)) :]
    fate = chance.random()
    if fate < 0.1:
        parts[chance.randrange(len(parts))] = chance.choice(WORDS)
    elif fate < 0.2:
        parts.insert(0, chance.choice(("root", *WORDS)))
    elif fate < 0.25:
        parts[0] = parts[0][1:]
    elif fate < 0.3:
        parts.append("")
    return ".".join(parts)


def meant(name: str, paths: list[Path]) -> list[Path]:
    """Return the paths that a name may stand for, compared part by part."""
    parts = tuple(name.split("."))
    if parts[0] == "root":
        return [path for path in paths if path == parts]
    return [path for path in paths if len(parts) < len(path) and path[len(path) - len(parts) :] == parts]


def check_names(seed: int) -> None:
    """Compare the resolver with the second opinion on one random tree; raises AssertionError."""
    chance = random.Random(seed)
    tree = random_tree(chance)
    known = views.queue_tree(tree.root)
    assert list(known.leaves) == [".".join(path) for path in tree.leaves]
    assert list(known.parents) == [".".join(path) for path in tree.parents]
    names = [random_name(chance, tree) for _ in range(8)]
    for name in names:
        _check_name(name, tree, known)
    for path in tree.leaves:
        _check_leaf(path, tree, known)
    _check_roles(names[:3], names[3:6], tree, known)


def _check_name(name: str, tree: Tree, known: QueueTree) -> None:
    found, expected = known.resolve(name), [".".join(path) for path in meant(name, tree.leaves)]
    if len(expected) == 1:
        assert found == expected[0], name
    elif expected:
        assert isinstance(found, AmbiguousQueue), (name, found)
        assert (found.count, list(found.paths)) == (len(expected), expected[:20]), name
    elif above := meant(name, tree.parents):
        below = [path for path in tree.leaves if any(path[: len(one)] == one for one in above)]
        assert isinstance(found, ParentQueue), (name, found)
        assert (found.count, list(found.leaves)) == (len(below), [".".join(path) for path in below][:20])
    else:
        assert isinstance(found, NoLeafQueue), (name, found)
        assert set(found.nearest) <= set(known.leaves)


def _check_leaf(path: Path, tree: Tree, known: QueueTree) -> None:
    """Each leaf is found by its path, by what YARN writes beside its applications, and as it is submitted."""
    whole, last = ".".join(path), path[-1]
    assert known.resolve(whole) == whole
    assert known.of_application(whole) == whole
    alone = sum(one[-1] == last for one in tree.leaves) == 1
    assert known.of_application(last) == (whole if alone else None)
    submitted = known.submitted(whole)
    assert submitted in (whole, last)
    if submitted == last:
        assert sum(one[-1] == last for one in tree.leaves + tree.parents) == 1


def _check_roles(preempting: list[str], preemptable: list[str], tree: Tree, known: QueueTree) -> None:
    """A name that stands for no one queue, and a queue in both roles, is a problem; nothing else is."""
    found = resolved(NamedQueues(tuple(preempting), tuple(preemptable)), known)
    stands = {name: meant(name, tree.leaves + tree.parents) for name in (*preempting, *preemptable)}
    unique = {name: paths[0] for name, paths in stands.items() if len(paths) == 1}
    twice = {
        max(unique[one], unique[other], key=len)
        for one in preempting
        for other in preemptable
        if one in unique and other in unique
        if all(part == as_other for part, as_other in zip(unique[one], unique[other], strict=False))
    }
    assert dict(found.paths) == {n: ".".join(path) for n, path in unique.items() if path in tree.leaves}
    assert dict(found.parents) == {n: ".".join(path) for n, path in unique.items() if path in tree.parents}
    assert bool(found.problems) == (len(unique) < len(stands) or bool(twice))
    both = {one.path for one in found.problems if isinstance(one, QueueInBothRoles)}
    assert both == {".".join(path) for path in twice}
    for names in (preempting, preemptable):
        below = {
            ".".join(leaf)
            for leaf in tree.leaves
            for name in names
            if name in unique and leaf[: len(unique[name])] == unique[name]
        }
        assert set(found.of(names)) == below
