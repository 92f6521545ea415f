// Elements from values. Whatever comes from a record is a text here and never markup.

export function element(name, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
  }
  if (text !== undefined) made.textContent = text;
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
