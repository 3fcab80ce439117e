// Drives a browser for the tests: node browser.cjs CHROMIUM. Reads a JSON object a line, {op, page, …}, and answers each with a line:
// {value} or {error}. No page can reach anything but this machine.
const readline = require("node:readline");
const { chromium } = require("playwright-core");
const axe = require("node:fs").readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// What takes this many milliseconds hangs: on a busy machine, a second's work may take a minute.
const hangs = 300000;
const pages = new Map();
let browser;

// Canvas text leaves no trace in the document: what is written on one is kept next to it.
const keepCanvasText = () => {
  const proto = CanvasRenderingContext2D.prototype, fill = proto.fillText;
  proto.fillText = function (text, ...rest) {
    (this.canvas.written = this.canvas.written || new Set()).add(String(text));
    return fill.call(this, text, ...rest);
  };
};

const ops = {
  async open({ page: id, url, width = 1280, height = 800, scheme = "light", reducedMotion = "no-preference", headers = {} }) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion, extraHTTPHeaders: headers });
    context.setDefaultTimeout(hangs);
    await context.addInitScript(keepCanvasText);
    const page = await context.newPage(), seen = { page, errors: [], requests: [], dialogs: [] };
    page.on("console", (m) => m.type() === "error" && seen.errors.push(`${m.text()} ${m.location().url}`.trim()));
    page.on("pageerror", (e) => seen.errors.push(String(e)));
    page.on("request", (r) => seen.requests.push(r.url()));
    page.on("dialog", (d) => { seen.dialogs.push(d.message()); d.dismiss(); });
    pages.set(id, seen);
    const answer = await page.goto(url, { waitUntil: "load" });
    return { status: answer ? answer.status() : 0, headers: answer ? answer.headers() : {} };
  },
  seen: ({ page }) => { const { errors, requests, dialogs } = pages.get(page); return { errors, requests, dialogs }; },
  eval: ({ page, script }) => pages.get(page).page.evaluate(script),
  // wait returns once the script is true. playwright's own wait evaluates strings in the page, which its policy forbids.
  async wait({ page, script, timeout = hangs }) {
    for (const end = Date.now() + timeout; ; await new Promise((done) => setTimeout(done, 50))) {
      if (await pages.get(page).page.evaluate(script)) return true;
      if (Date.now() > end) throw new Error(`not so within ${timeout} ms: ${script}`);
    }
  },
  press: async ({ page, key }) => { await pages.get(page).page.keyboard.press(key); return true; },
  size: async ({ page, width, height }) => { await pages.get(page).page.setViewportSize({ width, height }); return true; },
  shot: async ({ page, path, full = true }) => { await pages.get(page).page.screenshot({ path, fullPage: full }); return true; },
  async axe({ page }) {
    const p = pages.get(page).page;
    await p.evaluate(axe);
    const found = await p.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    return found.violations.map((v) => ({ impact: v.impact, id: v.id, at: v.nodes[0].target.join(" ") }));
  },
  close: async ({ page }) => { await pages.get(page).page.context().close(); pages.delete(page); return true; },
};

(async () => {
  browser = await chromium.launch({ executablePath: process.argv[2],
    args: ["--no-sandbox", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost"] });
  console.log(JSON.stringify({ value: browser.version() }));
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    try {
      console.log(JSON.stringify({ value: await ops[request.op](request) }));
    } catch (e) {
      console.log(JSON.stringify({ error: String(e) }));
    }
  }
  await browser.close();
})();
