// The switch of how far back charts reach.

import { element } from "./element.js";

// As console.queries.series.
const RANGES = [
  [3600, "1 h"],
  [21_600, "6 h"],
  [86_400, "24 h"],
  [604_800, "7 d"],
];
export const FIRST_RANGE_S = RANGES[0][0];

export function fillRanges(box, chartsOf) {
  const buttons = RANGES.map(([seconds, label]) => {
    const button = element("button", { type: "button", class: "chip", "aria-pressed": "false" }, label);
    button.addEventListener("click", () => {
      for (const chart of chartsOf()) chart.setRange(seconds);
      press(seconds);
    });
    return button;
  });
  const press = (seconds) =>
    buttons.forEach((button, place) =>
      button.setAttribute("aria-pressed", String(RANGES[place][0] === seconds)),
    );
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Time shown");
  box.append(...buttons);
  press(chartsOf()[0]?.rangeS ?? FIRST_RANGE_S);
}
