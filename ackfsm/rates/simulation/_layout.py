"""The memory of the kernel: what each word of it means.

It is one array of integers.  Its first words are *registers*, with fixed addresses; behind them are records: an event,
a row, a message and a link are known by the addresses of their records, and ``m[slot + KEY]`` is a field of one.

A *row* is a state of one product of machines (those of a copy, of a producer, of its window …), as the engine has them;
``m[row + SUCCESSOR + signal]`` is the row after it, :data:`REFUSED`, or :data:`UNKNOWN` until somebody asks the tables.
A message is in a *slot* as long as anything can become of it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Memory: TypeAlias = list[int]
"""A list, or an array, of integers."""

# what run() returns
ENDED: Final = 0
FILL: Final = 1
GROW: Final = 2
PAUSE: Final = 3

# what an event came to
NO: Final = 0
DONE: Final = 1
ASK: Final = 2

# what happens at a time
FRAME_OF_SLOT: Final = 0
FRAME_OF_LINK: Final = 1
BROKER_READS: Final = 2
PRODUCER_WAKES: Final = 3
WORK_DONE: Final = 4
SYNC_DONE: Final = 5
TIMER_DONE: Final = 6
CREDIT: Final = 7

# what a consumer does
IDLE: Final = 0
BUSY: Final = 1
SETTLES: Final = 2
IN_ACKNOWLEDGE: Final = 3
COMMITS: Final = 4
IN_COMMIT: Final = 5

NOTHING: Final = -1
REFUSED: Final = -1
UNKNOWN: Final = -2

# registers: the state of the run
NOW: Final = 0
SERIAL: Final = 1
CHANCE: Final = 2
FREE: Final = 3  # the first free slot
NEXT_KEY: Final = 4
NEXT_PLACE: Final = 62
WORK_FIRST: Final = 5  # slots to look at
WORK_LAST: Final = 6
TO_DISPATCH: Final = 7
UNSYNCED_FIRST: Final = 8  # slots and links that a sync has to take
UNSYNCED_LAST: Final = 9
TAKEN: Final = 10  # those that it is taking
SYNCING: Final = 11
NEXT_CONSUMER: Final = 12
BROKER_FREE: Final = 13
TIMED: Final = 14  # entries of the heap
MOVED: Final = 15  # moves of the event that is asked about
REFUSER: Final = 16
REFUSER_ROLE: Final = 17
ASKED_ROW: Final = 18
ASKED_SIGNAL: Final = 19
HELD: Final = 23  # nothing is dispatched yet
UNTIL_PAUSE: Final = 38  # so many times something is taken out of the heap
NEXT_NUMBER: Final = 75  # of the next block
OVERFLOWN: Final = 63  # more events of a message waited for something than there was room for

# figures
HAPPENED: Final = 20
ACCEPTED: Final = 21
PROCESSED: Final = 22

# registers: where things are, and how many there is room for
HEAP: Final = 24
HEAP_ROOM: Final = 25
MOVES: Final = 26
SLOTS: Final = 27
FIRST_PRODUCER: Final = 28
FIRST_CONSUMER: Final = 29
QUEUE: Final = 30
BROKER: Final = 31
ACCEPTED_AT: Final = 32
PROCESSED_AT: Final = 33
CONFIRM_LATENCY: Final = 34
DELIVERY_LATENCY: Final = 35
INITIAL: Final = 36  # the row of a message that is not sent yet
READY: Final = 37  # the list of the queue that holds what may be dispatched
SCOPES_AT: Final = 39  # the scope of each: 0 producer, 1 queue, 2 consumer

# registers: the workload, in ticks and messages
MESSAGES: Final = 40
UP: Final = 41
DOWN: Final = 42
GROUP_COMMIT: Final = 43
PER_COMMIT: Final = 44  # 0 without transactions
SETTLED_AT: Final = 45
INTERVAL: Final = 46
PREFETCH: Final = 47  # 0 without a bound
CREDIT_ON_DELIVERY: Final = 48
WAITS_IN_CALL: Final = 49
SETTLES_WHEN_IDLE: Final = 50
TIMEOUT: Final = 51
HALF_RTT: Final = 52  # a time with its distribution: 0 constant, 1 exponential, 2 uniform up to twice the mean
SEND_TIME: Final = 54
BROKER_TIME: Final = 56
SYNC_TIME: Final = 58
PROCESSING_TIME: Final = 60

# registers: events that those who act bring about or notice
E_SEND: Final = 64
E_COMMIT: Final = 65
E_PROCESSED: Final = 66
E_ACKNOWLEDGE: Final = 67
E_CONSUMER_COMMIT: Final = 68
E_ACCEPT: Final = 69
E_ARRIVE: Final = 70
E_CONFIRMED: Final = 71
E_BY_RANGE: Final = 72
E_COMMIT_RETURNED: Final = 73
E_CONSUMER_COMMIT_RETURNED: Final = 74

# registers: the lists of all messages of a link that take part in its events
ALL_OF_PRODUCER: Final = 76
ALL_OF_CONSUMER: Final = 77

REGISTERS: Final = 80

# an event
WAY: Final = 0
ROLES: Final = 1  # the groups that take part, as bits
SIGNAL: Final = 2  # that to its own message
BIT: Final = 3  # of those that take time; 0 for all others
OF_LINK: Final = 4
BROADCASTS: Final = 5  # how many follow, each in three words
TO_OTHERS: Final = 6

# a broadcast of an event
B_LIST: Final = 0
B_SIGNAL: Final = 1
B_LATER: Final = 2  # 1: earlier messages hear of a later one, 0: later ones of an earlier one
BROADCAST_SIZE: Final = 3

# how an event is brought about
AT_ONCE: Final = 0
FRAME: Final = 1
SYNC: Final = 2
DISPATCH: Final = 3
TIMER: Final = 4

# a row
INDEXED: Final = 0  # the lists in which a message with this row stands, as bits
FINISHED: Final = 1
ACKNOWLEDGEABLE: Final = 2
AWAITS_ANSWER: Final = 3
DELIVERED_BY: Final = 4
ENABLED: Final = 5  # events of its own, then NOTHING
EVENTS_OF_A_ROW: Final = 24
SUCCESSOR: Final = ENABLED + EVENTS_OF_A_ROW

# the roles of groups of machines, in the order of spec/execution.yaml
LAST_OF_PRODUCER: Final = 3
PREFETCH_ROLE: Final = 5
BROKER_ROLE: Final = 6

# what slots and links have in common
NEXT_UNSYNCED: Final = 0
FLYING: Final = 1  # frames that are on their way, as bits
ARRIVED: Final = 2  # of them those that have come
QUEUED: Final = 3  # 0, or what the next sync takes
SYNCED: Final = 4
FIRST_BLOCK: Final = 5  # who waits for this to move
IS_LINK: Final = 6

# a slot
ROW: Final = 7
KEY: Final = 8
PRODUCER: Final = 9
CONSUMER: Final = 10
SENT_AT: Final = 11
LINKED: Final = 12  # the lists in which it stands
NEXT_FREE: Final = 13
NEXT_WORK: Final = 14
IN_WORK: Final = 15
NEXT_IN_LIBRARY: Final = 16
PLACE: Final = 17  # in the queue: producers may get their messages there in another order than that of sending
BLOCKS: Final = 18

# a block: that an event of a slot waits for a slot to move, or for a group of a link
BLOCK_NEXT: Final = 0
BLOCK_BEFORE: Final = 1
BLOCK_PLACE: Final = 2  # the slot, or the kind
BLOCK_NUMBER: Final = 3  # they are woken in the reverse order of these
BLOCK_SLOT: Final = 4
BLOCK_SIZE: Final = 5
BLOCKS_OF_A_SLOT: Final = 4

NEIGHBOURS: Final = BLOCKS + BLOCK_SIZE * BLOCKS_OF_A_SLOT  # in each list: behind, and before
PER_LIST: Final = 2

# a link, and the queue and the broker, which have its lists and groups
NEXT_LINK: Final = 7
GROUPS: Final = 8  # the row of each role
ROLE_COUNT: Final = 7
WAITS: Final = 15
TIMER_AT: Final = 16
IS_PRODUCER: Final = 17
HAS_TO_ACT: Final = 18
REFUSED_EVENT: Final = 19  # the last event of it that one of its messages refused,
REFUSED_BY: Final = 20  # and which did: as long as it refuses, no other need be asked
KIND_COUNT: Final = 21

# a producer
SENT: Final = 22
IN_TRANSACTION: Final = 23
READY_AT: Final = 24
SOCKET_AT: Final = 25
WAKES_AT: Final = 26
IN_CALL: Final = 27
LINE_FREE: Final = 28
QUOTA: Final = 29

# a consumer
ACTING: Final = 22
CURRENT: Final = 23
UNSETTLED: Final = 24
CONSUMED: Final = 25
OUT: Final = 26
IS_DUE: Final = 27
DOWN_FREE: Final = 28
LIBRARY_FIRST: Final = 29
LIBRARY_LAST: Final = 30

KINDS: Final = 31

# a kind: all blocks that wait for a group of a link to allow one and the same signal
KIND_ROLE: Final = 0
KIND_SIGNAL: Final = 1
KIND_WAKES: Final = 2
KIND_SIZE: Final = 6  # FIRST_BLOCK is where slots have it
KINDS_OF_A_LINK: Final = 48

ENDS: Final = KINDS + KIND_SIZE * KINDS_OF_A_LINK  # of each list: its first, and its last

# an entry of the heap
AT: Final = 0
ORDER: Final = 1
KIND: Final = 2
SUBJECT: Final = 3
EVENT: Final = 4
ENTRY_SIZE: Final = 5

# a move
M_ROLE: Final = 0
M_SUBJECT: Final = 1
M_TARGET: Final = 2
MOVE_SIZE: Final = 3
