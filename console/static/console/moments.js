// A button beside the field of a moment opens the browser's picker. What is picked is written into
// the field, in the zone of the page.

const LOCAL = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}(?::\d{2})?)/;

for (const button of document.querySelectorAll("[data-pick]")) {
  const [field, picker] = button.parentElement.querySelectorAll("input");
  button.hidden = false;
  button.addEventListener("click", () => {
    const [, day, clock] = field.value.match(LOCAL) ?? [];
    picker.value = day ? `${day}T${clock}` : "";
    picker.showPicker();
  });
  picker.addEventListener("input", () => {
    field.value = picker.value.replace("T", " ");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
