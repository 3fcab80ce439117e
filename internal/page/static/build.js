// The page of a build.
"use strict";
const [TEXT, TOKENS, RESIDENT, JOBS] = [0, 1, 2, 3];
const mega = x => known(x) ? x === 0 ? "0" : (x / 1e6 < 9.995 ? (x / 1e6).toFixed(x < 1e6 ? 2 : 1) : Math.round(x / 1e6).toLocaleString("en")) : "–";
const latest = c => past.columns[c] && past.columns[c].length ? past.columns[c][past.columns[c].length - 1] : null;
const textChart = new Chart("chart-text", {title: "Text read", unit: "MB/s", format: mega, axis: 44});
const tokenChart = new Chart("chart-tokens", {title: "Tokens written", unit: "tokens/s"});
const memoryChart = new Chart("chart-memory", {title: "Memory", note: "planned by part, and what the process holds", unit: "bytes", format: bytes, binary: true, axis: 68});
textChart.set([{label: "text", column: TEXT, color: "s1", fill: true}]);
tokenChart.set([{label: "tokens", column: TOKENS, color: "s3", fill: false}]);
rangeButtons();

const headline = s => {
  if (s.phase === "done") return ["Done in " + span(s.seconds) + ": " + plural(s.examples, "row") + ", " + rate(s.tokens) + " tokens", "done"];
  if (s.phase === "failed") return ["Failed: " + visible(s.message), "failed"];
  if (s.phase === "interrupted") return ["Resumable: the same command continues at row " + count(s.examples), "interrupted"];
  if (s.phase === "preparing") return ["Looking at the sources", "…"];
  const parts = [];
  if (known(s.fraction)) parts.push(percent(s.fraction));
  parts.push(plural(s.examples, "row") + (s.max_examples ? " of " + count(s.max_examples) : ""));
  if (known(s.fraction)) parts.push(known(s.left) ? span(s.left) + " left" : "time left: not yet known");
  if (s.limited) parts.push("limited by " + s.limited);
  return [parts.join(" · "), known(s.fraction) ? percent(s.fraction) : rate(s.examples) + " rows"];
};

const source = () => {
  const li = make("li");
  li.append(li.what = make("span"), li.much = make("span", {class: "soft"}), li.bar = make("progress", {max: 1}));
  return li;
};
const showSource = lost => (li, s) => {
  const left = lost.get(s.uri) || 0;
  if (li.uri !== s.uri) { li.uri = s.uri; li.what.replaceChildren(name(s.uri)); li.bar.setAttribute("aria-label", "read of " + visible(s.uri)) }
  let much = s.state === "done" ? "read" + (s.bytes >= 0 ? ", " + bytes(s.bytes) : "") : s.state === "waiting" ? "waits" + (s.bytes >= 0 ? ", " + bytes(s.bytes) : "") : known(s.share) ? percent(s.share) : s.read ? bytes(s.read) : "";
  if (s.state === "reading" && s.bytes > 0) much = bytes(s.read) + " of " + bytes(s.bytes) + ", " + percent(s.share);
  if (s.state === "reading" && known(s.left)) much += ", " + span(s.left) + " left";
  if (left) much += (much ? ", " : "") + plural(left, "bad record") + " left out";
  put(li.much, much);
  li.much.className = left ? "warn" : "soft";
  const endless = s.state === "reading" && !known(s.share);
  li.bar.className = left ? "lossy" : s.state === "done" ? "done" : endless ? "endless" : "";
  li.bar.value = s.state === "done" ? 1 : known(s.share) ? s.share : 0;
};

const show = (s, ended) => {
  const [line, short] = headline(s);
  say("headline", line);
  $("headline").className = s.phase === "failed" ? "bad" : "";
  document.title = short + " " + cut(visible(s.name), 40) + " · dsload";
  const end = known(s.left) && !ended ? "ends about " + clock(Date.now() / 1000 + s.left) : null;
  facts("sub", name(s.out), s.tokenizer ? make("span", null, "tokenizer ", name(s.tokenizer, 40)) : null, s.format ? visible(s.format) : null,
    known(s.seconds) ? "for " + span(s.seconds) : null, end);
  say("left", s.phase === "running" ? known(s.fraction) ? (known(s.left) ? span(s.left) + " left" : "time left: a few seconds more to know") + (s.toward ? ", by " + s.toward : "") : "no end known: no budget given" : "");
  $("all").className = s.phase === "done" ? "done" : s.phase === "running" && !known(s.fraction) ? "endless" : "";
  $("all").value = known(s.fraction) ? s.fraction : 0;
  const lost = new Map();
  for (const r of s.rejects || []) lost.set(r.source, (lost.get(r.source) || 0) + r.records);
  rows($("sources"), s.sources || [], x => x.index, source, showSource(lost));
  $("more").hidden = !s.sources_more;
  say("more", s.sources_more ? visible(s.sources_more) : "");
  figure("text", mega(latest(TEXT)), "MB/s", bytes(s.text_bytes) + " so far, " + plural(s.documents, "document"));
  figure("tokens", rate(latest(TOKENS)), "tokens/s", rate(s.tokens) + " tokens so far");
  const memory = latest(RESIDENT), near = memory > 0.9 * s.memory_cap;
  $("memory").parentElement.classList.toggle("high", near);
  figure("memory", bytes(memory), "of " + bytes(s.memory_cap), near ? "near its cap" : percent(memory / s.memory_cap) + " of the cap");
  figure("rows", rate(s.examples), "", (s.max_examples ? "of " + count(s.max_examples) : "of at most " + count(s.max_length) + " tokens") + (s.resumed_at ? ", resumed at " + count(s.resumed_at) : ""));
  const parts = (s.parts || []).filter(p => p.name !== "jobs").sort((a, b) => b.bytes - a.bytes), few = parts.slice(0, 3), rest = parts.slice(3).reduce((n, p) => n + p.bytes, 0);
  memoryChart.least = s.memory_cap * 1.02;
  if (parts.length) memoryChart.set([
    ...few.map((p, i) => ({label: p.name, value: p.bytes, color: "s" + [1, 3, 4][i], stacked: true})), {label: "others", value: rest, color: "s6", stacked: true},
    {label: "jobs", column: JOBS, color: "s2", stacked: true}, {label: "process holds", column: RESIDENT, color: "ink"}, {label: "cap", value: s.memory_cap, color: "ink", dash: true}]);
  const why = {"--map": "The command of --map answers slower than the others work; what it does for each record, or how often it is started, decides the speed.", reading: "The sources are slower than the tokenizer.", tokenizing: "The tokenizer is busy all the time; more workers would help where there are cores.", writing: "Writing waits for the disk, or for the order of rows."};
  say("stage", s.limited ? why[s.limited] : "No stage is busy all the time.");
  rows($("stages"), s.stages || [], x => x.name, x => { const li = make("li"); li.append(make("span", null, x.name), li.much = make("span", {class: "soft"}), li.bar = make("progress", {max: 1, "aria-label": x.name + ", busy"})); return li },
    (li, x) => { put(li.much, known(x.busy) ? "busy " + percent(x.busy) : "–"); li.bar.value = x.busy || 0 });
  rows($("splits"), s.splits || [], x => x.name, x => make("tr", null, make("th", {scope: "row"}, name(x.name)), make("td"), make("td"), make("td")),
    (tr, x) => [x.examples, x.tokens, x.shards].forEach((v, i) => put(tr.children[i + 1], known(v) ? count(v) : "–")));
  say("checkpoint", s.phase === "done" ? "The dataset is complete." : s.checkpoints ? "The same command continues at row " + count(s.checkpoint_examples) + ", as of " + span(s.checkpoint_age) + " ago." : s.resumed_at ? "The same command continues at row " + count(s.resumed_at) + "." : "No checkpoint yet: the same command begins again.");
  rows($("counts"), s.counts || [], x => x.name, x => { const f = make("div"); f.style.display = "contents"; f.append(make("dt", null, x.name), f.value = make("dd")); return f }, (f, x) => put(f.value, count(x.n)));
  rows($("notices"), (s.notices || []).map((t, i) => ({t, i})), x => x.i + x.t, x => make("li", null, make("bdi", {class: "reason"}, visible(x.t))), () => {});
  say("rejects-count", s.rejected ? plural(s.rejected, "record") + (s.rejected > (s.rejects || []).reduce((n, x) => n + x.records, 0) ? ", by the first reasons" : "") : "none");
  rows($("rejects-rows"), s.rejects || [], x => x.source + ":" + x.row + ":" + x.offset + ":" + x.records, x => make("tr", null, make("th", {scope: "row"}, name(x.source, 60), make("span", null, ":" + count(x.row))), make("td", {class: "left reason"}, make("bdi", null, visible((x.records > 1 ? count(x.records) + " records: " : "") + x.reason)))), () => {});
};
connect(show);
