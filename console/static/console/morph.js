// Makes one tree of elements like another and touches only what differs, so scroll, focus, open
// details and half-typed fields stay as they are. An element with an id is the same one wherever
// it stands; the others are matched by their order.

// Set by whoever looks at the page, and not by the server.
const OF_READER = { DETAILS: ["open"], DIALOG: ["open"] };
// A number that changed is tinted for a moment.
const CHANGED = "changed";

export function morph(now, next) {
  alignNode(now, next, { root: now, isTinted: true });
}

function alignNode(now, next, context) {
  if (now.nodeType !== Node.ELEMENT_NODE) {
    alignText(now, next, context.isTinted);
    return;
  }
  if (isKept(now, next) || now.isEqualNode(next)) return;
  alignAttributes(now, next);
  // Another thing in this row now: all of its cells differ, and none of them changed.
  const isOther = now.nodeName === "TR" && firstText(now) !== firstText(next);
  alignChildren(now, next, isOther ? { ...context, isTinted: false } : context);
}

function firstText(row) {
  return row.firstElementChild?.textContent;
}

function alignText(now, next, isTinted) {
  if (now.nodeValue === next.nodeValue) return;
  now.nodeValue = next.nodeValue;
  const cell = isTinted && now.parentElement?.closest("td");
  if (!cell) return;
  // Taken away first, so that it begins again where it still runs.
  cell.classList.remove(CHANGED);
  requestAnimationFrame(() => cell.classList.add(CHANGED));
}

// An element with data-keep belongs to a script: it stays while it is about the same thing.
function isKept(now, next) {
  if (!now.hasAttribute("data-keep") || !next.hasAttribute("data-keep")) return false;
  return JSON.stringify(now.dataset) === JSON.stringify(next.dataset);
}

function isSame(now, next) {
  const isAlike = now.nodeName === next.nodeName && (now.id ?? "") === (next.id ?? "");
  return isAlike && stays(now) === stays(next);
}

// What the server says once, such as that something was done, is there until somebody goes on.
function stays(node) {
  return node.nodeType === Node.ELEMENT_NODE && node.hasAttribute("data-stays");
}

function alignAttributes(now, next) {
  const ofReader = OF_READER[now.nodeName] ?? [];
  for (const { name } of [...now.attributes]) {
    if (!next.hasAttribute(name) && !ofReader.includes(name)) now.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (now.getAttribute(name) !== value && !ofReader.includes(name)) now.setAttribute(name, value);
  }
}

function alignChildren(now, next, context) {
  const rest = [...next.childNodes];
  let place = now.firstChild;
  while (rest.length) {
    const wanted = rest.shift();
    // What has no place any more goes first, or all behind it would be made again.
    while (place && !isSame(place, wanted) && !rest.some((later) => isSame(place, later))) {
      place = without(place);
    }
    const found = standing(now, wanted, context.root) ?? place;
    if (!found || !isSame(found, wanted)) {
      now.insertBefore(document.importNode(wanted, true), place);
    } else {
      if (found === place) place = place.nextSibling;
      else now.insertBefore(found, place);
      alignNode(found, wanted, context);
    }
  }
  while (place) place = without(place);
}

// Return the node behind one that has no place any more.
function without(node) {
  const next = node.nextSibling;
  if (!stays(node)) node.remove();
  return next;
}

// Return the element with the id of the wanted one, so that it is moved and not made again.
function standing(parent, wanted, root) {
  if (!wanted.id) return null;
  const known = root.querySelector(`#${CSS.escape(wanted.id)}`);
  return known && !known.contains(parent) ? known : null;
}
