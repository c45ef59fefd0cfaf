// Rows of topics and the elements that show them.
//
//   data-topic, data-key   an element that shows one row
//   data-field, data-as    inside it: a field and how it is written (see writers)
//   data-rows              a list of such elements; its <template> makes new ones. data-where picks rows
//                          ("field", "field=value", "field!=value"), data-limit the most that it shows
//
// Texts are set as text, never as markup; a part (data-as="part") is markup of our own server.

import * as format from "./format.js";

const svg = "http://www.w3.org/2000/svg";
const percent = (x) => x.toFixed(2) + "%";

function rect(attributes) {
  const r = document.createElementNS(svg, "rect");
  for (const [name, value] of Object.entries(attributes)) r.setAttribute(name, value);
  return r;
}

const set = (el, text) => { if (el.textContent !== text) el.textContent = text; };
const say = (name) => (el, row, value) => set(el, format[name](value));
const time = (value) => (value ? Date.parse(value) : 0);

// The level of a wait against its target: over it, past two thirds of it, within it.
function level(wait, target) {
  if (wait < 0) return "none";
  if (!(target > 0)) return "free";
  if (wait > target * 1000) return "bad";
  return wait > target * 667 ? "warn" : "good";
}

const marks = { good: "✓ ", warn: "▲ ", bad: "✕ ", free: "", none: "" };

const writers = {
  int: say("int"),
  units: say("units"),
  share: say("share"),
  seconds: say("seconds"),
  limit: (el, row, value) => set(el, value >= 0 ? format.int(value) : format.dash),
  part: (el, row) => { again(el, el.dataset.field.split(" ").map((name) => row[name] ?? "").join(" ")); },
  text: (el, row, value) => set(el, value || ""),
  list: (el, row, value) => set(el, (value || []).join(", ")),
  flag: (el, row, value) => { el.hidden = !value; },
  unless: (el, row, value) => { el.hidden = !!value; },
  when: (el, row, value) => { el.hidden = String(value) !== el.dataset.value; },
  // Waits go on while nothing is heard of them; now is the server's clock.
  since: (el, row, value, now) => {
    const at = time(value);
    set(el, at ? format.duration(now - at) : format.dash);
  },
  wait: (el, row, value, now) => {
    const at = time(value);
    const wait = at ? Math.max(0, now - at) : -1;
    const name = level(wait, row.target_seconds);
    if (el.dataset.level !== name) el.dataset.level = name;
    const text = wait < 0 ? format.dash : el.dataset.short !== undefined ? format.clock(wait) : format.duration(wait);
    set(el, marks[name] + text);
  },
  // A pool's bar: what is used of its capacity.
  fill: (el, row) => {
    const picture = el.firstElementChild;
    const total = Math.max(row.capacity || 0, row.used || 0);
    const width = total > 0 ? (100 * row.used) / total : 0;
    picture.replaceChildren(...(width > 0 ? [rect({ class: "own", x: "0.00%", y: "0", width: percent(width), height: "100%" })] : []));
    relabel(picture, el, [row.used, row.capacity]);
  },
  bar: (el, row) => {
    const picture = el.firstElementChild;
    const held = (row.own || 0) + (row.common || 0) + (row.borrowed || 0) + (row.lent || 0);
    const total = Math.max(row.reserved || 0, held);
    const parts = [];
    let x = 0;
    const add = (name, fill, n) => {
      if (!(n > 0) || total <= 0) return;
      const width = Math.min((100 * n) / total, 100 - x);
      parts.push(rect({ class: name, x: percent(x), y: "0", width: percent(width), height: "100%", ...(fill ? { fill } : {}) }));
      x += width;
    };
    add("own", "", row.own);
    add("common", "url(#p-common)", row.common);
    add("borrowed", "url(#p-borrowed)", row.borrowed);
    add("lent", "url(#p-lent)", row.lent);
    const head = total > 0 ? Math.min((100 * Math.max(row.headroom || 0, 0)) / total, 100 - x) : 0;
    if (head > 0) parts.push(rect({ class: "headroom", x: percent(100 - head), y: "0", width: percent(head), height: "100%", fill: "url(#p-headroom)" }));
    picture.replaceChildren(...parts);
    relabel(picture, el, [row.own, row.common, row.reserved]);
  },
  share_bar: (el, row) => {
    const picture = el.firstElementChild;
    el.hidden = !(row.entitled >= 0) && !(row.share > 0);
    const part = (bp) => percent(Math.max(0, Math.min(100, (bp || 0) / 100)));
    picture.querySelector(".own").setAttribute("width", part(row.share));
    picture.querySelector(".mark").setAttribute("x", part(row.entitled));
    relabel(picture, el, [format.share(row.share), format.share(row.entitled)]);
  },
  slots: (el, row) => {
    const grid = el.firstElementChild;
    const most = Number(el.dataset.cells);
    const unknown = Math.min(row.unknown_units, row.used);
    const kinds = [];
    for (const [name, n] of [["own", row.used - unknown], ["unknown", unknown], ["", row.free]]) {
      for (let i = 0; i < n && kinds.length < most; i++) kinds.push(name);
    }
    const cells = grid.querySelectorAll("i");
    for (let i = cells.length; i < kinds.length; i++) grid.insertBefore(document.createElement("i"), grid.querySelector("span"));
    for (let i = kinds.length; i < cells.length; i++) cells[i].remove();
    grid.querySelectorAll("i").forEach((cell, i) => { if (cell.className !== kinds[i]) cell.className = kinds[i]; });
    const left = row.used + row.free - kinds.length;
    let more = grid.querySelector("span");
    if (left > 0 && !more) {
      more = document.createElement("span");
      more.className = "small muted";
      grid.append(more);
    }
    if (more) left > 0 ? set(more, "+" + format.int(left)) : more.remove();
    relabel(grid, el, [row.used, row.capacity]);
  },
};

// Parts of the page that the server writes: fetched again when the fields that they name have changed, not
// more often than every other second, not while the page is paused, and not under a reader's hands.
const GAP = 2000;
const asked = new WeakMap(); // part → { want, seen, at, busy }

function again(el, want) {
  if (!asked.has(el)) asked.set(el, { want, seen: el.dataset.seen, at: 0, busy: false });
  const known = asked.get(el);
  known.want = want;
  retry(el, known);
}

// Called with every change, and every second for what could not be fetched then.
async function retry(el, known) {
  if (!known || known.busy || known.seen === known.want || performance.now() - known.at < GAP || !still(el)) return;
  known.busy = true;
  known.at = performance.now();
  const want = known.want;
  try {
    const answer = await fetch(el.dataset.src, { headers: { Accept: "text/html" }, redirect: "error" });
    if (!answer.ok) return;
    const text = await answer.text();
    if (!still(el)) return;
    el.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.children); // scripts in it would not run
    known.seen = want;
  } catch {
    // It is asked again; that the server is away is said elsewhere.
  } finally {
    known.busy = false;
  }
}

function still(el) {
  return el.isConnected && !document.hidden && !document.querySelector("[data-live-pause][aria-pressed=true]") && !el.contains(document.activeElement);
}

const ticking = "[data-as=since], [data-as=wait]";

// The spoken label of a picture is its container's text with the places filled in order.
function relabel(picture, el, values) {
  let i = 0;
  const text = (el.dataset.label || "").replace(/\{\}/g, () => {
    const v = values[i++];
    return typeof v === "number" ? format.int(v) : v;
  });
  if (picture.getAttribute("aria-label") !== text) picture.setAttribute("aria-label", text);
}

function picks(where, row) {
  if (!where) return true;
  const [, field, op, value] = /^(\w+)(?:(!?=)(.*))?$/.exec(where);
  if (!op) return row[field] !== undefined;
  return (String(row[field]) === value) === (op === "=");
}

export class Rows {
  constructor(root) {
    this.root = root;
    this.topics = new Map(); // topic → { rows: Map, order: [] }
    this.dirty = new Map(); // topic → Set of keys, or "all"
  }

  snapshot(topic, body) {
    this.topics.set(topic, { rows: new Map(Object.entries(body.rows)), order: body.order });
    this.dirty.set(topic, "all");
  }

  patch(topic, body) {
    const t = this.topics.get(topic);
    if (!t) return;
    const gone = new Set(body.gone || []);
    for (const key of gone) t.rows.delete(key);
    if (gone.size) t.order = t.order.filter((key) => !gone.has(key));
    let shape = gone.size > 0 || !!body.order;
    for (const [key, row] of Object.entries(body.set || {})) {
      if (!t.rows.has(key)) {
        t.order.push(key);
        shape = true;
      }
      t.rows.set(key, row);
    }
    if (body.order) t.order = body.order;
    const marked = this.dirty.get(topic);
    if (shape || marked === "all") this.dirty.set(topic, "all");
    else this.dirty.set(topic, new Set([...(marked || []), ...Object.keys(body.set || {})]));
  }

  // Shows what is new. now is the server's clock.
  draw(now) {
    for (const [topic, keys] of this.dirty) {
      const t = this.topics.get(topic);
      if (keys === "all") {
        for (const list of this.root.querySelectorAll(`[data-rows="${topic}"]`)) this.arrange(list, topic, t);
      }
      for (const el of this.root.querySelectorAll(`[data-topic="${topic}"]`)) {
        if (keys === "all" || keys.has(el.dataset.key)) this.fill(el, t, now);
      }
    }
    this.dirty.clear();
  }

  // Moves waits on, and fetches what could not be fetched before.
  tick(now) {
    for (const el of this.root.querySelectorAll("[data-as=part]")) retry(el, asked.get(el));
    for (const el of this.root.querySelectorAll(ticking)) {
      const owner = el.closest("[data-topic]");
      const t = this.topics.get(owner.dataset.topic);
      const row = t && t.rows.get(owner.dataset.key);
      if (row) writers[el.dataset.as](el, row, row[el.dataset.field], now);
    }
  }

  arrange(list, topic, t) {
    const { where, limit } = list.dataset;
    const most = limit ? Number(limit) : Infinity;
    const have = new Map([...list.children].filter((el) => el.dataset.key !== undefined).map((el) => [el.dataset.key, el]));
    const template = list.querySelector(":scope > template");
    const wanted = [];
    for (const key of t.order) {
      if (wanted.length >= most) break;
      if (!picks(where, t.rows.get(key))) continue;
      let el = have.get(key);
      if (!el) {
        el = template.content.firstElementChild.cloneNode(true);
        el.dataset.topic = topic;
        el.dataset.key = key;
        const link = el.querySelector("a[data-href]");
        if (link) link.href = link.dataset.href + encodeURIComponent(key);
      }
      have.delete(key);
      wanted.push(el);
    }
    for (const el of have.values()) el.remove();
    wanted.forEach((el, i) => {
      const at = list.children[i + 1]; // the template comes first
      if (at !== el) list.insertBefore(el, at || null);
    });
    const empty = document.getElementById(list.dataset.empty);
    if (empty) empty.hidden = wanted.length > 0;
  }

  // A row that the topic does not hold has nothing to count, if the topic says that it is complete;
  // else the element says that it is not live.
  fill(el, t, now) {
    let row = t.rows.get(el.dataset.key);
    const sum = t.rows.get("sum");
    if (!row && sum && el.dataset.absent !== undefined) {
      el.classList.toggle("still", !sum.complete);
      if (!sum.complete) return;
      row = { running: 0, running_units: 0, queued_tasks: 0, queued_milli: 0, share: -1, entitled: -1 };
    } else {
      el.classList.remove("still");
    }
    if (!row) return;
    for (const cell of el.querySelectorAll("[data-field]")) {
      if (cell.closest("[data-topic]") !== el) continue;
      const write = writers[cell.dataset.as];
      const value = row[cell.dataset.field];
      if (value === undefined && cell.dataset.keep !== undefined) continue;
      write(cell, row, value, now);
    }
    if (el.dataset.field) writers[el.dataset.as](el, row, row[el.dataset.field], now);
  }
}
