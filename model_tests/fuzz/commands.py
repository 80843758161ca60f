"""Command lines of every command, most of them right."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from ackfsm.terms import Anomaly, Fault, Profile
from model_tests.fuzz.files import Laboratory
from model_tests.fuzz.foreign import foreign, mapping, table
from model_tests.fuzz.words import JUNK, KEYS, mostly, values
from model_tests.support.tables import shipped

__all__ = ["KINDS", "command_lines"]


def _setting() -> st.SearchStrategy[str]:
    right = st.sampled_from(KEYS).flatmap(lambda key: mostly(values(key)).map(lambda value: f"{key}={value}"))
    return st.integers(0, 29).flatmap(lambda n: right if n else st.sampled_from(JUNK))


def _options(most: int, **each: st.SearchStrategy[str] | None) -> st.SearchStrategy[list[str]]:
    """Some of these options, each with a value unless it takes none; a name may come twice."""
    pieces = [
        st.just([_flag(name)]) if value is None else value.map(functools.partial(_option, name))
        for name, value in each.items()
    ]
    return st.lists(st.one_of(pieces), max_size=most).map(lambda found: [word for piece in found for word in piece])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _option(name: str, value: str) -> list[str]:
    return [_flag(name), value]


_PROFILES = mostly(tuple(Profile))
_FAULTS = mostly(tuple(Fault))
_URLS = (
    "tcp://host:61616?blockOnDurableSend=false&confirmationWindowSize=10MiB",
    "failover:(amqp://a:5672?x=1,amqp://b)?jms.forceSyncSend=true&jms.prefetchPolicy.queuePrefetch=0",
    "amqp://guest:guest@id/?maxprefetch='10'&brokerlist='tcp://localhost'",
    "tcp://[::1?%ff",
)
_CONFIGURED: dict[str, st.SearchStrategy[str] | None] = {
    "profile": _PROFILES,
    "set": _setting(),
    "api": mostly(("jms-1.1", "JMS 2.0", "simplified", "core", "native")),
    "url": mostly(_URLS),
}
_BOUNDED = _CONFIGURED | {
    "fault": _FAULTS,
    "max_faults": mostly(("0", "1", "2", "any")),
    "messages": mostly(("1", "1", "2")),
    "action": mostly(("recover", "rollback", "taken_elsewhere")),
    "without": mostly(("acknowledge", "timer_fires", "accept", "send")),
}
_SEARCHED = _BOUNDED | {
    "reduce": mostly(("none", "partial-order")),
    "jobs": mostly(("1", "2")),
    "progress": None,
    "forever": mostly(("listener_exception", "broker_crash", "recover")),
    "as": mostly(("steps", "mermaid", "plantuml", "svg", "pytest", "itf")),
    "anomaly": mostly(tuple(Anomaly)),
    "max_memory": mostly(("1MiB", "1GiB", "1")),
    "json": None,
    "engine": mostly(("local", "symbolic")),
}


KINDS = (
    *("check",) * 6,
    *("verify",) * 6,
    *("import",) * 4,
    *("foreign",) * 3,
    *("guess",) * 2,
    *("journal",) * 3,
    *("certificate",) * 2,
    *(
        "explain",
        "explain",
        "draw",
        "export",
        "claims",
        "matrix",
        "plan",
        "plan",
        "advise",
        "systems",
        "where",
        "where",
        "odd",
    ),
)
"""What command lines are drawn of, as often as they are."""


@st.composite
def command_lines(draw_: st.DrawFn, laboratory: Laboratory, kinds: Sequence[str] = KINDS) -> list[str]:
    """A command with its options, most of them right."""
    return _LINES[draw_(st.sampled_from(kinds))](draw_, laboratory)


def _check_line(draw_: st.DrawFn, laboratory: Laboratory, command: str = "check") -> list[str]:
    words = [command, *draw_(_options(6, **_SEARCHED, output=laboratory.output()))]
    return (
        words if "--max-states" in words else [*words, "--max-states", draw_(st.sampled_from(["300", "3000", "3000"]))]
    )


def _verify_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    files = [laboratory.history(draw_) for _ in range(draw_(st.sampled_from([1, 1, 1, 2])))]
    never = mostly(("loss", "unprocessed", "duplicate,loss", "stuck"))
    skew = mostly(("0", "100us", "1ms", "2s"))
    return ["verify", *files, *draw_(_options(3, **_CONFIGURED, json=None, never=never, skew=skew))]


def _of_foreign(draw_: st.DrawFn, laboratory: Laboratory, option: str) -> tuple[list[str], str]:
    """The words that name a format, with a mapping if it needs one, and a file of it."""
    form, file = foreign(draw_, laboratory)
    needs = (form == "table") != (draw_(st.integers(0, 29)) == 0)
    words = [option, form] if option else [form]
    return [*words, *(["--mapping", mapping(draw_, laboratory)] if needs else [])], file


def _import_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    words, file = _of_foreign(draw_, laboratory, "")
    more = [draw_(st.sampled_from([file, laboratory.history(draw_)]))] if not draw_(st.integers(0, 9)) else []
    right = st.sampled_from([".jsonl", ".jsonl.gz", ".parquet"]).map(lambda ending: str(laboratory.fresh(ending)))
    output = draw_(right if draw_(st.integers(0, 9)) else mostly(_PLACES))
    return ["import", *words, file, *more, "-o", output, *draw_(_options(2, **_CONFIGURED, json=None))]


_PLACES = ("-", "x.txt", "/dev/null", "no/such/folder/x.jsonl", ".")


def _foreign_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    """What reads histories, of files that are none."""
    words, file = _of_foreign(draw_, laboratory, "--format")
    words = [*words, file] if draw_(st.booleans()) else [file, *words]
    if draw_(st.integers(0, 2)):
        never = mostly(("loss", "unprocessed", "duplicate,loss"))
        return ["verify", *words, *draw_(_options(3, **_CONFIGURED, json=None, never=never, all=None))]
    about = {"message": mostly(("0", "1", "m1")), "anomaly": mostly(tuple(Anomaly)), "at": mostly(("0", "10:00:00"))}
    return ["explain", *words, *draw_(_options(2, **about, profile=_PROFILES, json=None))]


def _guess_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    file = draw_(st.one_of(st.just(""), st.sampled_from(JUNK))) if not draw_(st.integers(0, 9)) else None
    file = file if file is not None else table(draw_, laboratory)
    return ["import", "--guess", file, *draw_(_options(1, json=None, output=laboratory.output()))]


def _journal_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    action = draw_(mostly(("inspect", "verify", "verify", "compact")))
    return ["journal", action, laboratory.journal(draw_), *draw_(_options(1, json=None))]


def _certificate_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    profile = mostly(("jms", "no.yaml"))
    return ["certificate", "verify", laboratory.certificate(draw_), *draw_(_options(1, json=None, profile=profile))]


def _draw_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    machine = draw_(st.one_of(st.just([]), mostly(("entry", "delivery", "loss", "broker")).map(lambda name: [name])))
    form = mostly(("dot", "mermaid", "plantuml", "table"))
    return ["draw", *machine, *draw_(_options(3, **_CONFIGURED, **{"as": form}, output=laboratory.output(), json=None))]


def _export_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    form = mostly(("promela", "tla", "json", "scxml"))
    return ["export", *draw_(_options(4, **_BOUNDED, **{"as": form}, output=laboratory.output(), json=None))]


def _claims_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    one = draw_(mostly(("C01", "C05", "C14", "C22", "C33", "C50")))
    few = mostly(("2", "0"))  # a proof takes long
    options = _options(2, max_states=mostly(("1", "50")), messages=few, certificates=laboratory.output(), json=None)
    return ["claims", "--id", one, "--jobs", "1", *draw_(options)]


def _matrix_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    """Every switch is set, so that one configuration is left."""
    profile = draw_(st.sampled_from(["jms", "artemis"]))
    defaults = shipped().configure("jms").as_dict()
    fixed = [
        word for key in KEYS[1:] for word in ("--set", f"{key}={'none' if defaults[key] is None else defaults[key]}")
    ]
    limit = mostly(("5", "2000"))
    options = _options(
        2, set=_setting(), max_states=limit, messages=mostly(("1", "0", "any")), json=None, output=laboratory.output()
    )
    return ["matrix", "--profile", profile, *fixed, "--jobs", "1", "--no-pairs", *draw_(options)]


def _plan_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    time_ = mostly(("0.25ms", "2 s", "7ns"))
    count = mostly(("1", "2", "1000"))
    bits = mostly(("1Gib", "100Mb/s", "any"))
    load = {"producers": count, "consumers": count, "per-commit": count, "per-acknowledge": count, "rate": count}
    network = {"rtt": time_, "bandwidth": bits, "bandwidth-back": bits, "message-size": mostly(("1", "4KiB"))}
    times = dict.fromkeys(("send-time", "broker-time", "sync-time", "processing-time", "timer"), time_)
    simulated = {
        "simulate": mostly(("1", "40")),
        "seed": count,
        "spread": mostly(("rtt=uniform", "sync-time=exponential")),
        "fault-at": time_,
        "fault": mostly(("broker_kill", "consumer_link_loss")),
        "recovery": time_,
    }
    more = {"group-commit": None, "no-group-commit": None, "json": None, **simulated}
    words = ["plan", *draw_(_options(5, **_CONFIGURED, **load, **network, **times, **more))]
    output, plot = (
        st.one_of(laboratory.output(), st.just(str(laboratory.folder / name))) for name in ("out.csv", "out.svg")
    )
    return [
        *words,
        *draw_(_options(3, sweep=mostly(_SWEPT), jobs=mostly(("1",)), output=output, plot=plot)),
    ]


def _advise_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    """Of a system with one way of sending and acknowledging, so that there is little to be searched."""
    del laboratory
    profile = draw_(mostly(("artemis", "rabbitmq", "jms")))
    fixed = [f"--set={key}" for key in ("send_mode=blocking", "consumption=receive", "delivery_mode=PERSISTENT")]
    options = _options(
        4,
        need=mostly(("no-loss", "order,no-loss", "exactly-once", "atomic")),
        rate=mostly(("1", "4000", "1000000")),
        rtt=mostly(("0.25ms", "2 s")),
        messages=mostly(("1",)),
        fault=mostly(("broker_crash", "consumer_crash")),
        front=None,
        plot=mostly(("-", "x.txt")),
        json=None,
    )
    return ["advise", "--profile", profile, *fixed, "--jobs", "1", "--max-faults", "1", *draw_(options)]


_SWEPT = (
    "rtt=0.1ms..100ms*10",
    "message-size=1,4KiB",
    "publish_window=none,1,300",
    "send_mode=blocking,asynchronous",
    "producers=1..4+1",
    "profile=solace,artemis",
    "group_commit=true,false",
    "consumerWindowSize=-1,0,1MiB",
)


def _systems_line(draw_: st.DrawFn, _: Laboratory) -> list[str]:
    return [
        "systems",
        *draw_(st.one_of(st.just([]), st.sampled_from(JUNK).map(lambda name: [name]))),
        *draw_(_options(1, json=None)),
    ]


def _where_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    words = (
        "ack_mode",
        "AUTO",
        "prefetch=2",
        "confirm",
        "entry.ready",
        "loss",
        "acks_lazily",
        "blockOnAcknowledge",
        "a.b",
    )
    word = draw_(st.one_of(st.just([]), mostly(words).map(lambda name: [name])))
    profile = mostly(("jms", "artemis", "rabbitmq"))
    return ["where", *word, *draw_(_options(2, profile=profile, output=laboratory.output(), json=None))]


def _odd_line(draw_: st.DrawFn, _: Laboratory) -> list[str]:
    names = ("check", "verify", "draw", "journal", "--help", "--version", "explain", "--json")
    return draw_(st.lists(mostly(names), max_size=3).filter(lambda words: words != ["check"]))


_LINES: Mapping[str, Callable[[st.DrawFn, Laboratory], list[str]]] = {
    "check": _check_line,
    "explain": lambda draw_, laboratory: _check_line(draw_, laboratory, "explain"),
    "verify": _verify_line,
    "import": _import_line,
    "foreign": _foreign_line,
    "guess": _guess_line,
    "journal": _journal_line,
    "certificate": _certificate_line,
    "draw": _draw_line,
    "export": _export_line,
    "claims": _claims_line,
    "matrix": _matrix_line,
    "plan": _plan_line,
    "advise": _advise_line,
    "systems": _systems_line,
    "where": _where_line,
    "odd": _odd_line,
}
