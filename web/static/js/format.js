// Numbers and times as the server writes them (views/format.go), so that a cell looks the same before
// and after its first update.

const zh = document.documentElement.lang.startsWith("zh");
const names = zh ? [" 天", " 小时", " 分", " 秒"] : [" d", " h", " m", " s"];
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const dash = "—";

const pad = (n) => String(n).padStart(2, "0");

export const int = (n) => (typeof n === "number" ? whole.format(n).replace("-", "−") : dash);

// Fairness milli-units as whole units.
export const units = (milli) => (typeof milli === "number" ? int(Math.round(milli / 1000)) : dash);

// Parts in 1/100 % with one place; -1 says that there is none.
export const share = (bp) => (typeof bp === "number" && bp >= 0 ? (bp / 100).toFixed(1) + " %" : dash);

// A length of time in its two largest units.
export function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return int(s) + names[3];
  if (s < 3600) return int(Math.floor(s / 60)) + names[2] + " " + pad(s % 60) + names[3];
  if (s < 86400) return int(Math.floor(s / 3600)) + names[1] + " " + pad(Math.floor(s / 60) % 60) + names[2];
  return int(Math.floor(s / 86400)) + names[0] + " " + pad(Math.floor(s / 3600) % 24) + names[1];
}

// The wall's short form: 6:12, 1:06:12.
export function clock(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const tail = pad(s % 60);
  if (s < 3600) return Math.floor(s / 60) + ":" + tail;
  return Math.floor(s / 3600) + ":" + pad(Math.floor(s / 60) % 60) + ":" + tail;
}

// An age with one place while it is short.
export const age = (ms) => (ms < 10000 ? (Math.max(0, ms) / 1000).toFixed(1) + names[3] : duration(ms));

export const seconds = (s) => (s > 0 ? duration(s * 1000) : dash);

export const timeOfDay = (date) => pad(date.getHours()) + ":" + pad(date.getMinutes()) + ":" + pad(date.getSeconds());

// A message of the catalogue with its one place filled in.
export const fill = (text, value) => (text || "").replace("{}", value);

export { dash };
