// The form that writes a record: more rows of headers, and one sending for one press.

const rows = document.querySelector("#headers");
const add = document.querySelector("#add-header");
const form = rows?.closest("form");

function fit() {
  add.hidden = rows.querySelectorAll(".header-row").length >= Number(rows.dataset.most);
}

add?.addEventListener("click", () => {
  const made = rows.querySelector(".header-row").cloneNode(true);
  for (const field of made.querySelectorAll("input")) {
    field.value = "";
    field.removeAttribute("aria-invalid");
  }
  made.querySelector("select").selectedIndex = 0;
  add.before(made);
  made.querySelector("input").focus();
  fit();
});

// What is null or empty has no text: its box says so, and keeps what was typed for another choice.
for (const box of form?.querySelectorAll(".part-field") ?? []) {
  const [choice, field] = [box.querySelector("select"), box.querySelector("textarea")];
  const follow = () => {
    const isBare = choice.value === "null" || choice.value === "empty";
    field.disabled = isBare;
    field.placeholder = isBare ? choice.value : "";
  };
  choice.addEventListener("change", follow);
  follow();
}

form?.addEventListener("submit", (event) => {
  const button = form.querySelector("button.main");
  if (button.getAttribute("aria-disabled") === "true") event.preventDefault();
  button.setAttribute("aria-disabled", "true");
  button.textContent = "Producing…";
});
// The back button brings the form as it was left.
addEventListener("pageshow", () => {
  const button = form?.querySelector("button.main");
  button?.removeAttribute("aria-disabled");
  if (button) button.textContent = "Produce";
});
if (rows) fit();
