// Keeps a page's live parts fresh, says how old they are, and stops when asked to. The page is complete
// without it. Its texts come from the element that names the topics.

import { Feed } from "./feed.js";
import { Rows } from "./rows.js";
import * as format from "./format.js";

const STALE = 6000;
const root = document.querySelector("[data-live]");
const badges = [...document.querySelectorAll("[data-live-badge], #live-badge")];
const pause = document.querySelector("[data-live-pause]");
const summary = document.querySelector("[data-live-summary]");

function start() {
  const text = root.dataset;
  const rows = new Rows(root);
  let paused = false;
  let lostAt = null;
  let queued = false;

  const draw = () => {
    queued = false;
    if (!paused && !document.hidden) rows.draw(feed.now());
  };
  const want = () => {
    if (queued || paused || document.hidden) return;
    queued = true;
    requestAnimationFrame(draw);
  };

  const show = (kind, words) => {
    for (const badge of badges) {
      badge.hidden = false;
      if (badge.dataset.kind !== kind) {
        badge.dataset.kind = kind;
        badge.classList.remove("good", "warn", "bad");
        badge.classList.add(kind);
      }
      if (badge.textContent !== words) badge.textContent = words;
    }
    root.classList.toggle("stale", kind === "bad");
  };

  const status = () => {
    const age = feed.age();
    if (feed.state === "ended") show("bad", "✕ " + text.textEnded);
    else if (feed.state === "forbidden") show("bad", "✕ " + text.textForbidden);
    else if (feed.state === "lost") show("bad", "✕ " + format.fill(text.textLost, format.timeOfDay(lostAt)));
    else if (age < 0) show("warn", "… " + text.textConnecting);
    else if (paused) show("warn", "❚❚ " + text.textPaused);
    else if (age > STALE) show("bad", "▲ " + format.fill(text.textStale, format.age(age)));
    else show("good", "● " + format.fill(text.textLive, format.age(age)));
  };

  // Readers of the screen hear a change of the connection, not every number.
  const announce = (words) => {
    if (summary && words) summary.textContent = words;
  };

  const feed = new Feed(text.live.split(" "), {
    snapshot: (topic, body) => { rows.snapshot(topic, body); want(); },
    patch: (topic, body) => { rows.patch(topic, body); want(); },
    state: (name) => {
      if (name === "lost" && !lostAt) {
        lostAt = new Date();
        announce(format.fill(text.textLost, format.timeOfDay(lostAt)));
      } else if (name === "live" && lostAt) {
        lostAt = null;
        announce(text.textBack);
      } else if (name === "ended") announce(text.textEnded);
      queueMicrotask(status);
    },
  });

  setInterval(status, 250);
  setInterval(() => {
    if (!paused && !document.hidden && feed.state === "live") rows.tick(feed.now());
  }, 1000);
  document.addEventListener("visibilitychange", want);

  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", String(paused));
      pause.textContent = paused ? text.textResume : text.textPause;
      announce(paused ? text.textPaused : text.textBack);
      status();
      want();
    });
  }
}

if (root) start();
