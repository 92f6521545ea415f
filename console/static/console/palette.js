// Opens the search box by Ctrl-K and lets the keyboard walk through what it finds.
// htmx asks the server while somebody types; without a script the link leads to a page of its own.

const dialog = document.querySelector("#search");
const input = dialog?.querySelector("input[type=search]");
const hits = () => [...dialog.querySelectorAll(".found a")];

const ask = () => htmx.trigger(input, "open");

export function openPalette() {
  if (!dialog || dialog.open) return;
  dialog.showModal();
  input.select();
  ask();
}

// htmx listens once all scripts of the page have run: it has missed what was typed before.
document.addEventListener("htmx:load", () => { if (dialog?.open) ask(); }, { once: true });

function walk(by) {
  const all = [input, ...hits()];
  const here = Math.max(0, all.indexOf(document.activeElement));
  all[(here + by + all.length) % all.length].focus();
}

document.querySelector("#seek")?.addEventListener("click", (event) => {
  event.preventDefault();
  openPalette();
});

dialog?.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    walk(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
    // What is typed belongs to the box, wherever the focus is.
    input.focus();
  }
});

dialog?.querySelector("form").addEventListener("submit", (event) => {
  const [best] = hits();
  if (!best) return;
  event.preventDefault();
  best.click();
});

// A click beside the box closes it.
dialog?.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});

// The sign-in page is not shown within the box: what is typed elsewhere on the page stays.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { responseURL } = event.detail.xhr;
  if (responseURL && new URL(responseURL).pathname === "/login") {
    event.detail.shouldSwap = false;
    dialog?.close();
    document.dispatchEvent(new Event("samsa:signed-out"));
  } else if (event.detail.xhr.status === 503) {
    // The fragment says what failed.
    event.detail.shouldSwap = true;
  }
});
