// Shortcuts and small comforts of every page. Everything works without this file.

const typing = (el) => el instanceof HTMLElement &&
  (el.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(el.tagName));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "/") {
    const search = document.getElementById("search");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "?") {
    const help = document.getElementById("help");
    if (help && !help.open) {
      event.preventDefault();
      help.showModal();
    }
  }
});

// The server writes times in UTC and, once it knows it, in the reader's own zone.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes("fl_zone=" + encodeURIComponent(zone))) {
  document.cookie = "fl_zone=" + encodeURIComponent(zone) + "; path=/; max-age=31536000; samesite=lax";
}
