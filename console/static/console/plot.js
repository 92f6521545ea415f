// One plot by uPlot: lines in the page's colours, limits dashed, gaps as gaps, a cursor that all
// plots of a page share. Knows nothing of where its numbers come from.

import { increments, onAxis, onTimeAxis, zone } from "./units.js";

// As the tokens --c1 to --c6.
export const COLOURS = 6;
// Room above the highest value, so that a line does not run along the edge.
const HEADROOM = 1.12;
const AXIS_WIDTH = 56;
const AXIS_HEIGHT = 24;
// Pixels between two ticks.
const SPACE_X = 70;
const SPACE_Y = 28;
// Of the area under a single line, as the last two digits of a colour.
const AREA = "1f";

let loading = null;

// uPlot comes with the first chart, and pages without one do without it.
export function load() {
  loading ??= new Promise((resolve, reject) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL("./vendor/uPlot.min.css", import.meta.url).href;
    const script = document.createElement("script");
    script.src = new URL("./vendor/uPlot.iife.min.js", import.meta.url).href;
    script.onload = () => resolve(globalThis.uPlot);
    script.onerror = () => {
      // The next chart tries again.
      loading = null;
      script.remove();
      reject(new Error("the script that draws charts could not be loaded"));
    };
    document.head.append(style, script);
  });
  return loading;
}

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export const colour = (place) => `c${(place % COLOURS) + 1}`;

function axes(unit) {
  const shared = {
    stroke: token("--ink-3"),
    font: `11px ${token("--font")}`,
    ticks: { show: false },
    grid: { stroke: token("--line"), width: 1 },
  };
  return [
    {
      ...shared,
      grid: { show: false },
      size: AXIS_HEIGHT,
      space: SPACE_X,
      values: (_plot, splits, _axis, _space, increment) =>
        splits.map((seconds) => onTimeAxis(seconds, increment)),
    },
    {
      ...shared,
      size: AXIS_WIDTH,
      space: SPACE_Y,
      incrs: increments(unit),
      values: (_plot, splits) => splits.map((value) => onAxis(value, unit)),
    },
  ];
}

function drawLimit(plot, limit) {
  if (limit === null || limit > plot.scales.y.max) return;
  const { ctx, bbox } = plot;
  const y = Math.round(plot.valToPos(limit, "y", true));
  ctx.save();
  ctx.strokeStyle = token("--bad");
  ctx.setLineDash([6, 5]);
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

// Return a plot within a box. `moved` is told the place of the cursor, or null.
export function plotIn(box, { UPlot, count, unit, limit, data, moved }) {
  const lines = [...Array(count).keys()].map((place) => {
    const stroke = token(`--${colour(place)}`);
    return {
      stroke,
      width: 1.5,
      fill: count === 1 ? `${stroke}${AREA}` : undefined,
      points: { show: false, size: 5 },
    };
  });
  const options = {
    width: box.clientWidth,
    height: box.clientHeight,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    tzDate: (seconds) => UPlot.tzDate(new Date(1000 * seconds), zone),
    scales: { y: { range: (_plot, _low, high) => [0, HEADROOM * Math.max(high ?? 0, limit ?? 0) || 1] } },
    cursor: {
      y: false,
      sync: { key: "page" },
      drag: { setScale: false, x: false },
      points: { size: 7 },
    },
    axes: axes(unit),
    series: [{}, ...lines],
    hooks: { draw: [(plot) => drawLimit(plot, limit)], setCursor: [(plot) => moved(plot.cursor.idx)] },
  };
  return new UPlot(options, data, box);
}
