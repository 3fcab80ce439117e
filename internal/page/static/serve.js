// The page of a server.
"use strict";
const [TOKENS, ROWS, PADDING, RESIDENT, LEASED, STARVED, BUSY, LANES] = [0, 1, 2, 3, 4, 5, 6, 7];
const colours = ["s1", "s2", "s3", "s4", "s5", "s6"];
const latest = c => past.columns[c] && past.columns[c].length ? past.columns[c][past.columns[c].length - 1] : null;
const tokenChart = new Chart("chart-tokens", {title: "Tokens by trainer", unit: "tokens/s, before padding"});
const waitChart = new Chart("chart-waits", {title: "Who waits for whom", unit: "share of the time, mean of all trainers", format: percent, top: 1, axis: 48});
const memoryChart = new Chart("chart-memory", {title: "Memory", unit: "bytes", format: bytes, binary: true, axis: 68});
const paddingChart = new Chart("chart-padding", {title: "Padding efficiency", unit: "tokens among the elements of batches", format: percent, top: 1, axis: 48});
const bar = o => ({kind: "bars", format: count, tick: rate, times: () => o().map(b => b[0]), axis: 56});
const between = b => count(b[1]) + (b[2] > b[1] ? "–" + count(b[2]) : "");
let lengths = [], served = [];
const lengthChart = new Chart("chart-lengths", {title: "Lengths of rows", note: "of the dataset", unit: "rows by tokens", ...bar(() => lengths), bin: i => lengths[i] ? between(lengths[i]) + " tokens" : ""});
const servedChart = new Chart("chart-served", {title: "Lengths of batches", note: "sent so far, with padding", unit: "batches by tokens a row", ...bar(() => served), labels: i => served[i] ? count(served[i][1]) : "", bin: i => served[i] ? between(served[i]) + " tokens" : ""});
waitChart.set([{label: "data waits for trainers", column: BUSY, color: "s3"}, {label: "trainers wait for data", column: STARVED, color: "s2"}]);
paddingChart.set([{label: "efficiency", column: PADDING, color: "s4"}]);
rangeButtons();

const who = c => c.world > 1 ? "rank " + c.rank : "client " + c.id;
// apart says which ranks of one run are an epoch or more from each other.
const apart = all => {
  const runs = new Map();
  for (const c of all) {
    if (c.world < 2 || !known(c.epoch)) continue;
    const query = new URLSearchParams(c.query);
    for (const own of ["rank", "start"]) query.delete(own);
    query.sort();
    const key = query.toString(), run = runs.get(key) || runs.set(key, []).get(key);
    run.push({c, at: c.epoch + c.share});
  }
  for (const run of runs.values()) {
    const [last, first] = [run.reduce((a, b) => b.at < a.at ? b : a), run.reduce((a, b) => b.at > a.at ? b : a)];
    if (first.at - last.at >= 1) return who(first.c) + " is " + plural(Math.floor(first.at - last.at), "epoch") + " ahead of " + who(last.c);
  }
};
const headline = (s, all) => {
  const far = apart(all);
  if (far) return [far + ": ranks of one run should read the same steps", "apart: " + far];
  if (!s.streams) return ["No clients are reading.", "idle"];
  const n = plural(s.streams, "trainer"), stalled = all.filter(c => c.state === "stalled");
  if (stalled.length) return [who(stalled[0]) + " has taken nothing for " + span(stalled[0].waiting) + (stalled.length > 1 ? ", nor have " + count(stalled.length - 1) + " more" : "") + " · " + n, "stalled: " + who(stalled[0])];
  const waits = all.filter(c => c.state === "waits"), slowest = all.filter(c => known(c.rows_s)).sort((a, b) => a.rows_s - b.rows_s)[0];
  const line = waits.length ? (waits.length === all.length ? n + ", " + (all.length === 1 ? "which waits" : "all waiting") + " for data" : n + ", " + count(waits.length) + " waiting for data") : n + ", " + (all.length === 1 ? "fed" : "all fed");
  return [line + (all.length > 1 && slowest ? "; the slowest is " + who(slowest) : ""), s.streams + " reading"];
};
const words = c => ({stalled: "stalled " + span(c.waiting), waits: "waits for data", busy: "busy with its step", begins: "begins", ended: "ended"})[c.state];

const seen = new Map();
const clientRow = c => {
  const td = label => make("td", {"data-label": label});
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path"), svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [k, v] of [["viewBox", "0 0 60 20"], ["preserveAspectRatio", "none"], ["class", "spark"], ["aria-hidden", "true"]]) svg.setAttribute(k, v);
  svg.append(path);
  const tr = make("tr", null, make("th", {scope: "row", "data-label": "rank"}, c.rank + " of " + c.world), td("epoch"), td("of it"), td("row"), td("rows/s"), td("tokens/s"), make("td", null, svg), td("padding eff."), make("td", {class: "left"}, make("span")),
    make("td", {class: "left asked"}, name(c.query || "the defaults", 60), c.from && c.from !== "@" ? make("span", {class: "soft"}, " from " + visible(c.from)) : ""));
  tr.spark = path;
  tr.past = [];
  return tr;
};
const showClient = (tr, c) => {
  const texts = [count(c.epoch), percent(c.share), count(c.next), rate(c.rows_s), rate(c.tokens_s)];
  texts.forEach((t, i) => put(tr.children[i + 1], t));
  put(tr.children[7], percent(c.efficiency));
  const word = tr.children[8].firstChild;
  put(word, words(c));
  word.className = "state " + c.state;
  tr.className = c.state === "ended" ? "ended" : "";
  if (c.state === "ended" || tr.at === c.at) return;
  tr.at = c.at;
  if (c.lane >= 0) tr.past = past.columns[LANES + c.lane].slice(-60).map(v => v || 0);
  else tr.past.push(c.tokens_s || 0);
  if (tr.past.length > 60) tr.past.shift();
  const top = Math.max(1, ...tr.past), from = 60 - tr.past.length;
  tr.spark.setAttribute("d", "M" + tr.past.map((v, i) => (from + i) + " " + (18.5 - 17 * v / top).toFixed(1)).join("L"));
};

const bars = buckets => {
  const out = (buckets || []).map(b => [(b[0] + b[1]) / 2, b[0], b[1], b[2]]);
  return out;
};
const step = b => b.length > 1 ? Math.min(...b.slice(1).map((x, i) => x[0] - b[i][0])) : 1;
const showBars = (chart, list, label, color, words) => {
  chart.say = words;
  chart.step = step(list);
  chart.set([{label, color, values: () => list.map(b => b[3])}]);
};

const show = s => {
  const now = Date.now(), all = (s.clients || []).slice().sort((a, b) => a.rank - b.rank || a.id - b.id);
  const shown = all.slice();
  for (const c of all) { c.at = now; seen.set(c.id, {c, until: 0}) }
  for (const [id, m] of seen) {
    if (m.c.at === now) continue;
    m.until = m.until || now + 3000;
    if (now > m.until) seen.delete(id); else shown.push({...m.c, state: "ended"});
  }
  if (shown.length > all.length) setTimeout(() => { for (const [id, m] of seen) if (m.until && Date.now() > m.until) { seen.delete(id); const e = $("clients").items.get(id); if (e) { e.remove(); $("clients").items.delete(id) } } }, 3200);
  const [line, short] = headline(s, all), names = (s.datasets || []).map(d => d.name);
  say("headline", line);
  document.title = short + (names.length ? " · " + cut(visible(names.join(", ")), 40) : "") + " · dsload";
  const d0 = (s.datasets || [])[0] || {splits: []}, total = (s.datasets || []).reduce((n, d) => n + d.splits.reduce((m, p) => m + p.rows, 0), 0);
  facts("sub", make("span", null, ...names.flatMap((n, i) => [i ? ", " : "", name(n)])), make("span", null, "tokenizer ", name(d0.tokenizer || "", 40)), plural(total, "row"), (s.draining ? "shutting down, " : "") + "up " + span(s.uptime));
  figure("tokens", rate(latest(TOKENS) || 0), "tokens/s", rate(s.tokens) + " in " + plural(s.batches, "batch").replace("batchs", "batches"));
  figure("rows", rate(latest(ROWS) || 0), "rows/s", rate(s.rows) + " rows so far");
  figure("padding", known(latest(PADDING)) ? percent(latest(PADDING)) : s.padded ? percent(s.tokens / s.padded) : "–", "", s.padded ? percent(s.tokens / s.padded) + " since the start; the rest is padding" : "tokens among the elements of batches");
  const memory = latest(RESIDENT) || s.memory_leased, near = memory > 0.9 * s.memory_cap;
  $("memory-tile").classList.toggle("high", near);
  figure("memory", bytes(memory), "of " + bytes(s.memory_cap), near ? "near its cap" : bytes(s.memory_leased) + " of it reserved");
  memoryChart.least = s.memory_cap * 1.02;
  memoryChart.set([{label: "reserved and leased", column: LEASED, color: "s1", fill: true}, {label: "process holds", column: RESIDENT, color: "ink"}, {label: "cap", value: s.memory_cap, color: "ink", dash: true}]);
  const lanes = (s.lanes || []).map((l, i) => ({label: l, column: LANES + i, color: colours[i], stacked: true})).filter(l => l.label).sort((a, b) => (a.label === "others") - (b.label === "others") || a.label.localeCompare(b.label, "en", {numeric: true})).map((l, i) => ({...l, color: l.label === "others" ? "s6" : colours[i]}));
  tokenChart.set(lanes.length ? lanes : [{label: "all", column: TOKENS, color: "s1"}]);
  for (const id of ["padding-tile", "chart-tokens", "chart-waits", "chart-padding", "chart-served", "range-bar"]) $(id).hidden = !s.batches;
  $("nobody").hidden = shown.length > 0;
  $("clients-box").hidden = !shown.length;
  const slow = all.filter(c => known(c.rows_s)).sort((a, b) => a.rows_s - b.rows_s)[0], stalled = all.filter(c => c.state === "stalled").length;
  say("clients-sum", s.streams ? rate(latest(ROWS)) + " rows/s in all" + (all.length > 1 && slow ? "; slowest " + who(slow) + ", " + rate(slow.rows_s) : "") + (stalled ? "; " + stalled + " stalled" : "") + (s.streams > all.length ? "; the first " + all.length + " of " + s.streams : "") : "");
  rows($("clients"), shown.sort((a, b) => a.rank - b.rank || a.id - b.id), c => c.id, clientRow, showClient);
  say("how", "curl " + (location.protocol === "file:" ? "" : "'" + location.origin + "/v1/batches?batch_size=32'") + " -o batches.arrows\nfor batch in dsload.Loader(url=\"" + location.origin + "\", batch_size=32): …");
  lengths = bars(s.lengths);
  served = bars(s.served).map((b, i) => [i, ...b.slice(1)]);
  const most = list => list.length ? "most often " + between(list.reduce((a, b) => b[3] > a[3] ? b : a)) + " tokens" : "nothing yet";
  showBars(lengthChart, lengths, "rows", "s1", () => s.length_words || most(lengths));
  showBars(servedChart, served, "batches", "s4", () => most(served));
  showShares(s.shares || []);
  rows($("datasets"), (s.datasets || []).flatMap(d => d.splits.map(p => ({d, p}))), x => x.d.name + "/" + x.p.name, x => make("tr", null, make("th", {scope: "row"}, name(x.d.name)), make("td", {class: "left"}, name(x.p.name)),
    ...[count(x.p.rows), count(x.p.tokens), (x.p.tokens / Math.max(1, x.p.rows)).toFixed(1), count(x.p.longest) + (x.d.max_length ? ", cut at " + count(x.d.max_length) : "")].map(t => make("td", null, t)), make("td", {class: "left"}, name(x.d.tokenizer, 40))), () => {});
};
const part = x => x.toFixed(3).replace(/\.?0+$/, "");
const showShares = all => {
  const sent = all.filter(d => d.rows), lines = [];
  $("shares-box").hidden = !sent.length;
  for (const d of sent) {
    const rest = sent.reduce((n, o) => n + (o.split === d.split ? o.rows : 0), 0), sources = (d.sources || []).filter(s => s.name);
    lines.push({key: d.split + "/" + d.name, d, asked: part(d.asked), share: d.rows / rest});
    if (sources.length > 1) for (const s of sources) lines.push({key: d.split + "/" + d.name + "/" + s.name, d: s, inner: true, asked: "", share: s.rows / d.rows});
  }
  rows($("shares"), lines, l => l.key, l => make("tr", null, make("th", {scope: "row", class: l.inner ? "inner" : null}, name(l.d.name, 60)), make("td", {class: "left"}, l.d.split), ...[0, 1, 2, 3, 4].map(() => make("td"))),
    (tr, l) => [l.asked, part(l.share), count(l.d.rows), rate(l.d.tokens), l.d.epochs.toFixed(2)].forEach((t, i) => put(tr.children[i + 2], t)));
};
connect(show);
