"""The picture in a real browser: it opens fast, the keyboard reaches everything, and foreign text does nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from ackfsm.cli import main
from ackfsm.showing.views import picture as view
from model_tests.support.browser import browser, opened
from model_tests.support.places import DATA
from model_tests.support.verify.large_history import Planted, write_parquet
from model_tests.support.whole import before_a_release

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HEADER = {"ackfsm_history": 1, "config": {"profile": "jms", "ack_mode": "CLIENT_ACKNOWLEDGE"}}
NIGHT = DATA / "last-night.jsonl"
RECORDED = DATA / "rabbitmq-b-confirm-manual-broker-kill.jsonl.gz"
MILLION = 250_000
"""Messages with about a million lines."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Gives the page of a history, which is drawn once."""
    folder, made = tmp_path_factory.mktemp("pages"), dict[tuple[str, ...], Path]()

    def draw(*words: str | Path) -> Path:
        key = tuple(map(str, words))
        if key not in made:
            file = folder / f"{len(made)}.html"
            assert main(["verify", "--html", str(file), "--json", *key]) in {0, 1, 3}
            made[key] = file
        return made[key]

    return draw


def _history(folder: Path, messages: Sequence[str]) -> Path:
    """A history in which every one of ``messages`` is delivered twice, and only the first is processed."""
    lines: list[dict[str, Any]] = [HEADER]
    for number, message in enumerate(messages):
        about = {"queue": message[:300], "message": message}
        handed = {"process": "c", "session": message[:200], "event": "delivered", "redelivered": False, **about}
        t = 1_770_952_324_200_000_000 + number * 10**9
        lines += [
            {"t": t, "process": f"p{message[:200]}", "event": "send", **about},
            {"t": t + 10, "process": f"p{message[:200]}", "event": "confirmed", **about},
            {"t": t + 20, **handed},
            {"t": t + 30, **handed},
        ]
    lines += [
        {"t": 1_770_952_999_000_000_000, "process": "c", "event": "processed", "message": messages[0]},
        {"t": 1_770_953_000_000_000_000, "process": "nemesis", "event": "drained"},
    ]
    file = folder / "history.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def _data(file: Path) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@before_a_release
def test_a_million_events_open(chromium: Browser, tmp_path: Path) -> None:
    history, file = tmp_path / "million.parquet", tmp_path / "million.html"
    planted = Planted.of(MILLION, 300, 1)
    assert write_parquet(history, MILLION, planted) > 999_000
    assert main(["verify", "--html", str(file), "--json", str(history)]) == 1
    assert file.stat().st_size < 5_000_000
    with opened(chromium, file) as its:
        its.page.wait_for_selector(".mark")
        assert its.page.locator("#status").inner_text() == "800 messages can be opened."
        assert its.page.locator("#more-of p").count() == 4
        assert "200 of 300 messages can be opened here" in its.page.locator("#more-of").inner_text()
        its.page.select_option("#queue", "3")
        assert (its.errors, its.asked) == ([], [])
    marks = {each["name"]: sum(count for _, count, _ in each["counts"]["all"]) for each in _data(file)["marks"]}
    assert marks == dict.fromkeys(planted.as_mapping(), 300)


def test_a_mark_opens_the_life_of_its_message_and_escape_closes_it(chromium: Browser, drawn: Any) -> None:
    with opened(chromium, drawn(NIGHT)) as its:
        mark = its.page.get_by_role("button", name="loss: 1 message")
        mark.click()
        life = its.page.get_by_role("dialog")
        text = life.inner_text()
        assert "message 'm2' was lost, and nothing recorded explains it" in text
        assert "never delivered; no fault after 10:00:12 explains it" in text
        assert life.get_by_role("row", name="10:05:00.000 14 queue seen empty ← impossible").is_visible()
        assert "over before 'm2' was there" in text
        assert "ackfsm explain" in text
        its.page.keyboard.press("Escape")
        assert life.count() == 0
        assert _focused(its.page) == mark.get_attribute("aria-label")
        its.page.get_by_role("button", name="broker_kill, 10:00:05 to 10:00:12").click()
        assert "It explains what befell 1 message." in its.page.get_by_role("dialog").inner_text()
        assert (its.errors, its.asked) == ([], [])


def test_the_lives_of_one_list_follow_one_another(chromium: Browser, drawn: Any) -> None:
    with opened(chromium, drawn(NIGHT)) as its:
        its.page.get_by_role("button", name="m2", exact=True).click()
        title = its.page.locator("#life-title")
        assert "'m2' was lost" in title.inner_text()
        its.page.get_by_role("button", name="Next").press("Enter")
        assert "'m1' was delivered again" in title.inner_text()
        assert its.page.locator("#place").inner_text() == "2 of 2"
        assert its.page.get_by_role("button", name="Next").is_disabled()
        its.page.get_by_role("button", name="Close").click()
        assert its.page.get_by_role("dialog").count() == 0


def test_filters_choose_what_is_drawn_and_listed(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "filtered.html"
    main(["verify", "--html", str(file), "--json", str(_history(tmp_path, ["one", "two", "three"]))])
    data = _data(file)
    with opened(chromium, file) as its:
        page = its.page
        assert page.locator("#messages tbody tr").count() == 3
        page.select_option("#queue", str(data["queues"].index("two")))
        assert page.locator("#messages tbody tr").count() == 1
        assert page.locator("#status").inner_text() == "1 message in queue two can be opened."
        assert "1 message;" in page.locator(".row", has_text="unflagged_duplicate").first.inner_text()
        page.select_option("#session", str(data["sessions"].index("one")))
        assert page.locator("#status").inner_text() == "0 messages in queue two of session one can be opened."
        assert page.locator(".mark").count() == 0
        page.get_by_role("button", name="Show all").click()
        page.wait_for_function("document.querySelectorAll('#messages tbody tr').length === 3")
        kind = next(place for place, each in enumerate(data["marks"]) if each["name"] == "unflagged_duplicate")
        page.select_option("#anomaly", str(kind))
        labels = page.eval_on_selector_all(".mark", "all => all.map(each => each.ariaLabel)")
        assert labels
        assert all(each.startswith("unflagged_duplicate: ") for each in labels)
        assert page.locator(".row", has_text="unprocessed").count() == 0
        assert (its.errors, its.asked) == ([], [])


def _focused(page: Page) -> str:
    """What has the focus, as it is called."""
    return str(
        page.evaluate(
            """() => { const it = document.activeElement;
            return it.getAttribute("aria-label") || it.id || it.textContent.trim(); }"""
        )
    )


WANTED = "main :is(select:not(:disabled), button:not([hidden] *), summary, [role=slider])"


def test_the_keyboard_reaches_every_filter_chart_band_and_mark(chromium: Browser, drawn: Any) -> None:
    with opened(chromium, drawn(RECORDED)) as its:
        page = its.page
        for _ in range(300):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement === document.body || document.activeElement.seen === true"):
                break
            _seen_with_focus(page)
            if page.evaluate("document.activeElement.parentElement.matches('.plot[role=group]')"):
                for _ in range(page.evaluate("document.activeElement.parentElement.childElementCount") - 1):
                    page.keyboard.press("ArrowRight")
                    _seen_with_focus(page)
        left = page.evaluate(
            "wanted => [...document.querySelectorAll(wanted)].filter(each => !each.seen && each.checkVisibility())"
            ".map(each => each.outerHTML)",
            WANTED,
        )
        assert left == []
        assert page.locator(WANTED).count() > 30


def _seen_with_focus(page: Page) -> None:
    """Note what has the focus, and see that this is shown."""
    page.evaluate("document.activeElement.seen = true")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", _focused(page)


def test_arrow_keys_read_the_chart_aloud(chromium: Browser, drawn: Any) -> None:
    with opened(chromium, drawn(NIGHT)) as its:
        slider = its.page.get_by_role("slider", name="Throughput")
        slider.focus()
        assert slider.get_attribute("aria-valuetext", timeout=1000).startswith("10:00:00: sent 1/s, confirmed 1/s")  # type: ignore[union-attr]
        slider.press("ArrowRight")
        assert "10:00:01: sent 0/s" in its.page.locator("#readout").inner_text()
        slider.press("End")
        assert slider.get_attribute("aria-valuenow") == slider.get_attribute("aria-valuemax")
        assert "sent and not yet delivered 1" in its.page.locator("#readout").inner_text()


def test_the_table_has_what_the_chart_shows(chromium: Browser, drawn: Any) -> None:
    file = drawn(RECORDED)
    with opened(chromium, file) as its:
        its.page.get_by_text("The chart as a table").click()
        head = its.page.locator("#numbers thead th").all_inner_texts()
        rows = its.page.eval_on_selector_all(
            "#numbers tbody tr", "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
        )
        column = head.index("delivered")
        data = _data(file)
        number = next(each["key"] for each in data["series"] if each["name"] == "delivered")
        drawn_ = next(run for key, run in data["counts"]["all"] if key == number)
        assert sum(int(row[column].replace(",", "")) for row in rows) == sum(drawn_[1:]) > 0


HOSTILE = {
    "a script": "</script><script>window.hit = 1</script>",
    "an image": "<img src=x onerror='window.hit = 1'>",
    "a comment": "<!-- <script> --!><svg onload=window.hit=1>",
    "an attribute": "\" onfocus=window.hit=1 autofocus x='",
    "a terminal": "\x1b[2J\x1b]0;owned\x07\x9b\x00",
    "lines": "a\u2028b\u2029c\r\nd",
    "another direction": "\u202egnihton\u2066",
    "a template": "$data ${window.hit = 1} $$ {{7*7}}",
    "long": "m" * 10_240,
    "a key": "__proto__",
}


def test_foreign_text_is_text(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "hostile.html"
    main(["verify", "--html", str(file), "--json", str(_history(tmp_path, list(HOSTILE.values())))])
    source = file.read_bytes()
    assert not [byte for byte in source if byte < 32 and byte != 10]
    assert source.count(b"</script>") == 2
    assert source.isascii() or "\u202e" not in source.decode()
    assert b"m" * 300 not in source
    with opened(chromium, file) as its:
        page = its.page
        assert page.locator("#messages tbody tr").count() == len(HOSTILE)
        for place in range(len(HOSTILE)):
            page.locator("#messages tbody button").nth(place).click()
            page.keyboard.press("Escape")
        for place in range(len(HOSTILE)):
            page.select_option("#queue", str(place))
        page.get_by_text("The chart as a table").click()
        assert page.evaluate("window.hit") is None
        assert page.locator("img, svg[onload], script:not([type])").count() == 1
        assert (its.errors, its.asked) == ([], [])
        page.get_by_role("button", name="Show all").click()
        page.wait_for_timeout(50)
        assert HOSTILE["a script"] in page.locator("#messages").inner_text()


def test_the_page_may_load_nothing_and_run_nothing_else(chromium: Browser, drawn: Any) -> None:
    file = drawn(NIGHT)
    assert not re.search(
        r"""(src|href)=|https?:|url\(|@import""", file.read_text().split('<script type="application/json"')[0]
    )
    with opened(chromium, file) as its:
        refused = its.page.evaluate(
            """async () => {
              const made = document.createElement("script");
              made.textContent = "window.hit = 1";
              document.body.append(made);
              try { await fetch("data:text/plain,x"); return "fetched"; } catch { return String(window.hit); }
            }"""
        )
        assert refused == "undefined"
        assert its.errors
        assert all("Content Security Policy" in each for each in its.errors)


SCHEMES: tuple[Any, ...] = ("light", "dark")


def _colours(page: Page) -> dict[str, tuple[int, ...]]:
    names = re.findall(r"--[a-z0-9-]+", _STYLE.split("}", maxsplit=1)[0])
    found = page.evaluate(
        """names => names.map(name => {
          const probe = document.createElement("i");
          probe.style.color = `var(${name})`;
          document.body.append(probe);
          const colour = getComputedStyle(probe).color;
          probe.remove();
          return colour; })""",
        names,
    )
    return {name: tuple(map(int, re.findall(r"\d+", each)[:3])) for name, each in zip(names, found, strict=True)}


_STYLE = (Path(view.__file__).parent / "picture.css").read_text()


def _contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """As WCAG 2.2 defines it."""

    def luminance(colour: tuple[int, ...]) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (each / 255 for each in colour)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [1280, 400])
def test_light_and_dark_have_contrast_and_fit(chromium: Browser, drawn: Any, scheme: Any, width: int) -> None:
    with opened(chromium, drawn(RECORDED), width=width, color_scheme=scheme) as its:
        page, colours = its.page, _colours(its.page)
        assert (sum(colours["--paper"]) > 600) is (scheme == "light")
        for text in ("--ink", "--soft", "--red", "--green", "--amber", "--s0", "--s1", "--s2", "--s3"):
            for ground in ("--paper", "--panel"):
                assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        for ground in ("--red", "--green", "--amber"):
            assert _contrast(colours["--on"], colours[ground]) >= 4.5
        for edge in ("--focus", "--band-line", "--guess-line", "--soft"):
            assert _contrast(colours[edge], colours["--paper"]) >= 3
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(page)
        assert not found.response["violations"], found.generate_report()
        page.locator("#messages tbody button").first.click()
        found = Axe().run(page)
        assert not found.response["violations"], found.generate_report()
        its.errors.clear()  # what axe itself tries is refused


def test_on_paper_it_is_light_and_without_filters(chromium: Browser, drawn: Any) -> None:
    with opened(chromium, drawn(NIGHT), color_scheme="dark") as its:
        its.page.emulate_media(media="print")
        assert sum(_colours(its.page)["--paper"]) == 765
        assert its.page.locator("#filters").is_hidden()
        assert its.page.locator(".mark").first.is_visible()


def test_without_a_script_it_tells_the_answer(chromium: Browser, drawn: Any) -> None:
    with opened(chromium, drawn(NIGHT), java_script_enabled=False) as its:
        text = its.page.locator("body").inner_text()
        assert "1 message was lost, which nothing recorded explains" in text
        assert "need JavaScript" in text
        assert its.page.get_by_role("row", name="loss 1 not allowed").is_visible()


def test_faults_that_nobody_recorded_are_bands_too(chromium: Browser, tmp_path: Path) -> None:
    lines = [line for line in NIGHT.read_text().splitlines() if '"fault"' not in line and '"recovered"' not in line]
    history, file = tmp_path / "night.jsonl", tmp_path / "night.html"
    history.write_text("\n".join(lines))
    main(["verify", "--html", str(file), "--json", "--faults", "any", str(history)])
    with opened(chromium, file) as its:
        assert its.page.locator(".band.guess").count() >= 1
        its.page.locator(".band.guess").first.click()
        assert "nobody recorded it" in its.page.get_by_role("dialog").inner_text()
        assert "--faults any" in its.page.get_by_role("dialog").inner_text()


def test_a_broken_connection_is_no_fault_that_nobody_recorded(chromium: Browser, drawn: Any) -> None:
    with opened(chromium, drawn(RECORDED)) as its:
        lanes = its.page.locator(".row:has(.band) .name").all_inner_texts()
        assert [each.split("\n") for each in lanes] == [
            ["broker_kill", "recorded, the broker"],
            ["consumer_link_loss", "broken connection, consumer-2"],
            ["producer_link_loss", "broken connection, producer-1"],
            ["consumer_link_loss", "broken connection, consumer-1"],
        ]
