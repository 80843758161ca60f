"""Programs that found defects of the engine or of a judge, which are mended: none of them may fail again."""

from __future__ import annotations

from collections.abc import Mapping

from model_tests.applications.programs import (
    Close,
    Consume,
    Fault,
    Program,
    Refuse,
    Resend,
    Restart,
    Send,
    Sender,
    Strike,
    Throw,
    Wait,
    Worker,
)

__all__ = ["MENDED"]

_TRANSACTED = "SESSION_TRANSACTED"
_LISTENING_AT_ONCE = Worker(("a",), "c", _TRANSACTED, "listener")
_LISTENING_MOVER = Worker(("a",), "c", _TRANSACTED, "listener", at_once=False)

MENDED: Mapping[str, Program] = {
    "an acknowledgement up to a message that came again covers what was sent before, not what was delivered": Program(
        "rabbitmq",
        {"publish_window": 2, "prefetch": 2},
        "Shuffled(19)",
        workers=(Worker(output="c", ack_mode="CLIENT_ACKNOWLEDGE", consumption="listener", at_once=False),),
        phases=(
            *(Send(number=2, end=""), Send(number=4), Throw(), Send(), Consume(number=2, end="last", timeout=None)),
            *(Send(number=3, end=""), Consume(end="last", timeout=None)),
        ),
    ),
    "commit() returns although a part of the transaction was acknowledged to a connection that had broken": Program(
        workers=(Worker(ack_mode=_TRANSACTED),),
        phases=(Send(number=3), Fault("lose", 1), Consume(number=3, end="none"), Consume(number=2)),
    ),
    "receive() acknowledges one message and hands over another: the first is lost, or stays with its session": Program(
        settings={"prefetch": 1},
        senders=(Sender(), Sender(transacted=True)),
        phases=(
            Send(1, end=""),
            Send(0, number=2),
            Send(1, number=0),
            Consume(),
            Close(2, returns=False),
        ),
    ),
    "a transaction that consumes and sends is executed by halves: no broker can start": Program(
        "artemis",
        {"send_mode": "asynchronous"},
        "Timed(seed=0)",
        workers=(_LISTENING_AT_ONCE,),
        phases=(
            Send(number=3),
            Consume(strike=Strike("die", 1, "execute_consumer_commit")),
            Consume(end="last", strike=Strike("crash", 1)),
        ),
    ),
    "rollback() waits for what a listener sends that it calls itself": Program(
        workers=(_LISTENING_MOVER,), phases=(Send(), Consume(end="rollback"))
    ),
    "while a listener waits in commit(), another consumer of its session calls its own (JMS 3.1, 6.2.5)": Program(
        "qpid",
        {"send_mode": "blocking"},
        "Shuffled(0)",
        workers=(Worker(("a", "a"), None, _TRANSACTED, "listener"),),
        phases=(Send(number=2),),
        ending="die",
    ),
    "a message that a closed session sent is sent again on the connection that is gone": Program(
        "solace",
        {"send_mode": "blocking", "resend_in_doubt": True},
        workers=(Worker(("a",), None, _TRANSACTED, "listener", at_once=False),),
        phases=(Send(number=2, end="", strike=Strike("fail_journal", 1)), Close(0), Resend()),
    ),
    "a message that an earlier broker was sent is no message of this one, and nobody says so": Program(
        "ems",
        {"resend_in_doubt": True},
        phases=(Send(strike=Strike("kill", 1)), Restart("close"), Resend()),
    ),
    "a listener is called inside commit() of its session, and what it sends joins that transaction": Program(
        "solace",
        {},
        "Shuffled(549)",
        workers=(_LISTENING_MOVER,),
        seed=549,
        phases=(
            *(Send(number=4, end=""), Send(), Send(number=4, end=""), Send(number=3)),
            *(Restart("close"), Consume(number=5, timeout=0.0)),
        ),
    ),
    "a session is connected again to a broker that is down": Program(
        "qpid",
        {},
        "Shuffled(0)",
        workers=(Worker(ack_mode="NO_ACKNOWLEDGE"),),
        phases=(Send(), Fault("fail_journal"), Send(strike=Strike("kill", 2))),
    ),
    "what a broker that starts finds at its limit is dead-lettered in another order where somebody observes": Program(
        settings={"max_delivery_attempts": 2},
        pace="Timed(seed=0)",
        senders=(Sender(transacted=True),),
        workers=(Worker(ack_mode=_TRANSACTED),),
        phases=(Send(end=""), Send(), Consume(end="rollback"), Send(end="", strike=Strike("kill", 17))),
    ),
    "what a listener is given inside rollback() is of no transaction: commit() returns, and it comes again": Program(
        "artemis",
        senders=(Sender(transacted=True),),
        workers=(Worker(("a",), None, _TRANSACTED, "listener", at_once=False),),
        phases=(Send(), Consume(end="rollback"), Consume(end="last")),
    ),
    "a listener that is called inside commit() of its session makes it wait for ever": Program(
        "qpid",
        {},
        "Timed(seed=14)",
        seed=14,
        senders=(Sender(transacted=True),),
        workers=(Worker(("a", "a"), None, _TRANSACTED, "listener", at_once=False),),
        phases=(Send(number=4, end=""), Send(), Consume(end="last")),
        ending="die",
    ),
    "what a library had before the broker failed counts against the bound of its next connection": Program(
        settings={"queue_durable": False, "prefetch": 2},
        workers=(Worker(ack_mode="CLIENT_ACKNOWLEDGE", at_once=False),),
        phases=(Send(end=""), Fault("fail_journal", 1), Send(number=2), Consume(number=3, end="last")),
    ),
    "what is sent again waits for ever behind a copy sent to a session that closed while the broker was down": Program(
        "qpid-jms",
        {"redelivery_mark_persisted": False},
        "Timed(seed=85)",
        seed=85,
        workers=(
            Worker(ack_mode=_TRANSACTED, at_once=False),
            Worker(consumption="listener", at_once=False),
        ),
        phases=(Send(number=2, end="", strike=Strike("crash", 25)), Close(2, returns=False), Resend()),
    ),
    "what is removed while another message is told of its sync counts as synced, and comes back after a crash": Program(
        "rabbitmq",
        {},
        "Timed(seed=267)",
        seed=267,
        senders=(Sender(), Sender("b", transacted=True)),
        workers=(Worker(ack_mode="NO_ACKNOWLEDGE", consumption="listener", at_once=False),),
        phases=(
            *(Send(number=2), Send(1), Send(1), Send(1, number=2, strike=Strike("lose", 1, "confirm"))),
            Fault("crash", 2),
        ),
        ending="die",
    ),
    "the mark of a message that is sent on before its commit is stored is forgotten with the broker's process": Program(
        settings={"journal_sync_transactional": False},
        workers=(_LISTENING_MOVER, Worker(("c",), None, "DUPS_OK_ACKNOWLEDGE", "listener", at_once=False)),
        phases=(Send(number=2), Consume(), Restart("kill")),
        ending="die",
    ),
    "what is sent between the first and the second sending of others has no outcome: nobody reads its frame": Program(
        "qpid-jms",
        {
            "delivery_mode": "PERSISTENT",
            "send_mode": "asynchronous",
            "resend_in_doubt": True,
            "prefetch": 1,
            "journal_sync_non_transactional": True,
            "journal_sync_transactional": True,
            "client_ack_scope": "message",
            "listener_exception": "next_message",
        },
        "Timed(seed=0)",
        workers=(Worker(at_once=False),),
        phases=(
            *(Send(), Send(mixed=True), Send(number=2, strike=Strike("lose", 1, "send")), Resend()),
            *(Restart("close"), Send(mixed=True), Send(mixed=True, strike=Strike("crash", 1))),
        ),
    ),
    "a commit leaves out the message whose listener threw, where the library swallows that (JMS 3.1, 8.7)": Program(
        "qpid",
        workers=(Worker(("a",), None, _TRANSACTED, "listener"),),
        phases=(Throw(), Send(number=2)),
        ending="die",
    ),
    "the two copies of a message that is sent again wait for each other for ever, in different sessions too": Program(
        "solace-jms",
        {"resend_in_doubt": True},
        workers=(Worker(ack_mode="CLIENT_ACKNOWLEDGE"), Worker(at_once=False)),
        phases=(Send(strike=Strike("lose", 1, "accept")), Resend(), Consume(1, end="rollback")),
        ending="die",
    ),
    "acknowledge() leaves out what another consumer of the session had before a message that it gave back": Program(
        "activemq",
        {"block_on_acknowledge": True},
        workers=(Worker(("a", "a"), None, "CLIENT_ACKNOWLEDGE", "listener", at_once=False),),
        phases=(Send(number=2), Throw(), Send(), Consume(end="last", timeout=None)),
        ending="die",
    ),
    "a session that sends with two delivery modes has a window for each": Program(
        "rabbitmq",
        {"publish_window": 3},
        "Timed(seed=0)",
        workers=(Worker(ack_mode="CLIENT_ACKNOWLEDGE", output="c", at_once=False),),
        phases=(Send(number=2, mixed=True), Send(number=2)),
    ),
    "the books take what a listener is given inside recover() for given back": Program(
        "ems",
        senders=(Sender(transacted=True),),
        workers=(
            Worker(ack_mode=_TRANSACTED, consumption="listener"),
            Worker(ack_mode="CLIENT_ACKNOWLEDGE", consumption="listener"),
        ),
        phases=(
            *(Send(), Throw(1), Send(number=2), Throw(1, 2), Send()),
            *(Consume(1, end="rollback", timeout=None), Send(number=2)),
        ),
    ),
    "a message that is sent while others are sent again has no outcome where a range is confirmed": Program(
        "solace",
        {"publish_window": 2, "ack_event_mode": "WINDOWED", "resend_in_doubt": True, "prefetch": 1},
        workers=(Worker(ack_mode="CLIENT_ACKNOWLEDGE", at_once=False),),
        phases=(Send(number=2), Send(strike=Strike("lose", 1)), Resend(), Wait()),
        ending="die",
    ),
    "what is consumed while the sync of its message is told counts as removed for good, and comes back": Program(
        "rabbitmq",
        senders=(Sender(transacted=True),),
        workers=(Worker(ack_mode=_TRANSACTED, consumption="listener"),),
        phases=(Send(strike=Strike("lose", 1, "sync_record")), Send(strike=Strike("crash", 1))),
    ),
    "what was sent in a transaction is passed on as if it had been sent directly, and goes with its consumer": Program(
        "solace-jms",
        senders=(Sender(transacted=True),),
        workers=(Worker(),),
        phases=(Send(number=2, mixed=True),),
    ),
    "a lazy acknowledgement is of a message that was given back, and takes the delivery of another session": Program(
        "solace-jms",
        workers=(
            Worker(ack_mode="DUPS_OK_ACKNOWLEDGE", consumption="listener", at_once=False),
            Worker(ack_mode="INDIVIDUAL_ACKNOWLEDGE", consumption="listener", at_once=False),
        ),
        phases=(Throw(who=0, number=2), Send(), Consume(who=2)),
        ending="die",
    ),
    "an acknowledgement that covers earlier messages is overtaken by the one behind it": Program(
        "rabbitmq",
        {"listener_exception": "next_message"},
        "Timed(seed=29)",
        29,
        workers=(Worker(ack_mode="CLIENT_ACKNOWLEDGE", consumption="listener"),),
        phases=(Send(), Throw(number=2), Send(number=2), Consume(number=2, end="each", timeout=None)),
    ),
    "a queue is not fed where a message that has just become a dead letter stood first in it": Program(
        "ems",
        {"delivery_mode": "RELIABLE", "prefetch": 1, "max_delivery_attempts": 3},
        "Timed(seed=53, loss=0.1)",
        53,
        workers=(
            Worker(("a", "a"), None, _TRANSACTED, "listener", at_once=False),
            Worker(("a",), None, _TRANSACTED, "listener", at_once=False),
        ),
        phases=(
            *(Send(number=3), Send(number=3), Throw(who=1, number=2), Send(number=2)),
            *(Consume(1, 3, "last", None), Consume(0, 5, "last", None)),
        ),
    ),
    "what a listener goes on with over a reconnection is acknowledged on the next one, and never read": Program(
        "qpid-jms",
        {"send_mode": "asynchronous"},
        workers=(
            Worker(ack_mode=_TRANSACTED, consumption="listener"),
            Worker(output="c", ack_mode="DUPS_OK_ACKNOWLEDGE", consumption="listener"),
        ),
        phases=(
            *(Send(who=1), Consume(timeout=None), Send(number=3)),
            *(Consume(who=1, timeout=None, strike=Strike("crash", 1, "consumer_commit_called")), Send()),
        ),
    ),
    "a send goes to a consumer before it is confirmed, and to the next one that has room after it": Program(
        "activemq",
        {"prefetch": 1},
        workers=(
            Worker(ack_mode="DUPS_OK_ACKNOWLEDGE"),
            Worker(ack_mode="DUPS_OK_ACKNOWLEDGE", consumption="listener"),
        ),
        phases=(Send(number=3),),
        ending="die",
    ),
    "verify takes what was dead-lettered for consumed by a commit in doubt": Program(
        "qpid-jms",
        {"max_delivery_attempts": 3, "listener_exception": "acknowledge"},
        "Timed(seed=931, loss=0.1)",
        931,
        senders=(Sender(transacted=True),),
        workers=(Worker(ack_mode=_TRANSACTED, consumption="listener"),),
        phases=(
            *(Send(number=3), Throw(number=2), Send(number=2), Consume(number=2, end="rollback"), Throw(number=2)),
            *(Send(), Consume(end="rollback"), Consume(end="rollback")),
        ),
    ),
    "what was sent behind a message that is sent again is never read": Program(
        "rabbitmq",
        {"resend_in_doubt": True},
        "Timed(seed=0)",
        workers=(Worker(ack_mode="INDIVIDUAL_ACKNOWLEDGE", at_once=False),),
        phases=(Send(number=2, strike=Strike("lose", 1, "send")), Resend(), Send(number=2), Restart("close")),
        ending="die",
    ),
    "of the acknowledgements that a call sends the last one overtakes the others": Program(
        "solace-jms",
        {"listener_exception": "redeliver"},
        "Shuffled(497)",
        497,
        workers=(Worker(output="c", ack_mode="CLIENT_ACKNOWLEDGE", consumption="listener", at_once=False),),
        phases=(Send(number=3), Throw(number=2), Send(number=2), Send(), Consume(end="last")),
        ending="die",
    ),
    "a session is closed before the broker has read what it sent, which is lost without a fault": Program(
        "qpid",
        {},
        "Timed(seed=0, loss=0.1)",
        workers=(Worker(ack_mode=_TRANSACTED, at_once=False),),
        phases=(Send(number=2, end=""), Close(0, returns=True)),
    ),
    "the books take an acknowledgement for that of a session that has another copy of the message": Program(
        "qpid-jms",
        senders=(Sender(transacted=True), Sender("b")),
        workers=(
            Worker(("a", "b"), None, "CLIENT_ACKNOWLEDGE", "listener", at_once=False),
            Worker(("a", "b"), None, "DUPS_OK_ACKNOWLEDGE", "listener", at_once=False),
        ),
        phases=(
            *(Send(), Send(who=1, strike=Strike("lose", 1, "confirm")), Resend(1)),
            Consume(0, end="last", timeout=0.001),
        ),
    ),
    "in any order it depends on who observes which queue is looked at": Program(
        "activemq",
        {"max_delivery_attempts": 2},
        "Shuffled(464)",
        464,
        workers=(Worker(ack_mode="INDIVIDUAL_ACKNOWLEDGE", consumption="listener", at_once=False),),
        phases=(
            *(Send(number=2), Restart("close"), Throw(number=2), Send(number=2), Consume(number=2, end="rollback")),
            *(Throw(), Send()),
        ),
    ),
    "the books want back what was committed, of a session that has it from before its connection broke": Program(
        "jms",
        {},
        "Shuffled(128)",
        128,
        workers=(
            Worker(output="c", ack_mode=_TRANSACTED, consumption="listener", at_once=False),
            Worker(ack_mode="CLIENT_ACKNOWLEDGE", at_once=False),
        ),
        phases=(
            *(Send(number=2), Send(number=2, strike=Strike("fail_journal", 1)), Consume(number=2, end="rollback")),
            *(Consume(1, end="none"), Consume(end="last")),
        ),
        ending="die",
    ),
    "acknowledge() returns when its own message is acknowledged for certain, and not what else it covers": Program(
        "qpid",
        {"queue_durable": False, "prefetch": 3},
        "Timed(seed=931)",
        931,
        senders=(Sender(), Sender("b", transacted=True)),
        workers=(
            Worker(ack_mode="DUPS_OK_ACKNOWLEDGE", consumption="listener"),
            Worker(("a", "b"), None, "CLIENT_ACKNOWLEDGE", "listener", at_once=False),
        ),
        phases=(
            *(Restart("kill"), Send(1, 2, mixed=True), Send(1, 2), Send(number=2), Consume(end="last"), Send(number=2)),
            *(Consume(number=2, end="rollback"), Send(number=2), Refuse(number=2), Send(), Consume(1, end="last")),
        ),
        ending="die",
    ),
    "a session whose process dies as it processes a message acknowledges the delivery of the next one": Program(
        "activemq",
        {},
        "AtOnce()",
        0,
        workers=(
            Worker(output="c", ack_mode=_TRANSACTED, at_once=False),
            Worker(ack_mode="INDIVIDUAL_ACKNOWLEDGE", consumption="listener", at_once=False),
        ),
        phases=(Send(), Consume(end="last", strike=Strike("die", 4))),
        ending="die",
    ),
    "the books want back what a library that was cut off delivered after another session had it": Program(
        "solace-jms",
        {},
        "AtOnce()",
        0,
        workers=(
            Worker(ack_mode=_TRANSACTED, consumption="listener", at_once=False),
            Worker(("c",), ack_mode="AUTO_ACKNOWLEDGE", consumption="listener", at_once=False),
            Worker(("a", "b"), ack_mode="CLIENT_ACKNOWLEDGE", consumption="listener", at_once=False),
        ),
        phases=(
            *(Send(number=2), Fault("crash", 3), Consume(2, end="last", timeout=None)),
            *(Consume(end="rollback", timeout=0.001, strike=Strike("lose", 7)), Consume(2, end="each", timeout=None)),
        ),
    ),
}
"""By what went wrong."""
