
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const text = (place) => data.texts[place];
  const by = (id) => document.getElementById(id);
  const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
  const bins = data.labels.length;
  const LANE = 12; // pixels that a mark takes at least
  const PAGE = 20;
  const FEW_LANES = 6;
  const state = { queue: -1, session: -1, anomaly: -1, cursor: -1, rows: PAGE, list: [], at: 0 };

  function element(name, options, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(options || {})) {
      if (key === "class") made.className = value;
      else if (key === "style") Object.assign(made.style, value);
      else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  function drawing(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  const plural = (count, one, many) => `${number.format(count)} ${count === 1 ? one : many || `${one}s`}`;

  // ---- what is counted under the filters

  /** The counts that the filters choose; null where they cannot be told apart. */
  function chosen(counts) {
    const { queue, session } = state;
    if (queue < 0 && session < 0) return counts.all || [];
    const kind = queue < 0 ? "session" : session < 0 ? "queue" : "pair";
    if (!counts[kind]) return null;
    const key = kind === "pair" ? `${queue} ${session}` : String(kind === "queue" ? queue : session);
    return counts[kind][key] || [];
  }

  function spread(run, level) {
    const values = new Array(bins).fill(0);
    if (!run) return values;
    const [offset, ...its] = run;
    its.forEach((value, place) => (values[offset + place] = value));
    if (level) values.fill(its[its.length - 1], offset + its.length);
    return values;
  }

  function columns() {
    const counts = chosen(data.counts);
    by("cannot").hidden = counts !== null;
    by("cannot").textContent = counts === null ? data.cannot : "";
    const runs = counts === null ? data.counts.all : counts;
    return data.series.map((series) => {
      const run = runs.find((each) => each[0] === series.key);
      return { ...series, values: spread(run && run[1], series.level) };
    });
  }

  const rate = (count) => count / data.seconds;

  function kept(story) {
    const { queue, session, anomaly } = state;
    return (queue < 0 || story.queue === queue) && (session < 0 || story.sessions.includes(session)) &&
      (anomaly < 0 || story.kinds.includes(anomaly));
  }

  // ---- the chart

  function row(title, note, plot) {
    return element("div", { class: "row" }, element("div", { class: "name" }, element("b", {}, title), ...note), plot);
  }

  function lines(title, unit, series, scale) {
    const most = Math.max(1e-9, ...series.map((each) => Math.max(...each.values.map(scale))));
    const svg = drawing("svg", { viewBox: `0 0 ${bins} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
    series.forEach((each, place) => {
      const points = each.values.map((value, bin) => `${bin ? "L" : "M"}${bin} ${100 - (100 * scale(value)) / most}h1`);
      svg.append(drawing("path", { d: points.join(""), class: `p${place}` }));
    });
    const empty = series.every((each) => each.values.every((value) => value === 0));
    const top = element("div", { class: "top" }, empty ? "nothing" : `at most ${number.format(most)} ${unit}`);
    const shades = data.bands.map((band) => element("div", {
      class: band.guess ? "shade guess" : "shade",
      style: { left: `${100 * band.from}%`, width: `${100 * (band.to - band.from)}%` },
    }));
    const told = series.map((each) => `${each.name}: at most ${number.format(scale(Math.max(...each.values)))} ${unit}`);
    const plot = element("div", {
      class: "plot tall", role: "slider", tabindex: "0", "aria-label": `${title}; ${told.join("; ")}`,
      "aria-valuemin": "0", "aria-valuemax": String(bins - 1), "aria-valuenow": String(Math.max(0, state.cursor)),
    }, ...shades, svg, top);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      point(Math.floor(((event.clientX - box.left) / box.width) * bins));
    });
    plot.addEventListener("focus", () => point(Math.max(0, state.cursor)));
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 20, PageDown: -20 }[event.key];
      const to = step ? Math.max(0, state.cursor) + step : { Home: 0, End: bins - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      point(to);
    });
    const keys = series.map((each, place) =>
      element("span", {}, element("i", { class: `k${place}`, "aria-hidden": "true" }), each.name));
    return row(title, [element("div", { class: "key" }, ...keys)], plot);
  }

  function point(bin) {
    const to = Math.min(bins - 1, Math.max(0, bin));
    state.cursor = to;
    const now = shown.map((each) => `${each.name} ${number.format(each.level ? each.values[to] : rate(each.values[to]))}` +
      (each.level ? "" : "/s"));
    const told = `${data.labels[to]}: ${now.join(", ")}`;
    by("readout").textContent = told;
    for (const line of document.querySelectorAll(".cursor")) line.remove();
    for (const plot of document.querySelectorAll("#chart .row:not(.axis) .plot")) {
      plot.append(element("div", { class: "cursor", style: { left: `${(100 * (to + 0.5)) / bins}%` } }));
    }
    for (const plot of document.querySelectorAll("[role=slider]")) {
      plot.setAttribute("aria-valuenow", String(to));
      plot.setAttribute("aria-valuetext", told);
    }
  }

  /** A lane: one stop of Tab, and the arrow keys go from button to button. */
  function lane(title, note, buttons) {
    const plot = element("div", { class: "plot", role: "group", "aria-label": title }, ...buttons);
    buttons.forEach((button, place) => button.setAttribute("tabindex", place ? "-1" : "0"));
    plot.addEventListener("keydown", (event) => {
      const at = buttons.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      const next = buttons[Math.min(buttons.length - 1, Math.max(0, to))];
      buttons.forEach((button) => button.setAttribute("tabindex", button === next ? "0" : "-1"));
      next.focus();
    });
    return row(title, note, plot);
  }

  function bandLanes() {
    return data.lanes.map((its) => {
      const bands = data.bands.filter((band) => band.lane === its.key);
      return lane(its.title, [element("small", {}, its.note)], bands.map((band) => element("button", {
        type: "button", class: band.guess ? "band guess" : "band", "aria-label": band.told, title: band.told,
        style: { left: `${100 * band.from}%`, width: `${100 * (band.to - band.from)}%` },
        onclick: () => openFault(band),
      })));
    });
  }

  function markLanes(width) {
    const together = Math.max(1, Math.ceil((bins * LANE) / width));
    return data.marks.flatMap((marks, kind) => {
      if (state.anomaly >= 0 && state.anomaly !== kind) return [];
      const its = chosen(marks.counts);
      const found = new Map();
      for (const [bin, count] of its === null ? marks.counts.all : its) {
        const column = Math.floor(bin / together);
        found.set(column, (found.get(column) || 0) + count);
      }
      const most = Math.max(1, ...found.values());
      const total = [...found.values()].reduce((sum, count) => sum + count, 0);
      const buttons = [...found].sort((one, other) => one[0] - other[0]).map(([column, count]) => {
        const first = column * together, last = Math.min(bins, first + together);
        const told = `${marks.name}: ${plural(count, "message")} at ${data.labels[first]}`;
        const height = Math.round(8 + (16 * Math.log1p(count)) / Math.log1p(most));
        return element("button", {
          type: "button", class: `mark ${marks.style}`, "aria-label": told, title: told,
          style: { left: `${(100 * first) / bins}%`, width: `${(100 * (last - first)) / bins}%` },
          onclick: () => openMark(kind, first, last, count),
        }, element("i", { "aria-hidden": "true", style: { height: `${height}px` } }));
      });
      return [lane(marks.name, [element("small", {}, `${plural(total, "message")}; ${marks.told}`)], buttons)];
    });
  }

  function axis(width) {
    const count = Math.max(2, Math.min(8, Math.floor(width / 130)));
    const plot = element("div", { class: "plot" });
    for (let place = 0; place < count; place++) {
      const bin = Math.round((place * (bins - 1)) / (count - 1));
      const edge = place === 0 ? " first" : place === count - 1 ? " last" : "";
      const left = place === count - 1 ? 100 : (100 * bin) / bins;
      plot.append(element("div", { class: `tick${edge}`, style: { left: `${left}%` } }, data.labels[bin]));
    }
    const made = element("div", { class: "row axis", "aria-hidden": "true" }, element("div", { class: "name" }), plot);
    return made;
  }

  let shown = columns();

  function draw() {
    const chart = by("chart");
    const held = document.activeElement && chart.contains(document.activeElement);
    const width = Math.max(200, chart.clientWidth - (window.innerWidth > 640 ? 208 : 0));
    shown = columns();
    chart.replaceChildren(
      ...bandLanes(),
      lines("Throughput", "per second", shown.filter((each) => !each.level), rate),
      lines("Open at the end of a bin", "open", shown.filter((each) => each.level), (value) => value),
      ...markLanes(width),
      axis(width),
    );
    if (state.cursor >= 0) point(state.cursor);
    if (held) chart.querySelector("[tabindex='0']").focus();
  }

  // ---- the numbers as a table

  function numbers() {
    const part = by("numbers");
    if (!part.open) return;
    const head = ["time", ...shown.map((each) => (each.level ? `${each.name} (open)` : each.name)),
      ...data.marks.map((marks) => marks.name)];
    const marked = data.marks.map((marks) => new Map((chosen(marks.counts) || marks.counts.all)));
    const rows = data.labels.flatMap((label, bin) => {
      const values = [...shown.map((each) => each.values[bin]), ...marked.map((its) => its.get(bin) || 0)];
      if (values.every((value) => value === 0)) return [];
      return [element("tr", {}, element("th", { scope: "row" }, label),
        ...values.map((value) => element("td", { class: "n" }, number.format(value))))];
    });
    const title = element("caption", {}, `Counts in bins of ${data.width}; a bin in which nothing was counted or open is left out`);
    part.querySelector("div").replaceChildren(element("table", {}, title,
      element("thead", {}, element("tr", {}, ...head.map((name, place) =>
        element("th", place ? { scope: "col", class: "n" } : { scope: "col" }, name)))),
      element("tbody", {}, ...rows)));
  }

  // ---- the messages in question

  function messages() {
    const list = data.stories.filter(kept);
    const rows = list.slice(0, state.rows).map((story, place) => element("tr", {},
      element("td", {}, element("button", { type: "button", onclick: () => openStories(list, place) }, text(story.message))),
      element("td", {}, story.kinds.map((kind) => data.marks[kind].name).join(", ")),
      element("td", { class: "t" }, data.labels[story.bin]),
      element("td", {}, story.queue < 0 ? "" : data.queues[story.queue]),
      element("td", {}, text(story.head))));
    by("messages").querySelector("tbody").replaceChildren(...rows);
    by("messages").hidden = !list.length;
    const left = list.length - rows.length;
    by("further").hidden = left <= 0;
    by("further").textContent = `Show ${Math.min(PAGE, left)} more of ${number.format(left)}`;
    const more = data.marks.filter((marks, kind) => marks.left && (state.anomaly < 0 || state.anomaly === kind));
    by("more-of").replaceChildren(...more.map((marks) => element("p", { class: "note" },
      `${marks.name}: ${number.format(marks.messages - marks.left)} of ${plural(marks.messages, "message")} ` +
      "can be opened here, the worst first; all of them are written as a table by ", element("code", {}, data.all))));
    const parts = [state.anomaly < 0 ? "" : ` with ${data.marks[state.anomaly].name}`,
      state.queue < 0 ? "" : ` in queue ${data.queues[state.queue]}`,
      state.session < 0 ? "" : ` of session ${data.sessions[state.session]}`].join("");
    by("status").textContent = data.stories.length
      ? `${plural(list.length, "message")}${parts} can be opened.` : "No message is in question.";
  }

  // ---- the life of a message

  function openStories(list, at) {
    state.list = list;
    state.at = at;
    fill(storyBody);
  }

  function openMark(kind, first, last, count) {
    const marks = data.marks[kind];
    const list = marks.stories.map((place) => data.stories[place])
      .filter((story) => story.bin >= first && story.bin < last && kept(story));
    if (list.length) {
      openStories(list, 0);
      return;
    }
    const told = marks.counts.all.find(([bin]) => bin >= first && bin < last);
    state.list = [];
    fill(() => {
      by("life-title").textContent = `${marks.name}: ${plural(count, "message")} at ${data.labels[first]}`;
      const body = [element("p", {}, "Their lives are not in this file: it has those of the worst messages of each anomaly.")];
      if (told && told[2] !== null) body.push(element("p", {}, "The first of them: ", element("code", {}, text(told[2]))));
      body.push(element("p", {}, "All of them, as a table: ", element("code", {}, data.all)));
      return body;
    });
  }

  function openFault(band) {
    state.list = [];
    fill(() => {
      by("life-title").textContent = band.told;
      const body = [element("p", {}, band.explains)];
      if (band.command) body.push(element("p", {}, "What was open then: ", element("code", {}, band.command)));
      return body;
    });
  }

  function fill(body) {
    by("life-body").replaceChildren(...body());
    const several = state.list.length > 1;
    for (const id of ["previous", "next", "place"]) by(id).hidden = !several;
    by("previous").disabled = state.at === 0;
    by("next").disabled = state.at >= state.list.length - 1;
    by("place").textContent = several ? `${number.format(state.at + 1)} of ${number.format(state.list.length)}` : "";
    const dialog = by("life");
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    by("life-title").focus();
  }

  function storyBody() {
    const story = state.list[state.at];
    by("life-title").replaceChildren(
      element("span", { class: `verdict ${story.verdict}` }, story.verdict), ` ${text(story.head)}`);
    const body = story.life.map((sentence) => element("p", {}, text(sentence)));
    body.push(element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": "Its lines" }, lanes(story)));
    if (story.left) body.push(element("p", { class: "note" }, `${plural(story.left, "line")} between are left out.`));
    body.push(...story.impossible.map((sentence, place) => element("p", place ? {} : { class: "bad" }, text(sentence))));
    if (story.faults.length) {
      body.push(element("h3", {}, "Faults"), element("ul", {}, ...story.faults.map((each) => element("li", {}, text(each)))));
    }
    body.push(...story.notes.map((sentence) => element("p", {}, text(sentence))));
    if (story.command !== null) body.push(element("p", {}, "The same on a terminal: ", element("code", {}, text(story.command))));
    return body;
  }

  function lanes(story) {
    const names = story.lanes.map(text);
    const narrow = window.innerWidth < 110 * (names.length + 2) || names.length > FEW_LANES;
    const apart = story.sides.length > 1 || narrow;
    const heads = story.sides.length > 1 ? ["who", ...story.sides.map(text)] : narrow ? ["who", "what"] : names;
    const rows = story.rows.map(([time, line, who, told, kind, explains, sides]) => {
      const words = [text(told)];
      if (kind === 1) words.push(" ← impossible");
      if (explains !== null) words.push(` ← explains ${text(explains)}`);
      const filled = (cell) => (cell ? words : []);
      const cells = story.sides.length > 1 ? story.sides.map((_, place) => filled(sides & (1 << place)))
        : narrow ? [words] : names.map((_, place) => filled(place === who));
      const style = kind ? { class: "bad" } : {};
      return element("tr", kind === 1 ? { class: "impossible" } : {},
        element("td", { class: "t" }, text(time)), element("td", { class: "n" }, number.format(line)),
        ...(apart ? [element("td", {}, names[who])] : []),
        ...cells.map((cell) => element("td", style, ...cell)));
    });
    return element("table", {},
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "time"),
        element("th", { scope: "col", class: "n" }, "line"), ...heads.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows));
  }

  // ---- filters

  function options(id, any, names) {
    by(id).replaceChildren(element("option", { value: "-1" }, any),
      ...names.map((name, place) => element("option", { value: String(place) }, name)));
    by(id).disabled = names.length < 2;
    by(id).addEventListener("change", () => {
      state[id] = Number(by(id).value);
      state.rows = PAGE;
      update();
    });
  }

  function update() {
    draw();
    numbers();
    messages();
  }

  options("queue", "all queues", data.queues);
  options("session", "all sessions", data.sessions);
  options("anomaly", "all anomalies", data.marks.map((marks) => `${marks.name} (${number.format(marks.messages)})`));
  by("filters").addEventListener("submit", (event) => event.preventDefault());
  by("filters").addEventListener("reset", () => {
    Object.assign(state, { queue: -1, session: -1, anomaly: -1, rows: PAGE });
    for (const id of ["queue", "session", "anomaly"]) by(id).value = "-1";
    setTimeout(update);
  });
  by("further").addEventListener("click", () => {
    const before = state.rows;
    state.rows += PAGE;
    messages();
    by("messages").querySelectorAll("tbody button")[before].focus();
  });
  by("numbers").addEventListener("toggle", numbers);
  by("close").addEventListener("click", () => by("life").close());
  for (const [id, step] of [["previous", -1], ["next", 1]]) {
    by(id).addEventListener("click", () => {
      state.at += step;
      fill(storyBody);
      if (!by(id).disabled) by(id).focus();
    });
  }
  let waiting = 0;
  let last = 0;
  new ResizeObserver(() => {
    if (by("chart").clientWidth === last) return;
    last = by("chart").clientWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(draw);
  }).observe(by("chart"));
  by("picture").hidden = false;
  last = by("chart").clientWidth;
  update();
})();
