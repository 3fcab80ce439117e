// What both pages share: words for figures, text nodes, charts, the connection.
"use strict";
const $ = id => document.getElementById(id);
const known = x => x !== null && x !== undefined && x === x;
const scaled = (x, base, units) => {
  let i = 0;
  for (x = Math.max(0, x); i < units.length - 1 && x >= base * 0.9995; i++) x /= base;
  return (i && x < 99.95 ? x.toFixed(1).replace(/\.0$/, "") : Math.round(x).toLocaleString("en")) + units[i];
};
const rate = x => known(x) ? scaled(x, 1000, ["", " k", " M", " G", " T"]) : "–";
const bytes = x => known(x) ? scaled(x, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]) : "–";
const count = x => known(x) ? Math.round(x).toLocaleString("en") : "–";
const percent = x => known(x) ? (x > 0 && x < 0.0995 ? (100 * x).toFixed(1) : Math.floor(100 * x + 1e-9)) + " %" : "–";
const span = s => {
  s = Math.max(0, Math.round(s));
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]], at = Math.max(0, units.findIndex(u => s >= u[0]));
  if (s < 60) return s + " s";
  const big = Math.floor(s / units[at][0]), rest = Math.floor(s % units[at][0] / units[at + 1][0]);
  return big + " " + units[at][1] + (rest ? " " + rest + " " + units[at + 1][1] : "");
};
const plural = (n, noun) => count(n) + " " + noun + (n === 1 ? "" : "s");
const clock = t => new Date(1000 * t).toLocaleTimeString("en-GB");
// Control characters as their pictures; what turns the direction of a text by its number.
const visible = s => String(s).replace(/[\0-\x1f\x7f]/g, c => c === "\x7f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0)))
  .replace(/[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, c => "⟨U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩");
const cut = (s, most = 72) => { const r = [...s]; return r.length <= most ? s : r.slice(0, most / 2).join("") + "…" + r.slice(1 - most / 2).join("") };
// make returns an element with attributes and children; text is always a text node.
const make = (tag, attributes, ...children) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) if (known(v) && v !== false) e.setAttribute(k, v);
  e.append(...children.filter(c => known(c) && c !== false));
  return e;
};
const name = (text, most) => { const v = visible(text); return make("bdi", {class: "name", title: v}, cut(v, most)) };
const say = (id, ...what) => {
  const e = $(id), text = what.map(w => typeof w === "string" ? w : w.outerHTML).join("");
  if (e.said !== text) { e.said = text; e.replaceChildren(...what) }
};
// facts says several things about the same, told apart by dots.
const facts = (id, ...what) => say(id, ...what.filter(known).flatMap((w, i) => i ? [" · ", w] : [w]));
const figure = (id, text, unit, sub) => { say(id, text, unit ? make("small", null, " " + unit) : ""); if (known(sub)) say(id + "-sub", sub) };
// rows keeps a table's or list's elements by key, so that focus, scrolling and transitions survive news.
const rows = (box, items, key, create, update) => {
  const have = box.items = box.items || new Map(), seen = new Set();
  let at = box.firstChild;
  for (const item of items) {
    const k = key(item);
    seen.add(k);
    let e = have.get(k);
    if (!e) { e = create(item); have.set(k, e) }
    update(e, item);
    if (e === at) at = at.nextSibling; else box.insertBefore(e, at);
  }
  for (const [k, e] of have) if (!seen.has(k)) { e.remove(); have.delete(k) }
};
const put = (e, text) => { if (e.textContent !== text) e.textContent = text };
const scale = (e, share) => { if (known(share) && share >= 0) e.value = share; else e.removeAttribute("value") };

const colour = n => getComputedStyle(document.documentElement).getPropertyValue("--" + n).trim();
// mixed is a colour laid over another: stacked areas are opaque, since each covers those beneath it.
const mixed = (a, b, share) => {
  const parts = c => (c.length === 4 ? [...c.slice(1)].map(d => d + d) : c.slice(1).match(/../g)).map(d => parseInt(d, 16));
  const [x, y] = [parts(a), parts(b)];
  return "#" + x.map((v, i) => Math.round(v * share + y[i] * (1 - share)).toString(16).padStart(2, "0")).join("");
};
const past = {times: [], columns: []};
const charts = [];
let range = 600, live = true;

// Chart is a uPlot with keys that read it out, a sentence, and its figures as a table. Series: {label, value(i) or column, color, fill,
// dash}. Stacked ones are listed from the bottom up and drawn as sums.
class Chart {
  constructor(id, o) {
    Object.assign(this, {box: $(id), format: rate, series: [], ...o});
    const h = make("h2", {id: id + "-h"}, o.title);
    if (o.note) h.append(make("small", null, o.note));
    this.unitText = make("p", {class: "unit"}, o.unit || "");
    this.plot = make("div", {class: "plot", tabindex: 0, role: "img", "aria-label": o.title});
    this.keys = make("ul", {class: "keys"});
    this.table = make("tbody");
    this.head = make("tr");
    this.details = make("details", null, make("summary", null, "as a table"),
      make("div", {class: "scroll short", tabindex: 0, role: "group", "aria-label": o.title + " as a table"}, make("table", null, make("thead", null, this.head), this.table)));
    this.details.addEventListener("toggle", () => this.fillTable());
    this.box.setAttribute("aria-labelledby", id + "-h");
    this.box.append(h, this.unitText, this.plot, this.keys, this.details);
    this.visible = true;
    new IntersectionObserver(e => { this.visible = e[0].isIntersecting; if (this.visible) this.draw() }, {rootMargin: "1500px"}).observe(this.plot);
    new ResizeObserver(() => this.u ? this.u.setSize(this.size()) : this.draw()).observe(this.plot);
    this.plot.addEventListener("keydown", e => this.key(e));
    this.plot.addEventListener("blur", () => { if (this.u) this.u.setCursor({left: -10, top: -10}, true, true) });
    charts.push(this);
  }
  size() { return {width: Math.max(120, this.plot.clientWidth), height: this.plot.clientHeight} }
  // data returns [x, y…] of the series, sums where they are stacked; raw has the figures themselves.
  data() {
    const [x, from] = this.times ? [this.times(), 0] : view();
    this.raw = this.series.map(s => s.values ? s.values(x) : s.column === undefined ? x.map(() => known(s.value) ? s.value : null) : past.columns[s.column].slice(from));
    let sum = x.map(() => 0);
    const y = this.raw.map((v, i) => this.series[i].stacked ? (sum = sum.map((n, k) => n + (v[k] || 0))).map((n, k) => known(v[k]) || n ? n : null) : v);
    return [x, ...y];
  }
  // set changes the series where their names changed.
  set(series) {
    const names = series.map(s => s.label + "|" + s.column + "|" + !!s.dash).join("\n");
    this.series = series;
    if (names === this.names) return;
    this.names = names;
    this.rebuild();
  }
  rebuild() { if (this.u) { this.u.destroy(); this.u = null } this.keyed = null; this.draw() }
  options() {
    const axis = {stroke: colour("soft"), grid: {stroke: colour("grid"), width: 1}, ticks: {show: false}, font: "12px system-ui, sans-serif", gap: 6};
    const drawn = this.series.map((s, i) => ({s, i})), order = [...drawn.filter(d => d.s.stacked).reverse(), ...drawn.filter(d => !d.s.stacked)];
    this.order = order.map(d => d.i);
    const one = this.kind === "bars";
    return {
      ...this.size(), legend: {show: false}, padding: [10, 26, 0, 0],
      cursor: {sync: one ? undefined : {key: "time", setSeries: false, scales: ["x", null]}, drag: {x: false, y: false}, y: false, points: {size: 7}},
      scales: {x: {time: !one, range: (u, min, max) => one ? [min - 0.5 * (this.step || 1), max + 0.5 * (this.step || 1)] : [Math.min(min, max - 5), max]},
        y: {range: (u, min, max) => [0, this.top || Math.max(this.least || 0, max || 0) * 1.08 || 1]}},
      axes: [{...axis, space: 76, size: 26, incrs: this.labels ? [1, 2, 4, 8] : undefined, values: (u, v) => v.map(t => this.labels ? this.labels(t) : one ? rate(t) : clock(t))},
        {...axis, space: 38, size: this.axis || 56, incrs: this.binary ? [...Array(50).keys()].flatMap(k => [2 ** k]) : undefined, values: (u, v) => v.map(x => this.tick ? this.tick(x) : this.format(x))}],
      series: [{}, ...order.map(({s}) => ({
        label: s.label, stroke: colour(s.color), width: s.dash || s.stacked ? 1.5 : one ? 0 : 2, dash: s.dash ? [6, 4] : undefined, points: {show: false},
        fill: s.stacked || one ? mixed(colour(s.color), colour("card"), one ? 0.85 : 0.6) : s.fill ? colour("fill") : undefined,
        paths: one ? uPlot.paths.bars({size: [0.92, 64]}) : undefined, spanGaps: false}))],
      hooks: {setCursor: [u => this.read(u.cursor.idx)], draw: [() => this.capLabel()]},
    };
  }
  draw() {
    if (!this.visible || document.hidden || !this.series.length || (!this.times && !past.times.length)) return;
    const d = this.data();
    if (!this.u) {
      this.u = new uPlot(this.options(), this.ordered(d), this.plot);
      this.keyed = null;
    } else this.u.setData(this.ordered(d));
    const i = this.u.cursor.idx;
    this.read(known(i) && this.u.cursor.left >= 0 ? i : null);
    if (this.details.open) this.fillTable();
  }
  ordered(d) { return [d[0], ...this.order ? this.order.map(i => d[i + 1]) : (this.options(), this.order.map(i => d[i + 1]))] }
  // capLabel writes a dashed line's name next to it.
  capLabel() {
    const s = this.series.find(s => s.dash && known(s.value));
    if (!s || !this.u) return;
    if (!this.cap) this.plot.append(this.cap = make("span", {class: "cap"}));
    put(this.cap, s.label + " " + this.format(s.value));
    this.cap.style.top = Math.max(0, this.u.valToPos(s.value, "y") - 2) + "px";
  }
  // read shows the figures at one moment, the latest where there is none, and says them for those who hear the page.
  read(i) {
    if (!this.raw) return;
    const x = this.u.data[0], at = known(i) ? i : x.length - 1, bars = this.kind === "bars";
    if (!this.keyed) {
      this.keyed = this.series.map(s => make("b"));
      this.when = make("li", {class: "soft"});
      this.keys.replaceChildren(...this.series.map((s, k) => make("li", {class: "k" + s.color.replace(/\D/g, "0").slice(-1)}, make("i", {class: s.dash ? "dash" : null}), s.label + " ", this.keyed[k])), this.when);
    }
    if (bars && !known(i)) {
      this.keyed.forEach(b => put(b, ""));
      put(this.when, this.say ? this.say() : "");
    } else {
      this.series.forEach((s, k) => put(this.keyed[k], known(i) || known(this.raw[k][at]) ? this.format(this.raw[k][at]) : ""));
      put(this.when, !known(i) ? "" : bars ? this.bin(at) : "at " + clock(x[at]));
    }
    const words = this.title + ": " + (bars ? this.say ? this.say() : "" : this.series.map((s, k) => s.label + " " + this.format(this.raw[k][at])).join(", ") + (known(i) ? ", at " + clock(x[at]) : ""));
    this.plot.setAttribute("aria-label", words);
  }
  key(e) {
    const move = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9}[e.key];
    if (!this.u) return;
    if (e.key === "Escape") return this.u.setCursor({left: -10, top: -10}, true, true);
    if (!move) return;
    e.preventDefault();
    const x = this.u.data[0], now = this.u.cursor.left >= 0 && known(this.u.cursor.idx) ? this.u.cursor.idx : x.length - 1;
    const to = Math.min(x.length - 1, Math.max(0, now + move));
    this.u.setCursor({left: this.u.valToPos(x[to], "x"), top: 10}, true, true);
  }
  fillTable() {
    if (!this.details.open || !this.raw) return;
    const x = this.u.data[0], n = x.length, step = Math.max(1, Math.ceil(n / 30)), bars = this.kind === "bars";
    this.head.replaceChildren(make("th", {scope: "col"}, bars ? "tokens" : "time"), ...this.series.map(s => make("th", {scope: "col"}, s.label)));
    const body = [];
    for (let i = n - 1; i >= 0; i -= bars ? 1 : step) body.push(make("tr", null, make("th", {scope: "row"}, bars ? this.bin(i) : clock(x[i])), ...this.raw.map(v => make("td", null, this.format(v[i])))));
    this.table.replaceChildren(...(bars ? body.reverse() : body));
  }
}

// view returns the times of the range that is looked at, and the index of the first.
const view = () => {
  const t = past.times, from = range ? Math.max(0, t.findIndex(v => v >= t[t.length - 1] - range)) : 0;
  return [t.slice(from), from];
};
const redraw = () => charts.forEach(c => c.draw());
const rebuild = () => charts.forEach(c => c.rebuild());
for (const q of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) matchMedia(q).addEventListener("change", rebuild);
document.addEventListener("visibilitychange", () => { if (!document.hidden) redraw() });

const rangeButtons = () => {
  const box = make("div", {class: "range", role: "group", "aria-label": "Time that charts show"});
  for (const [seconds, text] of [[120, "2 min"], [600, "10 min"], [0, "all"]]) {
    const b = make("button", {type: "button", "aria-pressed": String(seconds === range)}, text);
    b.addEventListener("click", () => { range = seconds; for (const o of box.children) o.setAttribute("aria-pressed", String(o === b)); redraw() });
    box.append(b);
  }
  $("range").append(box);
};

const addPoint = p => {
  if (past.times.length && p[0] <= past.times[past.times.length - 1]) return;
  past.times.push(p[0]);
  for (let i = 1; i < p.length; i++) (past.columns[i - 1] = past.columns[i - 1] || []).push(p[i]);
  if (past.times.length > 3000) for (const c of [past.times, ...past.columns]) c.splice(0, 600);
};

// connect listens to the server, for as long as it takes, and calls show(state, ended).
const connect = show => {
  let heard = Date.now(), source, over = false, again = 0;
  const here = t => { heard = Date.now(); if (!$("gone").hidden) { $("gone").hidden = true; document.body.classList.remove("lost") } };
  const gone = () => {
    if (over) return;
    $("gone").hidden = false;
    document.body.classList.add("lost");
    put($("gone"), "No answer since " + clock(heard / 1000) + ". Retrying …");
  };
  const news = (e, ended) => {
    const m = JSON.parse(e.data);
    here();
    if (m.point) addPoint(m.point);
    show(m.state, ended);
    // Until there is something to show: cards without figures say nothing.
    document.querySelector("main").classList.toggle("waiting", m.state.phase === "preparing" && !ended);
    redraw();
  };
  const open = () => {
    source = new EventSource("v1/live");
    source.addEventListener("begin", () => { past.times.length = 0; past.columns.length = 0; here() });
    source.addEventListener("past", e => { JSON.parse(e.data).forEach(addPoint) });
    source.addEventListener("now", e => news(e, false));
    source.addEventListener("end", e => { over = true; source.close(); news(e, true) });
    source.addEventListener("error", () => { if (Date.now() - heard > 1500) gone(); if (source.readyState === 2 && !over) { source.close(); clearTimeout(again); again = setTimeout(open, 2000) } });
  };
  setInterval(() => { if (Date.now() - heard > 4000) gone() }, 1000);
  open();
};
