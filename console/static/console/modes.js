// A field beside a choice chooses it: whoever types an offset means the mode of that offset.
for (const mode of document.querySelectorAll(".mode")) {
  mode.addEventListener("input", (event) => {
    const choice = mode.querySelector(":scope > input[type=radio]");
    if (choice && event.target !== choice && event.target.name !== "moment") choice.checked = true;
  });
}
