"""SLD resolution of one goal in plain Python, from the definition: what the batched engine must agree with.

Atoms are tuples (predicate, a, b); constants are positive numbers, variables are strings.
"""

from itertools import count


def walk(term, binding):
    while term in binding:
        term = binding[term]
    return term


def unify(left, right, binding):
    """The most general unifier of two atoms that extends `binding`, or None."""
    if left[0] != right[0]:
        return None
    binding = dict(binding)
    for a, b in zip(left[1:], right[1:], strict=True):
        a, b = walk(a, binding), walk(b, binding)
        if a == b:
            continue
        if isinstance(a, str):
            binding[a] = b
        elif isinstance(b, str):
            binding[b] = a
        else:
            return None
    return binding


def substitute(atom, binding):
    return (atom[0], *(walk(term, binding) for term in atom[1:]))


def renamed_apart(rule, fresh):
    """A rule (head, body) with variables −1, −2, … as new strings."""
    names = {}

    def term(value):
        return value if value > 0 else names.setdefault(value, f"V{next(fresh)}")

    head, *body = ((p, term(a), term(b)) for p, a, b in (rule.head, *rule.body))
    return head, body


def canonical(goal):
    """The goal with variables numbered by first appearance."""
    names = {}
    return tuple(
        (p, *(names.setdefault(t, f"X{len(names) + 1}") if isinstance(t, str) else t for t in terms))
        for p, *terms in goal
    )


def successors(goal, facts, rules, excluded=None):
    """All resolvents of the first atom, rules first, known ground atoms dropped, variables canonical."""
    usable, fresh = [fact for fact in facts if fact != excluded], count()
    first, rest = goal[0], list(goal[1:])
    clauses = [renamed_apart(rule, fresh) for rule in rules] + [(fact, []) for fact in usable]
    found = []
    for head, body in clauses:
        binding = unify(first, head, {})
        if binding is not None:
            atoms = [substitute(atom, binding) for atom in (*body, *rest)]
            found.append(canonical(atom for atom in atoms if atom not in usable))
    return found


def proof_depth(query, facts, rules, *, limit, excluded=None):
    """The fewest steps that empty the goal, or None if that takes more than `limit`."""
    frontier = {canonical([query])}
    for depth in range(1, limit + 1):
        further = {new for goal in frontier for new in successors(goal, facts, rules, excluded)}
        if () in further:
            return depth
        frontier = further
    return None
