// What only the wall needs: its clock, and a shift of a few pixels every minute against burn-in.

import { timeOfDay } from "./format.js";

const clock = document.querySelector("[data-wall-clock]");
const frame = document.querySelector(".wall");

function tick() {
  clock.textContent = timeOfDay(new Date());
}

let step = 0;
function shift() {
  step = (step + 1) % 8;
  frame.style.setProperty("--shift-x", [0, 4, 8, 4, 0, -4, -8, -4][step] + "px");
  frame.style.setProperty("--shift-y", [0, 3, 0, -3, 0, 3, 0, -3][step] + "px");
}

if (clock && frame) {
  tick();
  setInterval(tick, 1000);
  setInterval(shift, 60000);
}
