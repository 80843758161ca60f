"""The inner loops of views: states of parts, the fixpoint, the steps between views, and products with what watches.

All functions mean the same to Python and to Numba.  What grows stands in arrays with room; a function that may run out
of it stops before, and is called again when there is more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "STEPS_OF_A_WORD",
    "Edges",
    "PartArrays",
    "PossibleSteps",
    "StepArrays",
    "ViewArrays",
    "add_states",
    "allowed_as_bits",
    "begin",
    "close",
    "expand",
    "expand_all",
    "find_edges",
    "gather",
    "index_of",
    "look_up",
    "look_up_states",
    "number_of",
    "redirect",
    "refine",
    "spread",
    "trace",
    "track",
    "watch",
]

BITS = 21
MASK = (1 << BITS) - 1
BEFORE, BEHIND = 0, 2
"""The places of a message before both of a pair, and behind both; one between them is at 1."""

STEPS_OF_A_WORD = 62
"""So few that a word with a single bit is a number above 0."""

_WORD = 64
_MULTIPLIER = -7046029254386353131  # 2**64 divided by the golden ratio, odd, as a number with a sign
_SHIFT = 29
_POSITIVE = (1 << 62) - 1


class PartArrays(NamedTuple):
    """The states of some machines (rows of ``states``) by number, and their next states by steps.

    Step ``s`` moves the machines ``machine[i]`` for ``i`` from ``first[s]`` up to ``first[s + 1]``, each by the column
    that begins at ``column[i]`` of ``columns``.  ``after[n, s]`` is the next state of ``n``, or -1.  ``used[0]`` states
    have numbers; ``table`` finds them by what they hash to.
    """

    states: Any
    hashes: Any
    after: Any
    expanded: Any
    table: Any
    used: Any
    first: Any
    machine: Any
    column: Any
    columns: Any


class StepArrays(NamedTuple):
    """The steps of a view, in rows of ``steps``: event, step of the system, those of the slots, and place.

    ``place`` is -1 for what the system or a message of the view does, else where the message is that does it.  Counter
    ``i`` of the system is machine ``counters[i]``, its ghost machine ``ghosts[i]`` of a message, and ``limits[i, q]``
    the highest number that its state ``q`` stands for.  If there are ``halves``, no view has a half that is not among
    them: a row for each state of the system, with the states of a message.  ``by_others[1]`` and ``by_others[0]`` are
    the steps with a ``place`` and those without, in words of ``STEPS_OF_A_WORD`` bits; ``bit_of`` has the place of a
    bit in its word by the remainder of the division by its length.
    """

    slots: int
    steps: Any
    by_others: Any
    bit_of: Any
    counters: Any
    ghosts: Any
    limits: Any
    lost: int
    halves: Any


class PossibleSteps(NamedTuple):
    """The steps of a view that a state of the system, and one of a message in each slot, does not refuse, as bits.

    Beside them are those that leave it as it is.  Both are there for what is ``known``.
    """

    system: Any
    message: Any
    system_stays: Any
    message_stays: Any
    known_system: Any
    known_message: Any


class ViewArrays(NamedTuple):
    """Views as packed numbers, in the order in which they were met; ``done`` are the events of others, as bits.

    ``owned`` are, for each half of a view (the system and one message), the events of messages that the other half
    has been seen to own, of an earlier one and of a later one; ``halves`` finds the number of a half.
    """

    packed: Any
    done: Any
    table: Any
    used: Any
    half: Any
    owned: Any
    halves: Any
    half_table: Any


class Edges(NamedTuple):
    """The steps between views that change them: those of view ``v`` are ``first[v]`` to ``first[v + 1]``.

    Of each the number, and the view that it leads to.  ``stays`` are the steps that leave a view as it is, as bits.
    """

    first: Any
    step: Any
    target: Any
    stays: Any


def hash_of(value: int) -> int:
    """A number without a sign that spreads ``value``."""
    mixed = (value ^ (value >> _SHIFT)) * _MULTIPLIER
    return (mixed ^ (mixed >> _SHIFT)) & _POSITIVE


def share_of(machine: int, state: int) -> int:
    """What one machine adds to the hash of the states of all."""
    return hash_of((machine << BITS) + state + 1)


def hash_of_states(states: Any) -> int:
    """What the states of all machines hash to."""
    hashed = 0
    for machine in range(len(states)):
        hashed = (hashed + share_of(machine, states[machine])) & _POSITIVE
    return hashed


def begin(part: PartArrays, states: Any) -> None:
    """Make ``states`` number 0."""
    put_states(part, 0, states)
    part.used[0] = 1
    part.hashes[0] = hash_of_states(states)
    look_up_states(part)


def put_states(part: PartArrays, number: int, states: Any) -> None:
    """Make ``states`` those of all machines at ``number``."""
    for machine in range(len(states)):
        part.states[number, machine] = states[machine]


def has_states(part: PartArrays, number: int, states: Any) -> bool:
    """Whether ``states`` are those of all machines at ``number``."""
    same = True
    for machine in range(len(states)):
        same &= part.states[number, machine] == states[machine]
    return same


def look_up_states(part: PartArrays) -> None:
    """Put all numbers into an empty table."""
    size = len(part.table) - 1
    for number in range(part.used[0]):
        at = hash_of(part.hashes[number]) & size
        while part.table[at] >= 0:
            at = (at + 1) & size
        part.table[at] = number


def number_of(part: PartArrays, states: Any) -> int:
    """The number of ``states``; -1 if they were not met."""
    hashed, size = hash_of_states(states), len(part.table) - 1
    at = hash_of(hashed) & size
    while part.table[at] >= 0:
        number = part.table[at]
        if part.hashes[number] == hashed and has_states(part, number, states):
            return int(number)
        at = (at + 1) & size
    return -1


def find_state(part: PartArrays, number: int, step: int, hashed: int) -> int:
    """The number of the state after ``step`` of ``number``, which hashes to ``hashed``; a new one if it is new."""
    size = len(part.table) - 1
    at = hash_of(hashed) & size
    while True:
        found = part.table[at]
        if found < 0:
            break
        if part.hashes[found] == hashed and is_after(part, number, step, found):
            return int(found)
        at = (at + 1) & size
    found = part.used[0]
    part.used[0] = found + 1
    part.table[at] = found
    part.hashes[found] = hashed
    for machine in range(part.states.shape[1]):
        part.states[found, machine] = part.states[number, machine]
    for i in range(part.first[step], part.first[step + 1]):
        machine = part.machine[i]
        part.states[found, machine] = part.columns[part.column[i] + part.states[number, machine]]
    return int(found)


def is_after(part: PartArrays, number: int, step: int, found: int) -> bool:
    """Whether ``found`` is the state after ``step`` of ``number``."""
    i, last = part.first[step], part.first[step + 1]
    for machine in range(part.states.shape[1]):
        state = part.states[number, machine]
        if i < last and part.machine[i] == machine:
            state = part.columns[part.column[i] + state]
            i += 1
        if part.states[found, machine] != state:
            return False
    return True


def add_state(part: PartArrays, states: Any) -> int:
    """The number of ``states``; a new one if they are new.  There has to be room for it."""
    number = number_of(part, states)
    if number < 0:
        number = part.used[0]
        part.used[0] = number + 1
        put_states(part, number, states)
        part.hashes[number] = hash_of_states(states)
        size = len(part.table) - 1
        at = hash_of(part.hashes[number]) & size
        while part.table[at] >= 0:
            at = (at + 1) & size
        part.table[at] = number
    return int(number)


def add_states(part: PartArrays, rows: Any, numbers: Any, position: int) -> int:
    """Put the numbers of the states in ``rows`` into ``numbers``, from ``position`` on; where there is no more room."""
    while position < len(rows) and part.used[0] < len(part.hashes):
        numbers[position] = add_state(part, rows[position])
        position += 1
    return position


def expand(part: PartArrays, number: int) -> bool:
    """See to it that the next states of ``number`` are known; false if there is no room for them."""
    if part.expanded[number]:
        return True
    steps = len(part.first) - 1
    if part.used[0] + steps > len(part.hashes):
        return False
    part.expanded[number] = True
    for step in range(steps):
        hashed, moved, refused = part.hashes[number], False, False
        for i in range(part.first[step], part.first[step + 1]):
            machine = part.machine[i]
            before = part.states[number, machine]
            state = part.columns[part.column[i] + before]
            if state < 0:
                refused = True
                break
            if state != before:
                moved = True
                hashed = (hashed + share_of(machine, state) - share_of(machine, before)) & _POSITIVE
        if refused:
            part.after[number, step] = -1
        elif moved:
            part.after[number, step] = find_state(part, number, step, hashed)
        else:
            part.after[number, step] = number
    return True


def expand_all(part: PartArrays, position: int, last: int) -> int:
    """Expand the numbers from ``position`` up to ``last``; where to go on when there is more room."""
    for number in range(position, last):
        if not expand(part, number):
            return number
    return last


def refine(after: Any, blocks: Any, finer: Any, table: Any) -> int:
    """Split ``blocks`` of states by the blocks that they lead to, into ``finer``; how many those are.

    ``table`` is empty.  A block has the number of its first state.  Next states without a block are all alike.
    """
    found, size, steps, met = 0, len(table) - 1, after.shape[1], len(blocks)
    for number in range(met):
        hashed = hash_of(blocks[number])
        for step in range(steps):
            leads_to = after[number, step]
            if leads_to >= 0:
                hashed = (hashed + share_of(step, blocks[leads_to] if leads_to < met else met)) & _POSITIVE
        at = hash_of(hashed) & size
        while table[at] >= 0:
            first = table[at]
            same = blocks[first] == blocks[number]
            for step in range(steps):
                mine, its = after[number, step], after[first, step]
                if mine != its:
                    both = 0 <= mine < met and 0 <= its < met
                    same = same and ((both and blocks[mine] == blocks[its]) or (mine >= met and its >= met))
                if not same:
                    break
            if same:
                break
            at = (at + 1) & size
        if table[at] < 0:
            table[at] = number
            found += 1
        finer[number] = table[at]
    return found


def redirect(after: Any, kept: Any) -> None:
    """Let each step of the first states, as many as there are ``kept``, lead to the one that is kept."""
    met = len(kept)
    for number in range(met):
        for step in range(after.shape[1]):
            if 0 <= after[number, step] < met:
                after[number, step] = kept[after[number, step]]


def allowed_as_bits(part: PartArrays, steps: Any, found: Any) -> None:
    """Set the bit of the event of each of ``steps`` (event, number) that a state does not refuse, if it is expanded."""
    for state in range(part.used[0]):
        for i in range(len(steps) if part.expanded[state] else 0):
            event = steps[i, 0]
            if part.after[state, steps[i, 1]] >= 0:
                found[state, event // _WORD] |= 1 << (event % _WORD)


def index_of(packed: Any, table: Any, value: int) -> int:
    """Where ``value`` is among ``packed``; -1 if it is not."""
    size = len(table) - 1
    at = hash_of(value) & size
    while table[at] >= 0:
        if packed[table[at]] == value:
            return int(table[at])
        at = (at + 1) & size
    return -1


def look_up(packed: Any, used: int, table: Any) -> None:
    """Put where each of ``packed`` is into an empty table."""
    size = len(table) - 1
    for number in range(used):
        at = hash_of(packed[number]) & size
        while table[at] >= 0:
            at = (at + 1) & size
        table[at] = number


def insert(packed: Any, table: Any, used: Any, which: int, value: int) -> int:
    """Where ``value`` is among ``packed``, at the end if it is new; ``used[which]`` are in use."""
    size = len(table) - 1
    at = hash_of(value) & size
    while table[at] >= 0:
        if packed[table[at]] == value:
            return int(table[at])
        at = (at + 1) & size
    found = used[which]
    table[at] = found
    packed[found] = value
    used[which] = found + 1
    return int(found)


def find_targets(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: PartArrays,
    message: PartArrays,
    steps: StepArrays,
    possible: PossibleSteps,
    view: int,
    by_others: int,
    allowed: Any,
    targets: Any,
) -> int:
    """The other views after the steps of one, packed, into ``targets[0]``, with the steps in ``targets[1]``; how many.

    They are what the system and messages of the view do, or, if ``by_others`` is 1, what others do at places where
    it is ``allowed``; without what is refused or unreal.
    """
    # No functions are called here: Numba counts references to each array that it passes on.
    rows, slots = steps.steps, steps.slots
    of_system, of_message = system.after, message.after
    machines = view >> (BITS * slots)
    first = (view >> (BITS * (slots - 1))) & MASK
    second = view & MASK
    found = 0
    for word in range(steps.by_others.shape[1]):
        left = steps.by_others[by_others, word] & possible.system[machines, word]
        left &= possible.message[0, first, word] & possible.message[slots - 1, second, word]
        stays = possible.message_stays[0, first, word] & possible.message_stays[slots - 1, second, word]
        left &= ~(stays & possible.system_stays[machines, word])
        while left != 0:
            lowest = left & -left
            left ^= lowest
            step = word * STEPS_OF_A_WORD + steps.bit_of[lowest % len(steps.bit_of)]
            event = rows[step, 0]
            if by_others == 1 and not (allowed[rows[step, 4], event // _WORD] >> (event % _WORD)) & 1:
                continue
            next_machines, next_first = of_system[machines, rows[step, 1]], of_message[first, rows[step, 2]]
            next_second = of_message[second, rows[step, 3]] if slots > 1 else next_first
            real = True
            for i in range(len(steps.counters)):
                ghost = steps.ghosts[i]
                counted = 0
                if message.states[next_first, ghost] != steps.lost:
                    counted += message.states[next_first, ghost]
                if slots > 1 and message.states[next_second, ghost] != steps.lost:
                    counted += message.states[next_second, ghost]
                real = real and counted <= steps.limits[i, system.states[next_machines, steps.counters[i]]]
            if real and len(steps.halves) > 0:
                known, states = steps.halves.shape
                real = next_machines < known and next_first < states and next_second < states
                real = real and steps.halves[next_machines, next_first] and steps.halves[next_machines, next_second]
            if real:
                half = (next_machines << BITS) | next_first
                targets[0, found] = (half << BITS) | next_second if slots > 1 else half
                targets[1, found] = step
                found += 1
    return found


def note_possible(after: Any, numbers: Any, possible: Any, stays: Any, state: int) -> None:
    """Note the steps that a state does not refuse, of the ``numbers`` that they have in its part."""
    for step in range(len(numbers)):
        word, bit = step // STEPS_OF_A_WORD, 1 << (step % STEPS_OF_A_WORD)
        if after[state, numbers[step]] >= 0:
            possible[state, word] |= bit
        if after[state, numbers[step]] == state:
            stays[state, word] |= bit


def is_expanded(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: PartArrays, message: PartArrays, steps: StepArrays, possible: PossibleSteps, machines: int, state: int
) -> bool:
    """See to it that the steps of both parts of a view of one message are known; false if there is no room for them."""
    if not possible.known_system[machines]:
        if not expand(system, machines):
            return False
        note_possible(system.after, steps.steps[:, 1], possible.system, possible.system_stays, machines)
        possible.known_system[machines] = True
    if not possible.known_message[state]:
        if not expand(message, state):
            return False
        for slot in range(steps.slots):
            note_possible(
                message.after, steps.steps[:, 2 + slot], possible.message[slot], possible.message_stays[slot], state
            )
        possible.known_message[state] = True
    return True


def note_stays(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    steps: StepArrays, possible: PossibleSteps, view: int, allowed: Any, stays: Any, position: int
) -> None:
    """Note the steps that leave a view as it is; those of others at places where they are ``allowed``."""
    slots = steps.slots
    machines = view >> (BITS * slots)
    first, second = (view >> (BITS * (slots - 1))) & MASK, view & MASK
    for word in range(steps.by_others.shape[1]):
        found = possible.system_stays[machines, word] & possible.message_stays[0, first, word]
        found &= possible.message_stays[slots - 1, second, word]
        left = found & steps.by_others[1, word]
        while left != 0:
            lowest = left & -left
            left ^= lowest
            step = word * STEPS_OF_A_WORD + steps.bit_of[lowest % len(steps.bit_of)]
            event = steps.steps[step, 0]
            if not (allowed[steps.steps[step, 4], event // _WORD] >> (event % _WORD)) & 1:
                found ^= lowest
        stays[position, word] = found


def close(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: PartArrays,
    message: PartArrays,
    steps: StepArrays,
    possible: PossibleSteps,
    views: ViewArrays,
    targets: Any,
    position: int,
    last: int,
) -> int:
    """Add what the system and the messages of the views do, from view ``position`` up to ``last``.

    The view that is not done for want of room, or the first one that is left.  ``targets`` has room for each step.
    """
    slots = steps.slots
    while position < min(last, views.used[0]):
        if views.used[0] + targets.shape[1] > len(views.packed):
            return position
        view = views.packed[position]
        machines, known = view >> (BITS * slots), True
        for slot in range(slots):
            known = known and is_expanded(system, message, steps, possible, machines, (view >> (BITS * slot)) & MASK)
        if not known:
            return position
        found = find_targets(system, message, steps, possible, view, 0, views.done[0], targets)
        for i in range(found):
            insert(views.packed, views.table, views.used, 0, targets[0, i])
        position += 1
    return position


def gather(system: Any, message: Any, slots: int, views: ViewArrays, position: int) -> int:
    """Add the events that one half of each view owns to what is known of the other, from view ``position`` on.

    ``system`` and ``message`` are, for each state of them, the events that they let happen, and own, as bits.  A view
    of one message has one half, the state of the system.
    """
    words = system.shape[1]
    while position < views.used[0]:
        if views.used[1] + slots > len(views.halves):
            return position
        view = views.packed[position]
        machines = view >> (BITS * slots)
        for slot in range(slots):
            half = machines
            if slots > 1:
                half = (machines << BITS) | ((view >> (BITS * (slots - 1 - slot))) & MASK)
            number = insert(views.halves, views.half_table, views.used, 1, half)
            views.half[position, slot] = number
            another = (view >> (BITS * slot)) & MASK
            for word in range(words):
                owned = system[machines, word] & message[another, word]
                views.owned[number, 1 - slot, word] |= owned
                if slots == 1:
                    views.owned[number, 0, word] |= owned
        position += 1
    return position


def spread(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: PartArrays,
    message: PartArrays,
    steps: StepArrays,
    possible: PossibleSteps,
    views: ViewArrays,
    targets: Any,
    fresh: Any,
    position: int,
    last: int,
    chaos: int,
) -> int:
    """Add what messages do that views do not hold, for views from ``position`` up to ``last``, where it is new.

    With ``chaos`` 1 they do whatever views let happen.  ``fresh`` is room for what is new of one view.
    """
    words = views.done.shape[2]
    while position < last:
        if views.used[0] + targets.shape[1] > len(views.packed):
            return position
        some = False
        for place in range(views.done.shape[1]):
            for word in range(words):
                allowed = allowed_at(steps.slots, views, position, place, word, chaos)
                fresh[place, word] = allowed & ~views.done[position, place, word]
                views.done[position, place, word] |= allowed
                some = some or fresh[place, word] != 0
        if some:
            view = views.packed[position]
            found = find_targets(system, message, steps, possible, view, 1, fresh, targets)
            for i in range(found):
                insert(views.packed, views.table, views.used, 0, targets[0, i])
        position += 1
    return position


def allowed_at(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    slots: int, views: ViewArrays, view: int, place: int, word: int, chaos: int
) -> Any:
    """The events, as bits, that a message at this place beside a view may own."""
    if chaos == 1:
        return ~(views.done[0, 0, 0] & 0)
    if slots == 1:
        return views.owned[views.half[view, 0], place, word]
    first, second = views.half[view, 0], views.half[view, 1]
    of_first = views.owned[first, 0 if place == BEFORE else 1, word]
    of_second = views.owned[second, 1 if place == BEHIND else 0, word]
    return of_first & of_second


def has_step(stays: Any, view: int, step: int) -> bool:
    """Whether the bit of a step is set for a view."""
    return bool((stays[view, step // STEPS_OF_A_WORD] >> (step % STEPS_OF_A_WORD)) & 1)


def find_edges(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: PartArrays,
    message: PartArrays,
    steps: StepArrays,
    possible: PossibleSteps,
    views: ViewArrays,
    targets: Any,
    edges: Edges,
    position: int,
) -> int:
    """The steps from view ``position`` on, where they lead, and those that change nothing.

    The view that is not done for want of room, or their number; less than 0 if one leads to none of them.
    """
    edge = edges.first[position]
    while position < views.used[0]:
        if edge + targets.shape[1] > len(edges.step):
            return position
        view = views.packed[position]
        for by_others in range(2):
            found = find_targets(system, message, steps, possible, view, by_others, views.done[position], targets)
            for i in range(found):
                target = index_of(views.packed, views.table, targets[0, i])
                if target < 0:
                    return -1
                edges.step[edge] = targets[1, i]
                edges.target[edge] = target
                edge += 1
        note_stays(steps, possible, view, views.done[position], edges.stays, position)
        position += 1
        edges.first[position] = edge
    return position


def watch(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    edges: Edges, columns: Any, moves: Any, reached: Any, stack: Any, start: int
) -> None:
    """Mark the states of what watches (by ``columns[alternative, step, state]``) that are reached with each view.

    ``moves`` are the steps by which what watches moves at all.
    """
    alternatives, size = columns.shape[0], columns.shape[2]
    reached[start] = True
    stack[0], height = start, 1
    while height > 0:
        height -= 1
        view, state = stack[height] // size, stack[height] % size
        for i in range(edges.first[view], edges.first[view + 1] + len(moves)):
            edge = i < edges.first[view + 1]
            step = edges.step[i] if edge else moves[i - edges.first[view + 1]]
            if edge or has_step(edges.stays, view, step):
                after_view = edges.target[i] if edge else view
                for alternative in range(alternatives):
                    target = after_view * size + columns[alternative, step, state]
                    if not reached[target]:
                        reached[target] = True
                        stack[height] = target
                        height += 1


def track(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    edges: Edges, columns: Any, moves: Any, by_other: Any, inside: Any, states_inside: Any, found: Any, waiting: Any
) -> None:
    """As :func:`watch`, with a bit for each of many questions: whether the other message of the view is the cause.

    ``inside`` and ``states_inside`` say for each view, and each state of what watches, in which questions it is one
    that others bring about; a step of ``by_other`` is the other message's own.  ``found`` has for each state of the
    product the questions in which it is reached without the cause, and with it; the first state is set.  ``waiting``
    has room for a circle of states, each at most once, and whether a state is in it.
    """
    alternatives, size = columns.shape[0], columns.shape[2]
    circle, is_waiting = waiting
    position, used, room = 0, 1, len(circle)
    while position < used:
        current = circle[position % room]
        position += 1
        is_waiting[current] = False
        view, state = current // size, current % size
        without, with_it = found[current, 0], found[current, 1]
        outside = ~(inside[view] | states_inside[state])
        for i in range(edges.first[view], edges.first[view + 1] + len(moves)):
            edge = i < edges.first[view + 1]
            step = edges.step[i] if edge else moves[i - edges.first[view + 1]]
            if edge or has_step(edges.stays, view, step):
                after_view = edges.target[i] if edge else view
                for alternative in range(alternatives):
                    after_state = columns[alternative, step, state]
                    target = after_view * size + after_state
                    is_inside = inside[after_view] | states_inside[after_state]
                    begins = is_inside & outside & by_other[step]
                    then_with = is_inside & (with_it | (without & begins))
                    then_without = (without & ~begins) | (with_it & ~is_inside)
                    news = (then_with & ~found[target, 1]) | (then_without & ~found[target, 0])
                    if news != 0:
                        found[target, 0] |= then_without
                        found[target, 1] |= then_with
                        if not is_waiting[target]:
                            is_waiting[target] = True
                            circle[used % room] = target
                            used += 1


def trace(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    edges: Edges, columns: Any, moves: Any, goal: Any, before: Any, by: Any, queue: Any, start: int
) -> int:
    """The first state of the product that is a ``goal``, and -1 if there is none; breadth first.

    ``before`` is, for each state that was met, the one before it on the way there (-1: not met), ``by`` the step.
    """
    alternatives, size = columns.shape[0], columns.shape[2]
    before[start] = start
    queue[0], position, used = start, 0, 1
    while position < used:
        current = queue[position]
        if goal[current]:
            return int(current)
        position += 1
        view, state = current // size, current % size
        for i in range(edges.first[view], edges.first[view + 1] + len(moves)):
            edge = i < edges.first[view + 1]
            step = edges.step[i] if edge else moves[i - edges.first[view + 1]]
            if edge or has_step(edges.stays, view, step):
                after_view = edges.target[i] if edge else view
                for alternative in range(alternatives):
                    target = after_view * size + columns[alternative, step, state]
                    if before[target] < 0:
                        before[target] = current
                        by[target] = step
                        queue[used] = target
                        used += 1
    return -1
