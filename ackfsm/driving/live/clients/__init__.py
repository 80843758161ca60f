"""Clients of live brokers, each a process of its own (a *worker*) that speaks JSON lines with its parent.

The protocol
============

The worker reads commands from standard input and writes answers to standard output, each a JSON object on a line of its
own (UTF-8, at most 65,536 bytes).  Nothing else goes to standard output; standard error is for people.  When standard
input ends, the worker ends at once (exit code 0) and closes nothing: its parent is dead.  A clean end is the command
``close``, and then the end of standard input.

A command is ``{"id": N, "op": WORD, ...}``, its answer ``{"id": N, ...}``, or ``{"id": N, "error": KIND, "why":
TEXT}``. Several commands may be outstanding.  Those that name a session run in order, in a thread of that session;
different sessions run at once.  A field with ``?`` may be absent, and is then false, null or what is said.  Times are
seconds, as numbers that may have a fraction.  A message is named by its own id, a text that is unique in the run.

=============== =================================================== ==================================================
command         fields                                              answer
=============== =================================================== ==================================================
``open``        host, port, process, history, header?, settings?,   library: name and version, ``pika 1.4.4``
                client_id?
``reopen``      client_id?                                          library
``session``     session, ack_mode                                   process: the name of its lines in the history
``consumer``    session, consumer, destination, listener?, topic?,
                subscription?, shared?
``send``        session, destination, message, asynchronous?,       outcome: ``confirmed``, ``rejected``,
                delivery_mode? (``PERSISTENT``), size? (0), topic?  ``in_doubt``, ``sent``
``receive``     session, consumer, timeout                          message (null: none came), redelivered,
                                                                    delivery_count (null: not counted)
``listened``    session, consumer, timeout                          as ``receive``
``done``        session, consumer, message, failed?
``acknowledge`` session, message                                    outcome: ``acknowledged``, ``in_doubt``, ``sent``
``settle``      session, message, outcome
``commit``      session                                             outcome: ``committed``, ``rolled_back``,
                                                                    ``in_doubt``
``rollback``    session
``recover``     session
``close``       session?, consumer?
=============== =================================================== ==================================================

``open``
    The first command, once.  ``process`` is the name of the client; the worker begins the file ``history`` with the
    format-1 ``header`` (an object: ``config``, ``queues``, ``api``, ``note``, ``cannot_show``) and appends the lines
    of its sessions, each by one unbuffered write.  ``t`` is CLOCK_MONOTONIC in nanoseconds (``time.monotonic_ns``,
    ``System.nanoTime``), and is not moved to the calendar.  ``settings`` is an object of the client's own settings,
    by their vendor's names.  The answer says that somebody listens at host and port.  ``client_id`` is that of the
    connection in JMS, which waits a while for it if another one has it.
``reopen``
    Connects again as ``open`` did, in the same history, after the connection broke or was closed.  The sessions and
    consumers of before are gone; their names may be used again.
``session``
    ``ack_mode`` is a word of :class:`ackfsm.terms.AckMode`; ``SESSION_TRANSACTED`` is a transacted session.  The
    answer has the ``process`` that the lines of this session have.  It is the name of the client where all its
    sessions have one connection; clients whose sessions have a connection each give each a name of its own.  A fault
    that hits the client hits all these processes.
``consumer``
    Names of consumers are unique in the client.  With ``listener`` messages come by ``listened``.  In JMS, with
    ``topic``, it is a subscriber of the durable ``subscription``, which others may share or which the client with its
    ``client_id`` has for itself.
``send``
    Answered when the call of the library has returned: ``sent`` if no answer of the broker is waited for (in a
    transaction, or unconfirmed).  An ``asynchronous`` send is answered when its outcome is known (CompletionListener,
    receipt), and the session goes on with its next command when the library's call has returned.  ``size`` is the
    number of bytes of the body.
``receive``
    The next message of the consumer, if one comes within ``timeout``.
``listened``, ``done``
    ``listened`` waits until the listener is called, and tells with which message.  The listener then holds that
    message until ``done``, by which it returns, or throws if ``failed``; ``done`` is answered when it has.  In
    between the other commands of the session (``acknowledge``, ``send``, ``commit`` ...) are what the listener does.
    The listener may be called before anybody waits for it.  Each call is told once.
``acknowledge``
    Of a message that the session holds, and of what its ``ack_mode`` covers beside it; ``sent`` if the broker answers
    no acknowledgement, or the library does not wait for the answer.
``settle``
    States another ``outcome`` than that of ``acknowledge`` for a message that the session holds: ``released``,
    ``modified``, ``undeliverable``, ``rejected``, as the field of that name of a ``failed`` line in format 1 (requeue
    and rejection in AMQP 0-9-1 and STOMP, JMS_AMQP_ACK_TYPE of Qpid JMS).
``close``
    Of one consumer (``consumer``, and its session), of a session, or of the connection with all of them (neither is
    given), as the library's ``close()`` does it.

Kinds of errors, after each of which the worker goes on:

=========== ===========================================================================================================
``closed``  the consumer, session or connection is closed, or broke; what it held is lost to it
``down``    nobody serves clients at host and port (only of ``open``, ``reopen``, ``session``)
``refused`` the broker or the library refuses what is asked, the client has no such command, or a field is wrong
``timeout`` the library gave up waiting for the broker; its connection is not closed by that
=========== ===========================================================================================================

Where the connection breaks while ``send``, ``acknowledge`` or ``commit`` is under way, that is the outcome
``in_doubt`` and no error; the next command of the session has the error ``closed``.
"""
