"""Defects for ``python -m model_tests.defects``: small changes of the engine's source, each as somebody might make it.

E1 to E20 are those that a reviewer put in by hand (E15 and E16 are their nearest siblings: his list does not say what
they were); the others stand by what they break.
"""

from __future__ import annotations

from model_tests.defects_form import Defect

__all__ = ["ENGINE"]

_BROKER, _CONNECTION, _CONSUMER = "engine/_broker.py", "engine/_connection.py", "engine/_consumer.py"
_CORE, _COURSES, _LETTERS = "engine/_core.py", "engine/_courses.py", "engine/_dead_letters.py"
_DISPATCHING, _ENGINE, _LOG = "engine/_dispatching.py", "engine/_engine.py", "engine/_log.py"
_MESSAGES, _PACE, _PARTS = "engine/_messages.py", "engine/_pace.py", "engine/_parts.py"
_PRODUCER, _QUEUES, _SESSION = "engine/_producer.py", "engine/_queues.py", "engine/_session.py"
_STORAGE, _TELLING, _AIO = "engine/_storage.py", "engine/_telling.py", "engine/aio.py"

_REVIEWED = (
    Defect(  # E1
        "acknowledge-one-consumer",
        "acknowledge() covers the messages of its own consumer and not those of the session's others",
        _CONSUMER,
        "self.session.acknowledge_others(self)",
        "pass",
    ),
    Defect(  # E2
        "mark-forgotten-when-given-back",
        "what a closed session gives back is not flagged as redelivered",
        _QUEUES,
        "route.automaton.put(state, **_fresh(core))",
        'route.automaton.put(state, **_fresh(core), redelivery="clear")',
    ),
    Defect(  # E3
        "window-one-more",
        "one message more than publish_window allows is sent without an answer",
        _QUEUES,
        "Part(core.wiring.part(role, configuration)) for role in roles",
        "Part(core.wiring.part(role, dataclasses.replace(configuration, publish_window="
        "configuration.publish_window and configuration.publish_window + 1))) for role in roles",
    ),
    Defect(  # E4
        "order-after-rollback",
        "what is given back comes behind all that is in the queue",
        _PARTS,
        "if tail and tail[-1] >= key:",
        "if tail and tail[-1] == key:",
    ),
    Defect(  # E5
        "prefetch-leak-on-recover",
        "what recover() or a lost connection gives back is still counted against the prefetch",
        _CORE,
        "for part in of.parts.values():",
        "for part in (p for role, p in of.parts.items() if role is not Role.PREFETCH):",
    ),
    Defect(  # E6
        "mark-forgotten-after-opening",
        "a message that was sent to a consumer once is not flagged as redelivered when its journal is opened again",
        _BROKER,
        "if live.marked:",
        "if live.marked and live.attempts > 1:",
    ),
    Defect(  # E7
        "count-forgotten-after-opening",
        "the delivery count begins again when the journal is opened again",
        _BROKER,
        "copy.mark, copy.stored = live.attempts, stored",
        "copy.stored = stored",
    ),
    Defect(  # E8
        "serials-begin-again",
        "after opening, the keys of new messages are those of stored ones, which they overwrite",
        _BROKER,
        "self._serial = recovery.next_key >> 2",
        "self._serial = 0",
    ),
    Defect(  # E9
        "duplicate-ids-not-known-after-opening",
        "a message that is sent again after its broker was opened again is there twice",
        _BROKER,
        "self._remembered = dict.fromkeys(recovery.remembered)",
        "self._remembered = {}",
    ),
    Defect(  # E10
        "rollback-first-consumer-only",
        "rollback() gives back what the session's first consumer had, and not what the others had",
        _SESSION,
        "            self._give_up(consumer.incoming)\n            consumer.let_go()",
        "            if consumer is self.consumers[0]:\n                self._give_up(consumer.incoming)\n"
        "            consumer.let_go()",
    ),
    Defect(  # E11
        "dead-consumer-in-rotation",
        "a queue keeps the consumers of every client that has died, and asks all of them for each message",
        _SESSION,
        "if consumer.incoming in consumer.queue.consumers:  # it may die as it closes",
        "if consumer.incoming not in consumer.queue.consumers:",
    ),
    Defect(  # E12
        "course-without-prefetch",
        "a course that was recorded while there was room is performed when there is none",
        _COURSES,
        "            prefetch.state,\n",
        "",
    ),
    Defect(  # E13
        "commit-after-sync",
        "commit() is confirmed when the work is on stable storage and the COMMIT is not",
        _STORAGE,
        "            for transaction in self._commits:\n                self.journal.append(Kind.COMMIT, transaction)\n"
        "            self._commits.clear()\n            self.journal.sync()\n",
        "            self.journal.sync()\n"
        "            for transaction in self._commits:\n                self.journal.append(Kind.COMMIT, transaction)\n"
        "            self._commits.clear()\n",
    ),
    Defect(  # E14
        "removal-outside-transaction",
        "what a transaction consumed is removed though the transaction never commits",
        _STORAGE,
        'self.journal.append(Kind.REMOVE, copy.key, b"", _transaction(copy, _CONSUMER))',
        "self.journal.append(Kind.REMOVE, copy.key)",
    ),
    Defect(  # E15, a sibling
        "store-outside-transaction",
        "what a transaction sent is there after a crash though the transaction never committed",
        _STORAGE,
        "self._keep(copy, _transaction(copy, _PRODUCER))",
        "self._keep(copy, 0)",
    ),
    Defect(  # E16, a sibling
        "closed-consumer-in-rotation",
        "a queue goes on asking the consumers of closed sessions",
        _SESSION,
        "        for consumer in self.consumers:\n            consumer.queue.consumers.remove(consumer.incoming)\n"
        "        self.broker.engine.wait",
        "        self.broker.engine.wait",
    ),
    Defect(  # E17
        "headers-lost-after-opening",
        "messages that the journal brings back have no headers",
        _MESSAGES,
        "found = json.loads(headers) if headers else {}",
        "found = {}",
    ),
    Defect(  # E18
        "dispatch-before-mark",
        "a message goes to a consumer before it is stored that it does, and is not flagged when it comes again",
        _DISPATCHING,
        "self._engine.mark_later(queue)\n                break",
        "self._engine.mark_later(queue)",
    ),
    Defect(  # E19
        "first-in-not-first-out",
        "where messages have come back, a newer one is delivered before an older one",
        _PARTS,
        "members[min(tail[0], early[0]) if early else tail[0]]",
        "members[max(tail[0], early[0]) if early else tail[0]]",
    ),
    Defect(  # E20
        "close-without-flush",
        "a send that close() has stored stays without an outcome",
        _BROKER,
        "            self.engine.flush()\n        self.storage.journal.close()",
        "            self.engine.settle()\n        self.storage.journal.close()",
    ),
)

_TRANSACTIONS = (
    Defect(
        "commit-without-the-last-message",
        "the message that was received last is not in the transaction that commits, and comes again",
        _SESSION,
        "        self.finish_processing()\n        self.broker.engine.settle()\n        self.alive()",
        "        self.broker.engine.settle()\n        self.alive()",
    ),
    Defect(
        "commit-first-consumer-only",
        "commit() leaves out what the session's second consumer received",
        _SESSION,
        "for c in self.consumers if _acknowledging(c.incoming)]",
        "for c in self.consumers[:1] if _acknowledging(c.incoming)]",
    ),
    Defect(
        "rollback-one-delivery-mode-only",
        "rollback() of sends with two delivery modes leaves those of the second mode",
        _SESSION,
        'self.ended("rolled_back")\n        for out in self.outgoing.values():',
        'self.ended("rolled_back")\n        for out in list(self.outgoing.values())[:1]:',
    ),
    Defect(
        "transaction-number-kept",
        "the next transaction has the number of the one before, whose COMMIT makes it count before it commits",
        _SESSION,
        "        self.transaction = self.broker.new_transaction()\n        for side",
        "        for side",
    ),
    Defect(
        "best-outcome-counts",
        "commit() says that all is committed though one side is rolled back or in doubt",
        _SESSION,
        "self._outcome = max(self._outcome, outcome, key=_ENDS.index)",
        "self._outcome = min(self._outcome, outcome, key=_ENDS.index)",
    ),
    Defect(
        "rolled-back-commit-returns",
        "commit() of a transaction that was rolled back returns as if it had committed",
        _SESSION,
        "        if outcome != asked:",
        '        if outcome != asked and asked != "committed":',
    ),
    Defect(
        "receiving-begins-nothing",
        "commit() of a transaction that only received does nothing, and the messages come again",
        _CONSUMER,
        "            self.session.begin()\n",
        "            pass\n",
    ),
    Defect(
        "half-of-a-commit-executed",
        "the broker executes what a transaction sent and not what it consumed",
        _ENGINE,
        "self._executing += sides",
        "self._executing += sides[:1]",
    ),
    Defect(
        "fault-in-the-midst-of-a-commit",
        "a connection that breaks while a commit is executed leaves half of the transaction",
        _SESSION,
        "        self.broker.engine.finish_executing()\n",
        "",
    ),
    Defect(
        "lost-work-committed",
        "commit() returns although a part of the work went with the connection",
        _TELLING,
        "            self._work_lost(session)\n",
        "",
    ),
    Defect(
        "lost-work-in-the-next-transaction",
        "what a connection took with it is of the transaction that begins after it",
        _TELLING,
        "        self._broker.engine.callbacks.append(lambda: owner.connected(session))\n",
        "",
    ),
    Defect(
        "commit-in-doubt-of-a-closed-session",
        "the broker forgets a session whose commit it has not found out yet, and cannot start again",
        _BROKER,
        "            self._leaving.append(session)",
        "            self.core.sessions.pop(session, None)",
    ),
)

_SESSIONS = (
    Defect(
        "recover-first-consumer-only",
        "recover() has only the messages of the session's first consumer delivered again",
        _SESSION,
        "            for consumer in self.consumers:\n                self._give_up(consumer.incoming)",
        "            for consumer in self.consumers[:1]:\n                self._give_up(consumer.incoming)",
    ),
    Defect(
        "recover-wakes-nobody",
        "after recover() nothing is delivered until somebody sends",
        _TELLING,
        'dict.fromkeys(("recover", "rollback_consumption"), self._there_again)',
        'dict.fromkeys(("rollback_consumption",), self._there_again)',
    ),
    Defect(
        "close-gives-nothing-back",
        "what a session has not acknowledged when it closes is delivered to nobody any more",
        _SESSION,
        "            self._give_up(consumer.incoming)\n        self.broker.engine.wait(",
        "            consumer.let_go()\n        self.broker.engine.wait(",
    ),
    Defect(
        "close-forgets-lazy-acknowledgements",
        "with DUPS_OK_ACKNOWLEDGE what was processed before an orderly close comes again",
        _SESSION,
        "        self.broker.flush_lazily(self)\n",
        "",
    ),
    Defect(
        "close-keeps-what-was-sent",
        "what an open transaction sent stays in the queue when its session is closed, and is never delivered",
        _SESSION,
        "wait(lambda: not any(out.open for out in self.outgoing.values()))\n        for out in self.outgoing.values():",
        "wait(lambda: not any(out.open for out in self.outgoing.values()))\n        for out in ():",
    ),
    Defect(
        "close-does-not-wait-for-sends",
        "a session closes while its asynchronous sends have no outcome yet",
        _SESSION,
        "        self.broker.engine.wait(lambda: not any(out.open for out in self.outgoing.values()))\n",
        "",
    ),
    Defect(
        "connection-closes-one-session",
        "Connection.close() closes the first of its sessions",
        _CONNECTION,
        "        for session in self.sessions:\n            session.close()",
        "        for session in self.sessions[:1]:\n            session.close()",
    ),
    Defect(
        "closed-connection-makes-sessions",
        "a connection that is closed makes sessions",
        _CONNECTION,
        "            session.close()\n        self._closed = True",
        "            session.close()",
    ),
    Defect(
        "listener-inside-a-call",
        "a listener is called while its session is in the midst of commit()",
        _SESSION,
        "before, self.is_busy = self.is_busy, True",
        "before = self.is_busy",
    ),
    Defect(
        "listener-exception-acknowledges",
        "a message whose listener threw is not delivered again",
        _CONSUMER,
        '            self._broker.engine.perform("give_back", message.copy)',
        "            pass",
    ),
    Defect(
        "acknowledgement-in-doubt-returns",
        "acknowledge() returns though nobody knows whether the broker has it",
        _TELLING,
        "copy.received.in_doubt = True",
        "copy.received.in_doubt = False",
    ),
)

_DELIVERY = (
    Defect(
        "count-stays-at-redelivery",
        "the delivery count does not grow when a message is delivered again",
        _TELLING,
        "max(copy.mark, 1) + 1, False",
        "max(copy.mark, 1), False",
    ),
    Defect(
        "stored-count-one-less",
        "the delivery count that the journal keeps is one less than that of the application",
        _STORAGE,
        "ATTEMPTS.pack(copy.mark + 1)",
        "ATTEMPTS.pack(copy.mark)",
    ),
    Defect(
        "flag-by-count",
        "a message that was never handed over is flagged as redelivered because it was sent twice",
        _CONSUMER,
        'redelivered=event.name == "delivered_flagged"',
        "redelivered=copy.mark > 1",
    ),
    Defect(
        "marks-where-none-are-stored",
        "marks are stored in systems that keep them in memory, and not where they are promised",
        _STORAGE,
        ".move is Move.IGNORE",
        ".move is not Move.IGNORE",
    ),
    Defect(
        "marks-beyond-the-prefetch",
        "messages for which the consumer has no room are marked, and are flagged after a crash though nobody had them",
        _QUEUES,
        'return bound - int(self.parts[Role.PREFETCH].of("prefetch")) if bound else None',
        "return bound or None",
    ),
    Defect(
        "room-without-looking-at-the-prefetch",
        "a message is given to a consumer that has no room while another has",
        _QUEUES,
        " and self._prefetch.goes_to(signal) != REFUSED",
        "",
    ),
    Defect(
        "prefetch-one-more",
        "one message more than prefetch allows is with the consumer",
        _QUEUES,
        "Part(core.wiring.part(role, configuration)) for role in (Role.CONSUMER, Role.PREFETCH)",
        "Part(core.wiring.part(role, dataclasses.replace(configuration, prefetch="
        "configuration.prefetch and configuration.prefetch + 1))) for role in (Role.CONSUMER, Role.PREFETCH)",
    ),
    Defect(
        "first-consumer-gets-all",
        "of several consumers with room the first gets all messages",
        _DISPATCHING,
        "            queue.consumers.rotate(-1)\n            sent = True",
        "            sent = True",
    ),
    Defect(
        "nobody-told-of-room",
        "an acknowledgement makes room in the prefetch, and the next message is not sent",
        _TELLING,
        "        if queue.ready.members:\n            self._broker.wake(queue)",
        "        if not queue.ready.members:\n            self._broker.wake(queue)",
    ),
    Defect(
        "queue-one-too-many",
        "a queue takes one message more than its max_length",
        _QUEUES,
        "self.length >= self.max_length",
        "self.length > self.max_length",
    ),
    Defect(
        "nobody-had-it-after-a-crash",
        "what waited in its queue when the broker died cannot be acknowledged",
        _BROKER,
        "            Incoming.nobody_has(self.core, copy)",
        "            copy.file()",
    ),
    Defect(
        "body-by-reference",
        "a bytearray that is changed after send() is changed on delivery",
        _PRODUCER,
        "data = body if type(body) is bytes else body_of(body)",
        "data = body if isinstance(body, bytes | bytearray) else body_of(body)",
    ),
)

_DEAD_LETTERS = (
    Defect(
        "dead-letter-without-commit",
        "a dead letter is in the first queue again after a restart",
        _LETTERS,
        "        journal.append(Kind.COMMIT, transaction)\n",
        "",
    ),
    Defect(
        "dead-letter-removed-outside-its-transaction",
        "a crash while a message becomes a dead letter can lose it",
        _LETTERS,
        'journal.append(Kind.REMOVE, copy.key, b"", transaction)',
        "journal.append(Kind.REMOVE, copy.key)",
    ),
    Defect(
        "dead-letter-counts-one-less",
        "a dead letter says that it was delivered once less than it was",
        _LETTERS,
        "_DELIVERIES: copy.mark,",
        "_DELIVERIES: copy.mark - 1,",
    ),
    Defect(
        "dead-letter-told-of-anew",
        "a dead letter that fails again says that it comes from the dead-letter queue",
        _LETTERS,
        "headers = message.headers if again else",
        "headers = message.headers if copy.mark < 0 else",
    ),
    Defect(
        "dead-letter-never-stored-destroyed",
        "a NON_PERSISTENT message at its limit is destroyed and not kept",
        _LETTERS,
        "if self.name is not None and copy.key not in self._moving:",
        "if self.name is not None and copy.stored and copy.key not in self._moving:",
    ),
    Defect(
        "dead-letter-in-the-history",
        "the history goes on with a message after it was dead-lettered, and verify finds fault with it",
        _LETTERS,
        "self._ids.add(message.id)",
        "self._ids.discard(message.id)",
    ),
    Defect(
        "limit-begins-again-beyond",
        "a message beyond the limit is tried again from the first time on when the journal is opened again",
        _BROKER,
        "attempts.states[min(live.attempts, len(attempts.states) - 1)]",
        "attempts.states[live.attempts % len(attempts.states)]",
    ),
    Defect(
        "queue-sleeps-after-a-dead-letter",
        "when its first message is dead-lettered a queue sends nothing until somebody sends to it",
        _TELLING,
        "        self._broker.wake(copy.message.queue)\n",
        "",
    ),
)

_IDENTITIES = (
    Defect(
        "duplicate-dropped-before-the-first-is-stored",
        "a second copy is dropped as known and confirmed while the first one can still be lost",
        _BROKER,
        "        self.engine.flush_all()\n        return duplicate_id in self._remembered",
        "        return True",
    ),
    Defect(
        "duplicate-id-outside-transaction",
        "after a transaction that never committed what it sent is taken for a duplicate when it is sent again",
        _STORAGE,
        "copy.message.duplicate_id, transaction)",
        "copy.message.duplicate_id)",
    ),
    Defect(
        "duplicate-id-never-forgotten",
        "a message that was lost with the memory of the broker is taken for a duplicate when it is sent again",
        _BROKER,
        "self._remembered.pop(duplicate_id, None)",
        "self._remembered.get(duplicate_id, None)",
    ),
    Defect(
        "newest-duplicate-id-forgotten",
        "when its memory of ids is full the broker forgets the newest one",
        _BROKER,
        "del self._remembered[next(iter(self._remembered))]",
        "self._remembered.popitem()",
    ),
    Defect(
        "ids-given-twice",
        "a message of this life of the broker has the id of one of an earlier life",
        _BROKER,
        'self._life = f"{recovery.epoch}." if recovery.epoch > 1 else ""',
        'self._life = ""',
    ),
    Defect(
        "transactions-begin-again",
        "transactions have the numbers of copies and transactions that the journal has",
        _BROKER,
        "self._transaction = recovery.next_key",
        "self._transaction = 0",
    ),
)

_FAILURES = (
    Defect(
        "failed-sync-confirms",
        "a send is confirmed though the disk was full",
        _STORAGE,
        "        except JournalFailure:\n            return False",
        "        except JournalFailure:\n            return True",
    ),
    Defect(
        "broker-goes-on-after-a-failed-sync",
        "a broker whose disk has failed does not stop, and nobody starts it again",
        _BROKER,
        "            self.fail_journal()\n        return False",
        "            self.engine.settle()\n        return False",
    ),
    Defect(
        "restart-on-a-journal-that-is-not-open",
        "after a full disk restart() goes on with the journal that could not be opened",
        _BROKER,
        "        self.storage.reopen()\n",
        "",
    ),
    Defect(
        "telling-without-commits",
        "a broker that dies as it tells what a sync took along does not start again",
        _ENGINE,
        "            self._tell(copy, records)\n        for session in sessions:\n            self._written(session)\n",
        "            self._tell(copy, records)\n",
    ),
    Defect(
        "sync-tells-too-much",
        "what was added while a sync was told of counts as synced, and a crash brings it back",
        _ENGINE,
        "                if copy.told is told:",
        "                if copy.told:",
    ),
    Defect(
        "thread-unnoticed-in-a-session",
        "two threads that use one session are not refused",
        _SESSION,
        "if get_ident() != self.broker.thread:",
        "if self.broker.thread == 0:",
    ),
    Defect(
        "thread-unnoticed-in-a-broker",
        "a broker is used by two threads and does not say so",
        _BROKER,
        "if self.thread != get_ident():",
        "if self.thread == _CLOSED:",
    ),
    Defect(
        "closed-broker-runs",
        "a broker that is closed says that it is running",
        _BROKER,
        "return self.thread != _CLOSED and self.core",
        "return self.core",
    ),
    Defect(
        "drained-with-messages",
        "drained() says that all queues are empty while one holds messages",
        _BROKER,
        "            if queue.length:\n                self._not_stuck(queue)",
        "            if queue.ready.members:\n                self._not_stuck(queue)",
    ),
    Defect(
        "drained-refuses-dead-letters",
        "drained() refuses where there are dead letters",
        _BROKER,
        "for queue in self._queues.values() if queue.name != self._letters.name]",
        "for queue in self._queues.values()]",
    ),
)

_TIME = (
    Defect(
        "frames-overtake-each-other",
        "on one connection a frame arrives before those that were sent earlier",
        _ENGINE,
        "at = max(self.pace.now + (self.pace.delay(event.agent) or 0), self._last.get(way, 0))",
        "at = self.pace.now + (self.pace.delay(event.agent) or 0)",
    ),
    Defect(
        "frame-of-another-session",
        "a frame to a session that is gone counts as one to the next session",
        _ENGINE,
        "            if _connection(event, subject) is not scope:\n                return",
        "            if subject is None:\n                return",
    ),
    Defect(
        "healed-network-loses",
        "after Timed.heal() frames are lost as before",
        _PACE,
        "        self._loss = 0.0",
        "        self._loss = float(self._loss)",
    ),
    Defect(
        "marks-forgotten-in-any-order",
        "with Shuffled a message whose mark is to be stored never arrives",
        _ENGINE,
        '        choices += ((self.core.events["write_record"], self.core.broker) for _ in self._marking)\n',
        "",
    ),
    Defect(
        "timeout-at-once",
        "receive(seconds) returns as soon as nothing is under way, before its time has passed",
        _CONSUMER,
        "            engine.at(until, lambda: None)\n",
        "            engine.settle()\n",
    ),
    Defect(
        "late-acknowledgements-never",
        "with DUPS_OK_ACKNOWLEDGE nothing is acknowledged before 32 messages are there",
        _BROKER,
        "            if self._acknowledge_lazily(consumer):\n                return True\n",
        "            continue\n",
    ),
)

_WORDS = (
    Defect(
        "times-repeat",
        "events of the history have the same time, and their order is lost",
        _LOG,
        "self._last = max(self._last + 1, now)",
        "self._last = max(self._last, now)",
    ),
    Defect(
        "acknowledged-not-logged",
        "the history does not say when an acknowledgement was confirmed",
        _TELLING,
        '            self._log_of(copy, "acknowledged")',
        "            copy.file()",
    ),
    Defect(
        "doubt-not-logged",
        "the history does not say that an acknowledgement is in doubt",
        _TELLING,
        '        self._log_of(copy, "ack_in_doubt")\n',
        "",
    ),
    Defect(
        "rejection-told-as-confirmed",
        "the outcome of a message that the broker refused is CONFIRMED",
        _TELLING,
        '"rejected": Outcome.REJECTED,',
        '"rejected": Outcome.CONFIRMED,',
    ),
    Defect(
        "handler-hears-all-of-a-range",
        "a handler is called for each message of a range, and not once",
        _TELLING,
        " and event not in _CONCLUDED:",
        ":",
    ),
    Defect(
        "cancelled-send-forgotten",
        "the outcome of a send whose task was cancelled can be asked for nowhere",
        _AIO,
        "            self.unheard.append(sent)\n",
        "",
    ),
    Defect(
        "task-listener-never-fails",
        "a message whose listener, a coroutine, has thrown counts as processed",
        _AIO,
        "self.consumer.done(message, failed)",
        "self.consumer.done(message)",
    ),
    Defect(
        "task-waits-without-a-timeout",
        "receive(timeout) of a task returns before its time has passed",
        _AIO,
        "            engine.at(end, _nothing)\n",
        "            self._turns.called()\n",
    ),
)

ENGINE = (
    *_REVIEWED,
    *_TRANSACTIONS,
    *_SESSIONS,
    *_DELIVERY,
    *_DEAD_LETTERS,
    *_IDENTITIES,
    *_FAILURES,
    *_TIME,
    *_WORDS,
)
