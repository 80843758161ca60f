"""One page for each system: its modes, numbers, names, defaults, refusals, promises, deviations, and what faults cause.

The pages are made from the profile and from complete searches, and from nothing else (no date, no version), so that
they are the same bytes whenever they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from ackfsm.showing.views._modes_in_words import ANY_NUMBER, any_number, name_of, shown_for, where
from ackfsm.showing.views.markdown import code, page_of, rows_of, sentence
from ackfsm.surveys.matrix import Action, GivenBack, ModeResult, given_back
from ackfsm.tables import Default, NumberRange, ProfileTable, Promise, Refusal, Specification, VendorAlias, format_value
from ackfsm.terms import Anomaly, Configuration, Fault, Profile, key_type

MADE: Final = "<!-- Made from spec/ by ackfsm systems: change the tables, not this file. -->\n"
"""What every page says of itself."""

_MODES: Final = ("ack_mode", "delivery_mode", "send_mode")
"""The settings whose values are a system's modes; each value is drawn in diagrams/modes."""

_DRAWINGS: Final = "../../diagrams"


def system_pages(specification: Specification, modes: Mapping[str, tuple[ModeResult, ...]]) -> dict[str, str]:
    """The text of every page by its name: one for each profile, and the index."""
    pages = {f"{profile}.md": system_page(specification, profile, some) for profile, some in modes.items()}
    return {"README.md": f"{MADE}\n{systems_page(specification)}", **pages}


def systems_page(specification: Specification) -> str:
    """All systems, one line each: the modes that they have, and how much there is to know of them."""
    rows = [
        (
            f"[{profile}]({profile}.md)",
            table.system,
            _values(specification.supported_values(profile, "ack_mode")),
            _values(specification.supported_values(profile, "delivery_mode")),
            str(len(table.unsupported)),
            str(len(table.deviates)),
        )
        for profile, table in specification.profiles.items()
    ]
    names = ("profile", "system", "acknowledgement modes", "delivery modes", "refusals", "deviations")
    text = (
        "Each page is made from the profile in `spec/profiles` and from complete searches of the machines: what a"
        " system has, calls its own, sets by default and refuses; what each of its modes promises, and what each fault"
        " can cause in it."
    )
    return page_of(["# Systems", "", text, "", *rows_of(names, rows)])


def system_page(specification: Specification, profile: str, modes: Sequence[ModeResult]) -> str:
    """Return the page of one system; ``modes`` come from :func:`ackfsm.surveys.matrix.mode_sweep`."""
    table = specification.profiles[profile]
    drawings = f"the machines are drawn in [diagrams]({_DRAWINGS}/README.md), where the sources are listed too"
    lines = [f"# {profile}: {table.system}", "", sentence(f"made from `{_file(specification, profile)}`; {drawings}")]
    lines += ["", "## Modes", "", *_modes(specification, table)]
    lines += _titled("What each mode promises", _promises(modes))
    lines += _titled("What each single fault can cause", _causes(modes))
    lines += _titled("What can happen with any number of messages", any_number(modes))
    lines += _titled("What comes again", _given_back(specification, profile))
    lines += _titled("Defaults", _defaults(table))
    lines += _titled("Its own names", _names(table))
    lines += _titled("Its own events", _events(table))
    lines += _titled("What it does not have", _refusals(table.unsupported))
    lines += _titled("Interfaces", _apis(table))
    lines += _titled("Where it deviates from JMS", _deviations(table))
    lines += _titled("Other numbers", _numbers(table))
    return f"{MADE}\n{page_of(lines)}"


def _file(specification: Specification, profile: str) -> str:
    return (
        specification.profile_files[profile].name
        if profile in specification.profile_files
        else f"spec/profiles/{profile}.yaml"
    )


def _titled(title: str, lines: Iterable[str]) -> list[str]:
    """A section, if there is anything in it."""
    body = list(lines)
    return ["", f"## {title}", "", *body] if body else []


def _values(values: Iterable[object]) -> str:
    return ", ".join(code(format_value(value)) for value in values)


def _modes(specification: Specification, table: ProfileTable) -> list[str]:
    rows = []
    for key in _MODES:
        for value in specification.supported_values(table.profile, key):
            constants = table.constants_of(key, value)
            numbers = ", ".join(f"{code(constant.name)} = {constant.literal}" for constant in constants)
            sources = "; ".join(dict.fromkeys(constant.source for constant in constants))
            drawn = f"[drawing]({_DRAWINGS}/modes/{key}-{value}.md)"
            rows.append((code(key), code(value), numbers, sources, drawn))
    return rows_of(("setting", "value", "its own constant", "source", "machine"), rows)


def _numbers(table: ProfileTable) -> list[str]:
    others = [constant for constant in table.constants if constant.means]
    rows = [(code(constant.name), constant.literal, constant.means or "", constant.source) for constant in others]
    return rows_of(("constant", "number", "means", "source"), rows) if rows else []


def _promises(modes: Sequence[ModeResult]) -> Iterator[str]:
    yield "Promised never to happen, with all other settings at their defaults; `check` holds the tables to it."
    if any(mode.any_number for mode in modes):
        yield ""
        yield f"It is shown {ANY_NUMBER} where that is proved, else for the few messages of which all was searched."
    yield ""
    given: dict[tuple[Anomaly, str, str], list[ModeResult]] = {}
    for mode in modes:
        for anomaly in Anomaly:
            if (promise := mode.promised.get(anomaly)) is not None:
                given.setdefault((anomaly, promise.because, promise.source), []).append(mode)
    rows = [
        (code(anomaly), where(some, modes), because, shown_for(anomaly, some, modes), source)
        for (anomaly, because, source), some in sorted(given.items(), key=lambda item: list(Anomaly).index(item[0][0]))
    ]
    yield from rows_of(("never", "in", "because", "shown for", "source"), rows)


def _causes(modes: Sequence[ModeResult]) -> Iterator[str]:
    found = [search for mode in modes for search in mode.causes.values()]
    yield (
        f"One message, one fault, all other settings at their defaults: {len(found)} complete searches,"
        f" {sum(search.states for search in found):,} states in all. An empty cell means that none of the states is an"
        " anomaly; **bold** is promised never to happen. A fault without a column causes nothing in any of these modes."
    )
    for delivery_mode in dict.fromkeys(mode.configuration.delivery_mode for mode in modes):
        mine = [mode for mode in modes if mode.configuration.delivery_mode == delivery_mode]
        yield from ("", f"### {delivery_mode}", "", f"Sends are {_sends(mine)}.", "")
        yield from _table_of_causes(mine)


def _given_back(specification: Specification, profile: str) -> Iterator[str]:
    yield (
        "The machines perform it, with a listener that has had two messages, has not acknowledged them unless its mode"
        " does so by itself, and with a third message in the library. An exception is of the second message, also"
        " before a rollback; else nothing has failed. What comes again flagged has the delivery count 2, what comes"
        " again and is not flagged the count 1 (JMS 3.5.11)."
    )
    found = list(given_back(specification, profile))
    for action in Action:
        mine = [each for each in found if each.action is action]
        if mine:
            yield from ("", f"### {action}", "", *_table_of_fates(mine))


def _table_of_fates(found: Sequence[GivenBack]) -> list[str]:
    rows = [(code(each.ack_mode), *each.fates, "; ".join(each.sources)) for each in found]
    return rows_of(("mode", "had first", "had last", "in the library", "source"), rows)


def _sends(modes: Sequence[ModeResult]) -> str:
    return ", ".join(dict.fromkeys(code(mode.configuration.send_mode) for mode in modes))


def _table_of_causes(modes: Sequence[ModeResult]) -> list[str]:
    faults = [fault for fault in (None, *Fault) if any(mode.causes[fault].anomalies for mode in modes)]
    rows: dict[tuple[str, ...], list[ModeResult]] = {}
    for mode in modes:
        cells = [_cell(mode, fault) for fault in faults]
        rows.setdefault((mode.configuration.ack_mode, *cells), []).append(mode)
    names = ("mode", *(code(fault) if fault else "no fault" for fault in faults))
    return rows_of(names, ((name_of(same[0], same, modes), *cells) for (_, *cells), same in rows.items()))


def _cell(mode: ModeResult, fault: Fault | None) -> str:
    reached = mode.causes[fault].anomalies
    return ", ".join(f"**{anomaly}**" if anomaly in mode.promised else anomaly for anomaly in reached)


def _defaults(table: ProfileTable) -> Iterator[str]:
    if table.profile != Profile.JMS:
        yield "Settings that it does not state are as in [jms](jms.md), below its own."
        yield ""
    order = list(Configuration.__dataclass_fields__)
    rows = sorted(table.defaults, key=lambda row: (row.key not in table.stated, order.index(row.key)))
    own = table.profile == Profile.JMS
    cells = [
        (
            code(row.key),
            _default(row),
            code(row.when.text) if row.when else "",
            _reason(row, table, own=own),
            row.source,
        )
        for row in rows
    ]
    yield from rows_of(("setting", "default", "where", "because", "source"), cells)


def _default(row: Default) -> str:
    return code(format_value(row.value)) if row.third_of is None else f"a third of {code(row.third_of)}, rounded up"


def _reason(row: Default, table: ProfileTable, *, own: bool) -> str:
    return row.because if own or row.key in table.stated else f"(jms) {row.because}"


def _names(table: ProfileTable) -> Iterator[str]:
    if not table.names:
        return
    yield "`--set` takes a name with the values that it has there; of what has no counterpart it says what to set."
    yield ""
    rows = [
        (code(name.name), ", ".join(map(code, name.keys)), _difference(name), name.source)
        for name in table.names.values()
    ]
    yield from rows_of(("name", "setting", "difference", "source"), rows)


def _events(table: ProfileTable) -> list[str]:
    rows = [(one.api, code(one.name), code(one.event), one.means, one.source) for one in table.events]
    return rows_of(("interface", "name", "event", "how", "source"), rows) if rows else []


def _difference(name: VendorAlias) -> str:
    said = [f"for {code(name.when.text.strip())} alone"] if name.when else []
    said += [f"{code(text)} is {_set_by(name, values)}" for text, values in name.values.items()]
    said += [f"a positive size is {code(format_value(value))}" for value in name.positive]
    said += [f"any value is {code(format_value(value))}" for value in name.anything]
    said += [f"{name.plus} is added to a number"] * bool(name.plus)
    said += [f"{code(text)} {why}" for text, why in name.refused.items()]
    said += [name.differs] if name.differs else []
    return "; ".join(said) or "none"


def _set_by(name: VendorAlias, values: Mapping[str, object]) -> str:
    """Return the settings that a value of a vendor's name stands for."""
    if not values:
        return "as without it"
    if len({*values.values()}) == 1:
        return code(format_value(next(iter(values.values()))))
    return " and ".join(code(f"{key}={format_value(values[key])}") for key in name.keys)


def _refusals(refusals: Iterable[Refusal]) -> list[str]:
    rows = [(_refused(row), row.because, row.instead, row.source) for row in refusals]
    return rows_of(("refused", "because", "instead", "source"), rows) if rows else []


def _refused(row: Refusal) -> str:
    if row.outside is not None:
        return f"any {code(row.key)} but {row.outside}"
    return code(row.when.text) if row.when else f"any {code(row.key)} but the default"


def _apis(table: ProfileTable) -> Iterator[str]:
    for number, (api, refusals) in enumerate(table.apis.items()):
        yield from [""] * bool(number)
        yield from (f"### {api}", "")
        yield from _refusals(refusals) or ["All that the system has."]


def _deviations(table: ProfileTable) -> list[str]:
    rows = [
        (row.what, code(row.when.text) if row.when else f"not in the tables: {row.unmodelled}", row.source)
        for row in table.deviates
    ]
    return rows_of(("what", "shown by the tables where", "source"), rows) if rows else []


def systems_json(specification: Specification) -> list[dict[str, object]]:
    """Every system with its modes, as plain JSON values."""
    return [
        {"profile": str(profile), "system": table.system, "modes": _offered_json(specification, profile)}
        for profile, table in specification.profiles.items()
    ]


def _offered_json(specification: Specification, profile: str) -> dict[str, list[object]]:
    keys = [key for key in Configuration.__dataclass_fields__ if issubclass(key_type(key), StrEnum | bool)]
    return {key: list(specification.supported_values(profile, key)) for key in keys if key != "profile"}


def system_json(specification: Specification, profile: str, modes: Sequence[ModeResult]) -> dict[str, object]:
    """All that the page of a system says, as plain JSON values."""
    table = specification.profiles[profile]
    return {
        "profile": str(profile),
        "system": table.system,
        "modes": _offered_json(specification, profile),
        "defaults": [
            {
                "key": row.key,
                **({"value": row.value} if row.third_of is None else {"third_of": row.third_of}),
                "when": row.when.text if row.when else None,
                "because": row.because,
                "source": row.source,
                "own": row.key in table.stated,
            }
            for row in table.defaults
        ],
        "given_back": [
            {
                "ack_mode": each.ack_mode,
                "action": each.action,
                "messages": list(each.fates),
                "sources": list(each.sources),
            }
            for each in given_back(specification, profile)
        ],
        "names": [
            {
                "name": name.name,
                "keys": list(name.keys),
                "synonym": name.is_synonym,
                "when": name.when.text.strip() if name.when else None,
                "values": {text: dict(values) for text, values in name.values.items()},
                "positive": dict.fromkeys(name.keys, name.positive[0]) if name.positive else None,
                "anything": dict.fromkeys(name.keys, name.anything[0]) if name.anything else None,
                "plus": name.plus,
                "refuses": dict(name.refused),
                "url": name.url,
                "differs": name.differs,
                "source": name.source,
            }
            for name in table.names.values()
        ],
        "constants": [
            {
                "name": constant.name,
                "number": constant.number,
                "setting": dict([constant.setting]) if constant.setting else None,
                "means": constant.means,
                "source": constant.source,
            }
            for constant in table.constants
        ],
        "refuses": [_refusal_json(row) for row in table.unsupported],
        "apis": {api: [_refusal_json(row) for row in rows] for api, rows in table.apis.items()},
        "events": [
            {"api": one.api, "name": one.name, "event": one.event, "means": one.means, "source": one.source}
            for one in table.events
        ],
        "deviates": [
            {
                "what": row.what,
                "when": row.when.text if row.when else None,
                "unmodelled": row.unmodelled,
                "source": row.source,
            }
            for row in table.deviates
        ],
        "checked": [_mode_json(mode) for mode in modes],
    }


def _refusal_json(row: Refusal) -> dict[str, object]:
    return {
        "when": row.when.text if row.when else None,
        "fixed": row.fixed,
        "outside": None if row.outside is None else _range_json(row.outside),
        "because": row.because,
        "source": row.source,
        "instead": row.instead,
    }


def _range_json(numbers: NumberRange) -> dict[str, object]:
    return {"key": numbers.key, "least": numbers.least, "most": numbers.most, "or": numbers.alone}


def _mode_json(mode: ModeResult) -> dict[str, object]:
    return {
        "config": mode.configuration.as_dict(),
        "promised_absent": {anomaly.value: _promise_json(promise) for anomaly, promise in mode.promised.items()},
        "gaps": [],
        "causes": {
            (fault.value if fault else "none"): {"anomalies": list(found.anomalies), "states": found.states}
            for fault, found in mode.causes.items()
        },
        "any_number": None
        if (one := mode.any_number) is None
        else {"possible": dict(one.possible), "undecided": dict(one.undecided)},
    }


def _promise_json(promise: Promise) -> dict[str, str]:
    return {"because": promise.because, "source": promise.source}
